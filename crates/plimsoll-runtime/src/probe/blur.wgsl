// A Gaussian blur in two passes. A buffer holds a band of whole rows of the image; coordinates are clamped to the
// image and then moved into the band, so that a band gives the same bits as the whole image.

struct Params {
    width: u32,
    height: u32,
    radius: u32,
    first_in: u32,  // the image row that the buffers' row 0 holds
    rows_in: u32,
    first_out: u32, // the image row of the first row to give
    rows_out: u32,
    unused: u32,
    weights: array<vec4<f32>, 12>, // of the pixels 0, 1, 2, … away
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> target_: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn weight(distance: u32) -> f32 {
    return params.weights[distance / 4u][distance % 4u];
}

@compute @workgroup_size(16, 16)
fn blur_horizontal(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows_in {
        return;
    }
    let row = id.y * params.width;
    let last = params.width - 1u;
    var total = weight(0u) * source[row + id.x];
    for (var k = 1u; k <= params.radius; k++) {
        let left = source[row + id.x - min(k, id.x)];
        let right = source[row + min(id.x + k, last)];
        total += weight(k) * (left + right);
    }
    target_[row + id.x] = total;
}

@compute @workgroup_size(16, 16)
fn blur_vertical(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows_out {
        return;
    }
    let y = params.first_out + id.y;
    let last = params.height - 1u;
    var total = weight(0u) * source[(y - params.first_in) * params.width + id.x];
    for (var k = 1u; k <= params.radius; k++) {
        let above = source[(y - min(k, y) - params.first_in) * params.width + id.x];
        let below = source[(min(y + k, last) - params.first_in) * params.width + id.x];
        total += weight(k) * (above + below);
    }
    target_[id.y * params.width + id.x] = total;
}
