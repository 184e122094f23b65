// One plane from three: a sum of them and a constant.

struct Params {
    width: u32,
    height: u32,
    // What is taken of each input plane, and the constant.
    row: vec4<f32>,
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn luma(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    output[at] = dot(params.row, vec4(red[at], green[at], blue[at], 1.0));
}
