// A plane rounded to codes, up or down as a pattern says, so that the mean stays.

struct Params {
    width: u32,
    height: u32,
    // The highest code.
    highest: f32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

// Bayer's matrix of 8 x 8: the bits of x ^ y and y, interleaved from the lowest to the highest.
fn rank(x: u32, y: u32) -> u32 {
    let d = x ^ y;
    return ((d & 1u) << 5u) | ((y & 1u) << 4u) | ((d & 2u) << 2u) | ((y & 2u) << 1u) | ((d & 4u) >> 1u) | ((y & 4u) >> 2u);
}

@compute @workgroup_size(16, 16)
fn dither(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let threshold = (f32(rank(id.x & 7u, id.y & 7u)) + 0.5) / 64.0;
    output[at] = floor(input[at] * params.highest + threshold) / params.highest;
}
