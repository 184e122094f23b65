// Rows of a plane into half as many rows and columns of another, each pixel the mean of four; and rows from one place
// to another.

struct Params {
    width: u32,
    rows: u32, // rows to read; where they are odd, as where the width is, the last counts twice
    first: u32, // the first of them
    first_out: u32,
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> plane: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn halve_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    let width_out = (params.width + 1u) / 2u;
    if id.x >= width_out || id.y >= (params.rows + 1u) / 2u {
        return;
    }
    let upper = (params.first + 2u * id.y) * params.width;
    let lower = (params.first + min(2u * id.y + 1u, params.rows - 1u)) * params.width;
    let left = 2u * id.x;
    let right = min(left + 1u, params.width - 1u);
    let sum = (source[upper + left] + source[upper + right]) + (source[lower + left] + source[lower + right]);
    plane[(params.first_out + id.y) * width_out + id.x] = sum * 0.25;
}

@compute @workgroup_size(16, 16)
fn copy_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    plane[(params.first_out + id.y) * params.width + id.x] = source[(params.first + id.y) * params.width + id.x];
}
