// Scales the columns of a plane: each row is a weighted sum of some input rows.

struct Params {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    // Input rows in each sum.
    taps: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
// The first input row of each output row, then the weights of each.
@group(0) @binding(1) var<storage, read> windows: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn scale_down(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let start = windows[id.y];
    let weights = params.height + id.y * params.taps;
    var sum = 0.0;
    for (var tap = 0u; tap < params.taps; tap++) {
        sum += bitcast<f32>(windows[weights + tap]) * input[(start + tap) * params.input_width + id.x];
    }
    output[id.y * params.width + id.x] = sum;
}
