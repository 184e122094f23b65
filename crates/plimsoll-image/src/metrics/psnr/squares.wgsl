// The squared difference of two images at each pixel, summed over red, green and blue.

struct Params {
    width: u32,
    rows: u32,
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read> red_distorted: array<f32>;
@group(0) @binding(4) var<storage, read> green_distorted: array<f32>;
@group(0) @binding(5) var<storage, read> blue_distorted: array<f32>;
@group(0) @binding(6) var<storage, read_write> squared: array<f32>;
@group(0) @binding(7) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn squares(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    let r = red[at] - red_distorted[at];
    let g = green[at] - green_distorted[at];
    let b = blue[at] - blue_distorted[at];
    squared[at] = r * r + g * g + b * b;
}
