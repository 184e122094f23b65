// How far apart two images are in middle frequencies of blue.

struct Params {
    width: u32,
    rows: u32,
}

@group(0) @binding(0) var<storage, read> difference: array<f32>;
@group(0) @binding(1) var<storage, read_write> detail: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn blue_difference(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    detail[at] = difference[at] * difference[at] * 16.2176043152;
}
