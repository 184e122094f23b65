// Two planes of one number: the chroma of what has no colour.

struct Params {
    width: u32,
    height: u32,
    value: f32,
}

@group(0) @binding(0) var<storage, read_write> first: array<f32>;
@group(0) @binding(1) var<storage, read_write> second: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn fill(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    first[at] = params.value;
    second[at] = params.value;
}
