// One pass of a separable symmetric filter, along the rows or down the columns. Beyond the edge lies nothing, and what
// is inside weighs the more.

struct Params {
    width: u32,
    rows: u32,
    radius: u32,
    unused: u32,
    weights: array<vec4<f32>, 12>, // by distance
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> target_plane: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn filtered(start: u32, stride: u32, at: u32, count: u32) -> f32 {
    var weighed = params.weights[0].x;
    var sum = weighed * source[start + at * stride];
    for (var k = 1u; k <= params.radius; k++) {
        let weight = params.weights[k / 4u][k % 4u];
        var pair = 0.0;
        if at >= k {
            pair += source[start + (at - k) * stride];
            weighed += weight;
        }
        if at + k < count {
            pair += source[start + (at + k) * stride];
            weighed += weight;
        }
        sum += weight * pair;
    }
    return sum / weighed;
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
