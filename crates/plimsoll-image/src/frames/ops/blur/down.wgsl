// A symmetric filter down the columns of a plane. Beyond an edge lies the last row again.

struct Params {
    width: u32,
    height: u32,
    // Rows seen up and down.
    reach: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
// The weights by distance, from 0 to the reach.
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn blur_down(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    var sum = weights[0] * input[id.y * params.width + id.x];
    for (var k = 1u; k <= params.reach; k++) {
        let above = input[(id.y - min(k, id.y)) * params.width + id.x];
        let below = input[min(id.y + k, params.height - 1u) * params.width + id.x];
        sum += weights[k] * (above + below);
    }
    output[id.y * params.width + id.x] = sum;
}
