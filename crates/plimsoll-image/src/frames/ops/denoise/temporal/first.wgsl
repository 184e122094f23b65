// Begins the mean of a frame and others with the first other one.

struct Params {
    width: u32,
    height: u32,
    // What the sum of nine squared differences is multiplied by to give a power of two.
    strength: f32,
}

@group(0) @binding(0) var<storage, read> own: array<f32>;
@group(0) @binding(1) var<storage, read> other: array<f32>;
// Weighted differences from the frame itself, and the weights; the frame itself has 1.
@group(0) @binding(2) var<storage, read_write> sum: array<f32>;
@group(0) @binding(3) var<storage, read_write> weight: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn temporal_first(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let alike = likeness(id.x, id.y);
    sum[at] = alike * (other[at] - own[at]);
    weight[at] = 1.0 + alike;
}
