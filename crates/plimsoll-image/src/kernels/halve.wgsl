// Half as many pixels in each direction: the mean of 2 x 2, the last row and column repeated where a side is odd.

struct Params {
    width: u32,      // of the source
    rows: u32,
    width_out: u32,
    rows_out: u32,
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> target_plane: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn halve(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width_out || id.y >= params.rows_out {
        return;
    }
    let left = 2u * id.x;
    let right = min(left + 1u, params.width - 1u);
    let upper = 2u * id.y * params.width;
    let lower = min(2u * id.y + 1u, params.rows - 1u) * params.width;
    let above = source[upper + left] + source[upper + right];
    let below = source[lower + left] + source[lower + right];
    target_plane[id.y * params.width_out + id.x] = (above + below) * 0.25;
}
