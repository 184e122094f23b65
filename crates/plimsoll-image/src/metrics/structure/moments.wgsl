// The window along rows: of one image, and of two.

struct Params {
    width: u32, // pixels of a row; the result has ten fewer
    rows: u32,
    middle: f32,
    unused: u32,
}

const W0 = 0.26601172;
const W1 = 0.21300554;
const W2 = 0.10936069;
const W3 = 0.036000772;
const W4 = 0.007598758;
const W5 = 0.00102838;

@group(0) @binding(0) var<storage, read> reference: array<f32>;

fn one(at: u32, middle: f32) -> vec2<f32> {
    let value = reference[at] - middle;
    return vec2(value, value * value);
}

@group(0) @binding(1) var<storage, read_write> one_value: array<f32>;
@group(0) @binding(2) var<storage, read_write> one_square: array<f32>;
@group(0) @binding(3) var<uniform> one_params: Params;

@compute @workgroup_size(16, 16)
fn moments_of_one(@builtin(global_invocation_id) id: vec3<u32>) {
    let places = one_params.width - 10u;
    if id.x >= places || id.y >= one_params.rows {
        return;
    }
    let at = id.y * one_params.width + id.x;
    let m = one_params.middle;
    let sums = W0 * one(at + 5u, m) + W1 * (one(at + 4u, m) + one(at + 6u, m))
        + W2 * (one(at + 3u, m) + one(at + 7u, m)) + W3 * (one(at + 2u, m) + one(at + 8u, m))
        + W4 * (one(at + 1u, m) + one(at + 9u, m)) + W5 * (one(at, m) + one(at + 10u, m));
    let out = id.y * places + id.x;
    one_value[out] = sums.x;
    one_square[out] = sums.y;
}

@group(0) @binding(1) var<storage, read> distorted: array<f32>;
@group(0) @binding(2) var<storage, read_write> two_difference: array<f32>;
@group(0) @binding(3) var<storage, read_write> two_square: array<f32>;
@group(0) @binding(4) var<storage, read_write> two_own: array<f32>;
@group(0) @binding(5) var<uniform> two_params: Params;

fn two(at: u32, middle: f32) -> vec3<f32> {
    let sample = distorted[at];
    let difference = reference[at] - sample;
    let own = sample - middle;
    return vec3(difference, difference * difference, own * own);
}

@compute @workgroup_size(16, 16)
fn moments_of_two(@builtin(global_invocation_id) id: vec3<u32>) {
    let places = two_params.width - 10u;
    if id.x >= places || id.y >= two_params.rows {
        return;
    }
    let at = id.y * two_params.width + id.x;
    let m = two_params.middle;
    let sums = W0 * two(at + 5u, m) + W1 * (two(at + 4u, m) + two(at + 6u, m))
        + W2 * (two(at + 3u, m) + two(at + 7u, m)) + W3 * (two(at + 2u, m) + two(at + 8u, m))
        + W4 * (two(at + 1u, m) + two(at + 9u, m)) + W5 * (two(at, m) + two(at + 10u, m));
    let out = id.y * places + id.x;
    two_difference[out] = sums.x;
    two_square[out] = sums.y;
    two_own[out] = sums.z;
}
