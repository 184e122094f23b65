// How far apart two images are in low frequencies.

struct Params {
    width: u32,
    rows: u32,
}

@group(0) @binding(0) var<storage, read> reference_x: array<f32>;
@group(0) @binding(1) var<storage, read> image_x: array<f32>;
@group(0) @binding(2) var<storage, read> reference_y: array<f32>;
@group(0) @binding(3) var<storage, read> image_y: array<f32>;
@group(0) @binding(4) var<storage, read> blue: array<f32>; // the image less the reference
@group(0) @binding(5) var<storage, read_write> low: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn low_difference(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    let x = (reference_x[at] - image_x[at]) * 33.83283718626;
    let y = reference_y[at] - image_y[at];
    let step = y * 14.45826810057;
    let b = (-0.362267051518 * y - blue[at]) * 49.8798465144;
    low[at] = x * x * 29.2353797994 + step * step * 0.844626970982 + b * b * 0.703646627719;
}
