// What an image's activity hides: the least three of a pixel, counted twice, and eight places around it, weighed.

struct Params {
    width: u32,
    rows: u32,
}

@group(0) @binding(0) var<storage, read> activity: array<f32>;
@group(0) @binding(1) var<storage, read_write> mask: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn with_place(least: vec3<f32>, x: i32, y: i32) -> vec3<f32> {
    if x < 0 || y < 0 || x >= i32(params.width) || y >= i32(params.rows) {
        return least;
    }
    let value = activity[u32(y) * params.width + u32(x)];
    let rest = max(least.x, value);
    let last = max(least.y, rest);
    return vec3(min(least.x, value), min(least.y, rest), min(least.z, last));
}

@compute @workgroup_size(16, 16)
fn erode(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    let x = i32(id.x);
    let y = i32(id.y);
    var least = activity[at] * vec3(1.0, 2.0, 2.0);
    least = with_place(least, x - 3, y - 3);
    least = with_place(least, x, y - 3);
    least = with_place(least, x + 3, y - 3);
    least = with_place(least, x - 3, y);
    least = with_place(least, x + 3, y);
    least = with_place(least, x - 3, y + 3);
    least = with_place(least, x, y + 3);
    least = with_place(least, x + 3, y + 3);
    mask[at] = 0.45 * least.x + 0.3 * least.y + 0.25 * least.z;
}
