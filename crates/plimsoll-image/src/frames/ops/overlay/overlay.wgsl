// A plane with a patch blended over a rectangle of it.

struct Params {
    width: u32,
    height: u32,
    // The first column and row of the rectangle.
    left: u32,
    top: u32,
    patch_width: u32,
    patch_height: u32,
    // normal, multiply, screen, add, subtract, darken, lighten, difference, overlay.
    mode: u32,
    // 1 for what the patch adds to the plane, 0 for the plane with it.
    differences: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
// For each sample of the rectangle what it is, and how much it covers.
@group(0) @binding(1) var<storage, read> patch_samples: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

fn mixed(below: f32, above: f32) -> f32 {
    switch params.mode {
        case 1u: { return below * above; }
        case 2u: { return below + above - below * above; }
        case 3u: { return min(below + above, 1.0); }
        case 4u: { return max(below - above, 0.0); }
        case 5u: { return min(below, above); }
        case 6u: { return max(below, above); }
        case 7u: { return abs(below - above); }
        case 8u: {
            if below < 0.5 {
                return 2.0 * below * above;
            }
            return 1.0 - 2.0 * (1.0 - below) * (1.0 - above);
        }
        default: { return above; }
    }
}

@compute @workgroup_size(16, 16)
fn overlay(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let below = input[at];
    // What lies before the rectangle wraps around to far behind it.
    let x = id.x - params.left;
    let y = id.y - params.top;
    if x >= params.patch_width || y >= params.patch_height {
        output[at] = select(below, 0.0, params.differences == 1u);
        return;
    }
    let above = patch_samples[y * params.patch_width + x];
    let difference = (mixed(below, above.x) - below) * above.y;
    output[at] = select(below + difference, difference, params.differences == 1u);
}
