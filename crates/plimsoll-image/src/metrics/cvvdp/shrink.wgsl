// A plane with half as many pixels in each direction: 5 x 5 weights, reflected at the edges.

struct Params {
    width: u32,     // of the fine level
    height: u32,
    first: u32,     // the fine row that the source begins with
    width_out: u32,
    start: u32,     // the first coarse row to compute
    rows: u32,      // coarse rows to compute
    first_out: i32, // the coarse row that the target begins with
    near: f32,      // with which weight the last column counts once more at the right edge,
    far: f32,       // and with which the one before it
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> coarse: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn row_at(y: i32) -> u32 {
    let height = i32(params.height);
    var inside = select(y, -1 - y, y < 0);
    inside = select(inside, 2 * height - 1 - inside, inside >= height);
    return (u32(inside) - params.first) * params.width;
}

@compute @workgroup_size(16, 16)
fn shrink(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width_out || id.y >= params.rows {
        return;
    }
    let y = params.start + id.y;
    let middle = 2 * i32(y);
    let r0 = row_at(middle - 2);
    let r1 = row_at(middle - 1);
    let r2 = row_at(middle);
    let r3 = row_at(middle + 1);
    let r4 = row_at(middle + 2);
    let weights = array(0.05, 0.25, 0.4, 0.25, 0.05);
    let width = i32(params.width);
    var sum = 0.0;
    for (var k = 0; k < 5; k++) {
        var x = 2 * i32(id.x) + k - 2;
        x = select(x, -1 - x, x < 0);
        if x < width {
            let at = u32(x);
            let column = 0.05 * (source[r0 + at] + source[r4 + at]) + 0.25 * (source[r1 + at] + source[r3 + at])
                + 0.4 * source[r2 + at];
            sum += weights[k] * column;
            // The reference treats the right edge by the parity of the height; so do we.
            if id.x == params.width_out - 1u {
                sum += select(0.0, params.near * column, x == width - 1);
                sum += select(0.0, params.far * column, x == width - 2);
            }
        }
    }
    coarse[u32(i32(y) - params.first_out) * params.width_out + id.x] = sum;
}
