// What a channel differs from its own blurred self, in proportion to the luminance around, times the eye's sensitivity.
// In place.

struct Params {
    width: u32,
    first: u32,         // the row that the planes begin with
    start: u32,         // the first row to compute
    rows: u32,          // rows to compute
    width_coarse: u32,
    height_coarse: u32,
    first_coarse: i32,  // the row that the coarse plane begins with
    limit: f32,         // no contrast is higher
}

@group(0) @binding(0) var<storage, read> coarse: array<f32>;
@group(0) @binding(1) var<storage, read> luminance: array<f32>;
@group(0) @binding(2) var<storage, read> sensitivity: array<f32>;
@group(0) @binding(3) var<storage, read_write> channel: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

fn weights_of(position: u32) -> vec3<f32> {
    return select(vec3(0.1, 0.8, 0.1), vec3(0.0, 0.5, 0.5), position % 2u == 1u);
}

fn around(position: u32, count: u32) -> vec3<u32> {
    let middle = position / 2u;
    return vec3(max(middle, 1u) - 1u, middle, min(middle + 1u, count - 1u));
}

fn expanded(x: u32, y: u32) -> f32 {
    let rows = vec3<u32>(vec3<i32>(around(y, params.height_coarse)) - params.first_coarse) * params.width_coarse;
    let columns = around(x, params.width_coarse);
    let down = weights_of(y);
    var sums = vec3(0.0);
    for (var k = 0; k < 3; k++) {
        let at = columns[k];
        sums[k] = down.x * coarse[rows.x + at] + down.y * coarse[rows.y + at] + down.z * coarse[rows.z + at];
    }
    let across = weights_of(x);
    return across.x * sums.x + across.y * sums.y + across.z * sums.z;
}

@compute @workgroup_size(16, 16)
fn contrast(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let y = params.start + id.y;
    let at = (y - params.first) * params.width + id.x;
    let detail = channel[at] - expanded(id.x, y);
    channel[at] = min(detail / luminance[at], params.limit) * sensitivity[at];
}
