// A plane turned by a quarter.

struct Params {
    // The plane before it is turned.
    width: u32,
    height: u32,
    // 1 for clockwise, else 0.
    clockwise: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn turn(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.height || id.y >= params.width {
        return;
    }
    var source = id.x * params.width + params.width - 1u - id.y;
    if params.clockwise == 1u {
        source = (params.height - 1u - id.x) * params.width + id.y;
    }
    output[id.y * params.height + id.x] = input[source];
}
