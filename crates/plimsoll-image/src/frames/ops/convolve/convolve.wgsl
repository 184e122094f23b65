// Weighted sums of the pixels around each. Beyond an edge lies the last row or column again.

struct Params {
    width: u32,
    height: u32,
    // How many taps there are.
    taps: u32,
    // What is added to each sum.
    bias: f32,
    // How far the taps see; the twin pads by it.
    reach_across: u32,
    reach_down: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
// For each tap: columns to the right, rows down, weight.
@group(0) @binding(1) var<storage, read> taps: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn convolve(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let last = vec2<i32>(i32(params.width) - 1, i32(params.height) - 1);
    var sum = params.bias;
    for (var k = 0u; k < params.taps; k++) {
        let away = vec2<i32>(vec2(taps[3u * k], taps[3u * k + 1u]));
        let seen = clamp(vec2<i32>(id.xy) + away, vec2(0, 0), last);
        sum += taps[3u * k + 2u] * input[u32(seen.y) * params.width + u32(seen.x)];
    }
    output[id.y * params.width + id.x] = clamp(sum, 0.0, 1.0);
}
