// A part of a plane.

struct Params {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    // The first column and row of the part.
    left: u32,
    top: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn crop(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    output[id.y * params.width + id.x] = input[(id.y + params.top) * params.input_width + id.x + params.left];
}
