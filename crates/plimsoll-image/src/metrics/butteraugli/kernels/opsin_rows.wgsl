// Blurs three planes along the rows. Edges are mirrors.

struct Params {
    width: u32,
    rows: u32,
    weights: vec4<f32>, // by distance
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> red_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> green_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> blue_out: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

fn mirrored(at: i32) -> u32 {
    let count = i32(params.width);
    return u32(select(select(at, 2 * count - 1 - at, at >= count), -at - 1, at < 0));
}

@compute @workgroup_size(16, 16)
fn opsin_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let row = id.y * params.width;
    let x = i32(id.x);
    let a = row + mirrored(x - 2);
    let b = row + mirrored(x - 1);
    let c = row + id.x;
    let d = row + mirrored(x + 1);
    let e = row + mirrored(x + 2);
    let w = params.weights;
    red_out[c] = red[c] * w.x + (red[b] + red[d]) * w.y + (red[a] + red[e]) * w.z;
    green_out[c] = green[c] * w.x + (green[b] + green[d]) * w.y + (green[a] + green[e]) * w.z;
    blue_out[c] = blue[c] * w.x + (blue[b] + blue[d]) * w.y + (blue[a] + blue[e]) * w.z;
}
