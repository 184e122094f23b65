// Goes on with the mean of a frame and others.

struct Params {
    width: u32,
    height: u32,
    // What the sum of nine squared differences is multiplied by to give a power of two.
    strength: f32,
}

@group(0) @binding(0) var<storage, read> own: array<f32>;
@group(0) @binding(1) var<storage, read> other: array<f32>;
// Weighted differences from the frame itself, and the weights, up to now.
@group(0) @binding(2) var<storage, read> sum_before: array<f32>;
@group(0) @binding(3) var<storage, read> weight_before: array<f32>;
// The same with this frame.
@group(0) @binding(4) var<storage, read_write> sum: array<f32>;
@group(0) @binding(5) var<storage, read_write> weight: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn temporal_next(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let alike = likeness(id.x, id.y);
    sum[at] = sum_before[at] + alike * (other[at] - own[at]);
    weight[at] = weight_before[at] + alike;
}
