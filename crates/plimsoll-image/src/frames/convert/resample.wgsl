// A plane twice, once or half as fine in one direction: each sample from up to four along it.

struct Params {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    // 1 down the columns, 0 along the rows.
    vertical: u32,
    // Output sample p stands at input sample (p << double) >> halve.
    double: u32,
    halve: u32,
    padding: u32,
    // The weights of the input samples from one before that one to two after it, for even p and for odd p (if halved).
    even: vec4<f32>,
    odd: vec4<f32>,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn tap(at: i32, across: u32) -> f32 {
    if params.vertical == 1u {
        return input[u32(clamp(at, 0, i32(params.input_height) - 1)) * params.input_width + across];
    }
    return input[across * params.input_width + u32(clamp(at, 0, i32(params.input_width) - 1))];
}

@compute @workgroup_size(16, 16)
fn resample(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let along = select(id.x, id.y, params.vertical == 1u);
    let across = select(id.y, id.x, params.vertical == 1u);
    let centre = i32((along << params.double) >> params.halve);
    let weights = select(params.even, params.odd, (along & params.halve) == 1u);
    let taps = vec4(tap(centre - 1, across), tap(centre, across), tap(centre + 1, across), tap(centre + 2, across));
    output[id.y * params.width + id.x] = dot(weights, taps);
}
