// The window down columns: statistics of the reference, and similarity to it.

struct Params {
    places: u32, // places for the window in a row
    rows: u32,   // rows of places
    middle: f32,
    c1: f32,
    c2: f32,
    luminance: u32, // whether the luminance term counts
    unused: vec2<u32>,
}

const W0 = 0.26601172;
const W1 = 0.21300554;
const W2 = 0.10936069;
const W3 = 0.036000772;
const W4 = 0.007598758;
const W5 = 0.00102838;

@group(0) @binding(0) var<storage, read> first: array<f32>;
@group(0) @binding(1) var<storage, read> second: array<f32>;

fn one(at: u32) -> vec2<f32> {
    return vec2(first[at], second[at]);
}

@group(0) @binding(2) var<storage, read_write> mean_out: array<f32>;
@group(0) @binding(3) var<storage, read_write> variance_out: array<f32>;
@group(0) @binding(4) var<uniform> describe_params: Params;

@compute @workgroup_size(16, 16)
fn describe(@builtin(global_invocation_id) id: vec3<u32>) {
    let w = describe_params.places;
    if id.x >= w || id.y >= describe_params.rows {
        return;
    }
    let at = id.y * w + id.x;
    let sums = W0 * one(at + 5u * w) + W1 * (one(at + 4u * w) + one(at + 6u * w))
        + W2 * (one(at + 3u * w) + one(at + 7u * w)) + W3 * (one(at + 2u * w) + one(at + 8u * w))
        + W4 * (one(at + w) + one(at + 9u * w)) + W5 * (one(at) + one(at + 10u * w));
    mean_out[at] = sums.x + describe_params.middle;
    variance_out[at] = max(sums.y - sums.x * sums.x, 0.0);
}

@group(0) @binding(2) var<storage, read> third: array<f32>;
@group(0) @binding(3) var<storage, read> mean: array<f32>;
@group(0) @binding(4) var<storage, read> variance: array<f32>;
@group(0) @binding(5) var<storage, read_write> similar: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

fn two(at: u32) -> vec3<f32> {
    return vec3(first[at], second[at], third[at]);
}

@compute @workgroup_size(16, 16)
fn similarity(@builtin(global_invocation_id) id: vec3<u32>) {
    let w = params.places;
    if id.x >= w || id.y >= params.rows {
        return;
    }
    let at = id.y * w + id.x;
    let sums = W0 * two(at + 5u * w) + W1 * (two(at + 4u * w) + two(at + 6u * w))
        + W2 * (two(at + 3u * w) + two(at + 7u * w)) + W3 * (two(at + 2u * w) + two(at + 8u * w))
        + W4 * (two(at + w) + two(at + 9u * w)) + W5 * (two(at) + two(at + 10u * w));
    let mean_own = mean[at] - sums.x;
    let off_middle = mean_own - params.middle;
    let variance_own = max(sums.z - off_middle * off_middle, 0.0);
    let variance_apart = max(sums.y - sums.x * sums.x, 0.0);
    let structure = 1.0 - variance_apart / (variance[at] + variance_own + params.c2);
    let luminance = 1.0 - sums.x * sums.x / (mean[at] * mean[at] + mean_own * mean_own + params.c1);
    similar[at] = select(structure, structure * luminance, params.luminance != 0u);
}
