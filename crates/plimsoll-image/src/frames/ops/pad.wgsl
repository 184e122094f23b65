// A plane in a larger one of one value.

struct Params {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    // Where the first column and row of the plane come to lie.
    left: u32,
    top: u32,
    // What is around it.
    value: f32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn pad(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    // To the left of the plane and above it these are too large, as they are to the right and below.
    let x = id.x - params.left;
    let y = id.y - params.top;
    var sample = params.value;
    if x < params.input_width && y < params.input_height {
        sample = input[y * params.input_width + x];
    }
    output[id.y * params.width + id.x] = sample;
}
