// The Malta filter: differences of a band count by how well they line up, along lines in sixteen directions through
// each pixel. Nothing lies beyond the edges.

struct Params {
    width: u32,
    rows: u32,
    norm: f32,          // how strong a pixel must be for differences to count in proportion to it
    scale: f32,         // of a difference
    penalty: f32,       // of what the image has too much or too little of
    square: f32,        // what a squared difference counts
    square_beyond: f32, // what a squared difference beyond the reference's value counts
}

@group(0) @binding(0) var<storage, read> reference: array<f32>;
@group(0) @binding(1) var<storage, read> image: array<f32>;
@group(0) @binding(2) var<storage, read_write> detail: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

const SIDE = 24u; // a workgroup's 16 pixels, and 4 on either side
var<workgroup> tile: array<f32, 576>;

fn scaled(at: u32) -> f32 {
    let here = reference[at];
    let there = image[at];
    let share = 1.0 / (params.norm + 0.5 * (abs(here) + abs(there)));
    let direction = select(1.0, -1.0, here < 0.0);
    let along = there * direction;
    let beyond = max(0.55 * abs(here) - along, 0.0) - max(along - 1.05 * abs(here), 0.0);
    return params.scale * share * (here - there) + direction * (params.penalty * share * beyond);
}

// Every difference that the workgroup needs, computed once.
fn fill(lane: u32, group: vec2<u32>) {
    for (var k = lane; k < SIDE * SIDE; k += 256u) {
        let x = i32(group.x * 16u + k % SIDE) - 4;
        let y = i32(group.y * 16u + k / SIDE) - 4;
        var value = 0.0;
        if x >= 0 && y >= 0 && x < i32(params.width) && y < i32(params.rows) {
            value = scaled(u32(y) * params.width + u32(x));
        }
        tile[k] = value;
    }
    workgroupBarrier();
}

fn pair(middle: i32, offset: i32) -> f32 {
    return tile[middle + offset] + tile[middle - offset];
}

// The squared sums of lines, by the offsets of their pixels on one side: 24 a row.
fn of_two(m: i32, a: i32, b: i32) -> f32 {
    let sum = tile[m] + pair(m, a) + pair(m, b);
    return sum * sum;
}

fn of_three(m: i32, a: i32, b: i32, c: i32) -> f32 {
    let sum = tile[m] + pair(m, a) + pair(m, b) + pair(m, c);
    return sum * sum;
}

fn of_four(m: i32, a: i32, b: i32, c: i32, d: i32) -> f32 {
    let sum = tile[m] + pair(m, a) + pair(m, b) + pair(m, c) + pair(m, d);
    return sum * sum;
}

fn squares(at: u32) -> f32 {
    let here = reference[at];
    let along = image[at] * select(1.0, -1.0, here < 0.0);
    let difference = here - image[at];
    let beyond = max(0.4 * abs(here) - along, 0.0) + max(along - abs(here), 0.0);
    return difference * difference * params.square + beyond * beyond * params.square_beyond;
}

fn inside(id: vec3<u32>) -> bool {
    return id.x < params.width && id.y < params.rows;
}

@compute @workgroup_size(16, 16)
fn malta_fine(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    fill(lane, group.xy);
    if !inside(id) {
        return;
    }
    let m = i32((local.y + 4u) * SIDE + local.x + 4u);
    var sum = 2.0 * (of_four(m, 24, 47, 71, 95) + of_four(m, 24, 49, 73, 97));
    sum += 2.0 * (of_four(m, 1, 26, 27, 28) + of_four(m, 1, -22, -21, -20));
    sum += of_four(m, 1, 2, 3, 4) + of_four(m, 24, 48, 72, 96);
    sum += of_three(m, 25, 50, 75) + of_three(m, 23, 46, 69);
    sum += of_three(m, 25, 49, 74) + of_three(m, 23, 47, 70);
    sum += of_three(m, 25, 26, 51) + of_three(m, 23, 22, 45);
    let at = id.y * params.width + id.x;
    detail[at] += sum;
}

@compute @workgroup_size(16, 16)
fn malta_sparse(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    fill(lane, group.xy);
    if !inside(id) {
        return;
    }
    let m = i32((local.y + 4u) * SIDE + local.x + 4u);
    var sum = of_two(m, 2, 4) + of_two(m, 48, 96);
    sum += of_two(m, 50, 75) + of_two(m, 46, 69);
    sum += of_two(m, 47, 95) + of_two(m, 49, 97);
    sum += of_two(m, 26, 28) + of_two(m, -22, -20);
    sum += of_two(m, 49, 74) + of_two(m, 47, 70);
    sum += of_two(m, 26, 51) + of_two(m, 22, 45);
    sum += of_two(m, -22, -44) + of_two(m, 26, 52);
    sum += of_two(m, 49, 98) + of_two(m, 47, 94);
    let at = id.y * params.width + id.x;
    detail[at] += sum + squares(at);
}
