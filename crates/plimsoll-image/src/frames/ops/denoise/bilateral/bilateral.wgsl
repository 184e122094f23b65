// The mean of the pixels around each, weighed by distance and by difference. Beyond an edge lies the last row or column
// again.

struct Params {
    width: u32,
    height: u32,
    // How many taps there are.
    taps: u32,
    // What a difference squared is multiplied by to give a power of two.
    tone: f32,
    // How far the taps see; the twin pads by it.
    reach_across: u32,
    reach_down: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
// For each tap: columns to the right, rows down, the power of two that its distance gives.
@group(0) @binding(1) var<storage, read> taps: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn bilateral(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let last = vec2<i32>(i32(params.width) - 1, i32(params.height) - 1);
    let own = input[id.y * params.width + id.x];
    // Differences are summed: they are small, so little is lost.
    var sum = 0.0;
    var weights = 0.0;
    for (var k = 0u; k < params.taps; k++) {
        let away = vec2<i32>(vec2(taps[3u * k], taps[3u * k + 1u]));
        let seen = clamp(vec2<i32>(id.xy) + away, vec2(0, 0), last);
        let apart = input[u32(seen.y) * params.width + u32(seen.x)] - own;
        let weight = power_of_two(taps[3u * k + 2u] + params.tone * (apart * apart));
        sum += weight * apart;
        weights += weight;
    }
    output[id.y * params.width + id.x] = own + sum / weights;
}
