// A plane and a multiple of what a blur took from it.

struct Params {
    width: u32,
    height: u32,
    // How much of the difference is added.
    amount: f32,
    // What is taken from the difference first, so that noise is left alone and no step appears where it begins to count.
    threshold: f32,
}

@group(0) @binding(0) var<storage, read> plane: array<f32>;
@group(0) @binding(1) var<storage, read> blurred: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn unsharp(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let detail = plane[at] - blurred[at];
    let counted = detail - clamp(detail, -params.threshold, params.threshold);
    output[at] = clamp(plane[at] + params.amount * counted, 0.0, 1.0);
}
