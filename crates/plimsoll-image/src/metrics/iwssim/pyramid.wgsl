// The Laplacian pyramid, with the binomial filter 1 4 6 4 1. Each step doubles the gain, as the authors' does.
// A buffer may hold some rows of a plane only: `first` is the row of the plane that it begins with.

struct Fine {
    width: u32,
    rows: u32, // of the plane, for the kernel that reads it; to write, for those that write it
    first: u32,
    unused: u32,
}

struct Coarse {
    width: u32,
    rows: u32, // likewise
    first: u32,
    unused: u32,
}

struct Params {
    fine: Fine,
    coarse: Coarse,
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> plane: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn mirrored(at: i32, count: u32) -> u32 {
    let last = i32(count) - 1;
    return u32(select(abs(at), 2 * last - at, at > last));
}

fn reduced_along(row: u32, x: u32) -> f32 {
    let start = row * params.fine.width;
    let at = i32(2u * x);
    let w = params.fine.width;
    let outer = source[start + mirrored(at - 2, w)] + source[start + mirrored(at + 2, w)];
    let inner = source[start + mirrored(at - 1, w)] + source[start + mirrored(at + 1, w)];
    return outer + 4.0 * inner + 6.0 * source[start + u32(at)];
}

fn fine_row(at: i32) -> u32 {
    return mirrored(at, params.fine.rows) - params.fine.first;
}

@compute @workgroup_size(16, 16)
fn reduce(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.coarse.width || id.y >= params.coarse.rows {
        return;
    }
    let at = i32(2u * (params.coarse.first + id.y));
    let outer = reduced_along(fine_row(at - 2), id.x) + reduced_along(fine_row(at + 2), id.x);
    let inner = reduced_along(fine_row(at - 1), id.x) + reduced_along(fine_row(at + 1), id.x);
    let sum = outer + 4.0 * inner + 6.0 * reduced_along(fine_row(at), id.x);
    plane[id.y * params.coarse.width + id.x] = sum / 128.0;
}

fn beside(at: i32, count: u32) -> u32 {
    return min(u32(abs(at)), count - 1u);
}

fn expanded_along(row: i32, x: u32) -> f32 {
    let start = (beside(row, params.coarse.rows) - params.coarse.first) * params.coarse.width;
    let at = i32(x / 2u);
    let w = params.coarse.width;
    let here = source[start + u32(at)];
    let after = source[start + beside(at + 1, w)];
    if x % 2u == 1u {
        return 4.0 * (here + after);
    }
    return (source[start + beside(at - 1, w)] + after) + 6.0 * here;
}

@compute @workgroup_size(16, 16)
fn subtract_expanded(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.fine.width || id.y >= params.fine.rows {
        return;
    }
    let row = params.fine.first + id.y;
    let at = i32(row / 2u);
    let after = expanded_along(at + 1, id.x);
    var sum: f32;
    if row % 2u == 1u {
        sum = 4.0 * (expanded_along(at, id.x) + after);
    } else {
        sum = (expanded_along(at - 1, id.x) + after) + 6.0 * expanded_along(at, id.x);
    }
    plane[id.y * params.fine.width + id.x] -= sum / 128.0;
}

// Where a row or column of the finer plane lies in the coarser one: a position between two, and the share of the
// second.
struct Between {
    at: u32,
    share: f32,
}

fn between(at: u32, count: u32) -> Between {
    let drift = f32(i32(3u * at) - i32(count)) / f32(8u * count - 6u);
    let offset = select(0.5, 0.0, at % 2u == 1u) + drift;
    let whole = floor(offset);
    let low = (i32(at) + 1) / 2 - 1 + i32(whole);
    if low < 0 {
        return Between(0u, 0.0);
    }
    if low >= i32(count) - 1 {
        return Between(count - 1u, 0.0);
    }
    return Between(u32(low), offset - whole);
}

@compute @workgroup_size(16, 16)
fn enlarge(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.fine.width || id.y >= params.fine.rows {
        return;
    }
    let x = between(id.x, params.coarse.width);
    let y = between(params.fine.first + id.y, params.coarse.rows);
    let right = min(x.at + 1u, params.coarse.width - 1u);
    let upper = (y.at - params.coarse.first) * params.coarse.width;
    let lower = (min(y.at + 1u, params.coarse.rows - 1u) - params.coarse.first) * params.coarse.width;
    let left_side = source[upper + x.at] + y.share * (source[lower + x.at] - source[upper + x.at]);
    let right_side = source[upper + right] + y.share * (source[lower + right] - source[upper + right]);
    plane[id.y * params.fine.width + id.x] = left_side + x.share * (right_side - left_side);
}
