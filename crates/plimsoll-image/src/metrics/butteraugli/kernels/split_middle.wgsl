// Splits the fast part of X and Y into what is faster still and the middle frequencies; strong Y hides X.

struct Params {
    width: u32,
    rows: u32,
}

@group(0) @binding(0) var<storage, read_write> fast_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> middle_x: array<f32>; // blurred before, middle frequencies after
@group(0) @binding(2) var<storage, read_write> fast_y: array<f32>;
@group(0) @binding(3) var<storage, read_write> middle_y: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

const SHOWN = 0.653020556257;
const HIDING = 46.0;

@compute @workgroup_size(16, 16)
fn split_middle(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    let blurred_x = middle_x[at];
    let blurred_y = middle_y[at];
    let y = fast_y[at] - blurred_y;
    let shown = HIDING / (y * y + HIDING) * (1.0 - SHOWN) + SHOWN;
    fast_y[at] = y;
    fast_x[at] = (fast_x[at] - blurred_x) * shown;
    middle_x[at] = sign(blurred_x) * max(abs(blurred_x) - 0.29, 0.0);
    middle_y[at] = blurred_y + clamp(blurred_y, -0.1, 0.1);
}
