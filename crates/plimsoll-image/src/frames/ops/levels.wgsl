// A plane's numbers from one range of values to another, with a power between. `power.wgsl` stands before this.

struct Params {
    width: u32,
    height: u32,
    // The number that becomes 0, and one over how far above it lies what becomes 1.
    black: f32,
    scale: f32,
    // The power, then what 0 and 1 become.
    exponent: f32,
    out_gain: f32,
    out_offset: f32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn levels(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    var value = clamp((input[at] - params.black) * params.scale, 0.0, 1.0);
    if params.exponent != 1.0 {
        value = select(0.0, power(value, params.exponent), value > 4e-6);
    }
    output[at] = value * params.out_gain + params.out_offset;
}
