// A plane times a number, plus a number: from one range of codes to another.

struct Params {
    width: u32,
    height: u32,
    gain: f32,
    offset: f32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn recode(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    output[at] = input[at] * params.gain + params.offset;
}
