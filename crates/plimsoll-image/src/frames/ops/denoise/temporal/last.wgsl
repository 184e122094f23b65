// Ends the mean of a frame and others.

struct Params {
    width: u32,
    height: u32,
}

@group(0) @binding(0) var<storage, read> own: array<f32>;
// Weighted differences from the frame itself, and the weights.
@group(0) @binding(1) var<storage, read> sum: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn temporal_last(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    output[at] = own[at] + sum[at] / weight[at];
}
