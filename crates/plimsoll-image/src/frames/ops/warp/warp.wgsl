// A plane seen through a projective map. Each tile of 16 x 16 pixels has the map as seen from its middle, so that what
// is computed here is small and exact to about a millionth of a pixel.

struct Params {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    // 1 for bicubic, 0 for bilinear.
    cubic: u32,
    // 1 if the plane goes on as its edge does, 0 if it is surrounded by `fill`.
    edge: u32,
    fill: f32,
    // Tiles in a row.
    tiles: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
// For each tile: the whole part of where its middle goes (across, down) and the rest of it (across, down); how that
// changes from column to column and from row to row (across, down each); how the depth does.
@group(0) @binding(1) var<storage, read> map: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

const FIGURES: u32 = 10u;

fn sample(x: i32, y: i32) -> f32 {
    let last = vec2<i32>(i32(params.input_width) - 1, i32(params.input_height) - 1);
    let at = clamp(vec2<i32>(x, y), vec2<i32>(0, 0), last);
    let value = input[u32(at.y) * params.input_width + u32(at.x)];
    return select(params.fill, value, params.edge == 1u || (at.x == x && at.y == y));
}

fn bilinear(x: i32, y: i32, part: vec2<f32>) -> f32 {
    let above = mix_of(sample(x, y), sample(x + 1, y), part.x);
    let below = mix_of(sample(x, y + 1), sample(x + 1, y + 1), part.x);
    return mix_of(above, below, part.y);
}

fn mix_of(a: f32, b: f32, part: f32) -> f32 {
    return a + (b - a) * part;
}

// Catmull and Rom's: through the samples, with their slopes.
fn weights(t: f32) -> vec4<f32> {
    return vec4<f32>(
        ((2.0 - t) * t - 1.0) * t * 0.5,
        ((3.0 * t - 5.0) * t * t + 2.0) * 0.5,
        ((4.0 - 3.0 * t) * t + 1.0) * t * 0.5,
        (t - 1.0) * t * t * 0.5,
    );
}

fn row_of(x: i32, y: i32, weight: vec4<f32>) -> f32 {
    return sample(x - 1, y) * weight.x + sample(x, y) * weight.y + sample(x + 1, y) * weight.z
        + sample(x + 2, y) * weight.w;
}

fn bicubic(x: i32, y: i32, part: vec2<f32>) -> f32 {
    let across = weights(part.x);
    let down = weights(part.y);
    return row_of(x, y - 1, across) * down.x + row_of(x, y, across) * down.y + row_of(x, y + 1, across) * down.z
        + row_of(x, y + 2, across) * down.w;
}

@compute @workgroup_size(16, 16)
fn warp(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = (group.y * params.tiles + group.x) * FIGURES;
    let middle = min(group.xy * 16u + 8u, vec2<u32>(params.width, params.height) - 1u);
    let p = f32(i32(id.x) - i32(middle.x));
    let q = f32(i32(id.y) - i32(middle.y));
    let depth = 1.0 + (map[at + 8u] * p + map[at + 9u] * q);
    let away = vec2<f32>(map[at + 4u] * p + map[at + 6u] * q, map[at + 5u] * p + map[at + 7u] * q) / depth;
    let rest = vec2<f32>(map[at + 2u], map[at + 3u]) + away;
    let whole = floor(rest);
    let part = rest - whole;
    let x = i32(map[at] + whole.x);
    let y = i32(map[at + 1u] + whole.y);
    if params.cubic == 1u {
        output[id.y * params.width + id.x] = bicubic(x, y, part);
    } else {
        output[id.y * params.width + id.x] = bilinear(x, y, part);
    }
}
