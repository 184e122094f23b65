// One pass of a separable symmetric filter, along the rows or down the columns.

struct Params {
    width: u32,
    rows: u32,
    radius: u32,
    edge: u32,  // beyond the edge: 0 the edge pixel again, 1 nothing, 2 nothing, and the rest weighs more
    weights: array<vec4<f32>, 12>, // by distance
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> target_plane: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn filtered(start: u32, stride: u32, at: u32, count: u32) -> f32 {
    let last = i32(count) - 1;
    var weighed = params.weights[0].x;
    var sum = weighed * source[start + at * stride];
    for (var k = 1u; k <= params.radius; k++) {
        let weight = params.weights[k / 4u][k % 4u];
        let before = i32(at) - i32(k);
        let after = i32(at + k);
        var pair = 0.0;
        if params.edge == 0u || before >= 0 {
            pair += source[start + u32(max(before, 0)) * stride];
            weighed += weight;
        }
        if params.edge == 0u || after <= last {
            pair += source[start + u32(min(after, last)) * stride];
            weighed += weight;
        }
        sum += weight * pair;
    }
    return select(sum, sum / weighed, params.edge == 2u);
}

@compute @workgroup_size(16, 16)
fn fir_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    target_plane[id.y * params.width + id.x] = filtered(id.y * params.width, 1u, id.x, params.width);
}

@compute @workgroup_size(16, 16)
fn fir_columns(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    target_plane[id.y * params.width + id.x] = filtered(id.x, params.width, id.y, params.rows);
}
