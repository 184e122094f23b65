// A symmetric filter along the rows of a plane. Beyond an edge lies the last column again.

struct Params {
    width: u32,
    height: u32,
    // Columns seen to each side.
    reach: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
// The weights by distance, from 0 to the reach.
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn blur_across(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let row = id.y * params.width;
    var sum = weights[0] * input[row + id.x];
    for (var k = 1u; k <= params.reach; k++) {
        let left = input[row + id.x - min(k, id.x)];
        let right = input[row + min(id.x + k, params.width - 1u)];
        sum += weights[k] * (left + right);
    }
    output[row + id.x] = sum;
}
