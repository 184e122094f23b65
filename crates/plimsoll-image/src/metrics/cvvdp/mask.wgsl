// The blur of `mutual` down the columns, made a mask; and the difference of the two contrasts, raised to its power, in
// place of the distorted image's contrast.

struct Params {
    width: u32,
    height: u32,
    first: u32,      // the row that the planes begin with
    start: u32,      // the first row to compute
    rows: u32,       // rows to compute
    reach: u32,      // of the blur
    mask_scale: f32,
    mask_power: f32,
    mask_zero: f32,  // what the power makes of zero
    power: f32,      // of the difference
    zero: f32,       // what that makes of zero
    epsilon: f32,    // added before a power is taken
    weights: array<vec4<f32>, 2>, // by distance
}

@group(0) @binding(0) var<storage, read> blurred: array<f32>;
@group(0) @binding(1) var<storage, read> reference: array<f32>;
@group(0) @binding(2) var<storage, read_write> contrast: array<f32>;
@group(0) @binding(3) var<storage, read_write> masks: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

fn at_row(y: i32) -> u32 {
    let last = i32(params.height) - 1;
    return (u32(last - abs(last - abs(y))) - params.first) * params.width;
}

@compute @workgroup_size(16, 16)
fn mask(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let y = i32(params.start + id.y);
    let at = at_row(y) + id.x;
    var sum = params.weights[0].x * blurred[at];
    for (var k = 1u; k <= params.reach; k++) {
        let weight = params.weights[k / 4u][k % 4u];
        sum += weight * (blurred[at_row(y - i32(k)) + id.x] + blurred[at_row(y + i32(k)) + id.x]);
    }
    masks[at] = pow(sum * params.mask_scale + params.epsilon, params.mask_power) - params.mask_zero;
    let apart = abs(contrast[at] - reference[at]);
    contrast[at] = pow(apart + params.epsilon, params.power) - params.zero;
}
