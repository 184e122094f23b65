// Half as many pixels of three planes in each direction: the mean of 2 x 2, the last row and column repeated where a
// side is odd.

struct Params {
    width: u32,     // of the source
    rows: u32,
    width_out: u32,
    rows_out: u32,
    first_out: u32, // the row where the result begins
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> red_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> green_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> blue_out: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn shrink(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width_out || id.y >= params.rows_out {
        return;
    }
    let left = 2u * id.x;
    let right = min(left + 1u, params.width - 1u);
    let upper = 2u * id.y * params.width;
    let lower = min(2u * id.y + 1u, params.rows - 1u) * params.width;
    let out = (params.first_out + id.y) * params.width_out + id.x;
    red_out[out] = ((red[upper + left] + red[upper + right]) + (red[lower + left] + red[lower + right])) * 0.25;
    green_out[out] =
        ((green[upper + left] + green[upper + right]) + (green[lower + left] + green[lower + right])) * 0.25;
    blue_out[out] = ((blue[upper + left] + blue[upper + right]) + (blue[lower + left] + blue[lower + right])) * 0.25;
}
