// Scales the rows of a plane: each column is a weighted sum of some input columns.

struct Params {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    // Input columns in each sum.
    taps: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
// The first input column of each output column, then the weights of each.
@group(0) @binding(1) var<storage, read> windows: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn scale_across(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let start = id.y * params.input_width + windows[id.x];
    let weights = params.width + id.x * params.taps;
    var sum = 0.0;
    for (var tap = 0u; tap < params.taps; tap++) {
        sum += bitcast<f32>(windows[weights + tap]) * input[start + tap];
    }
    output[id.y * params.width + id.x] = sum;
}
