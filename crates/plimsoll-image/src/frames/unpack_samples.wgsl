// Codes of a frame to a plane of numbers: 0 is the lowest code, 1 the highest.

struct Params {
    width: u32,
    height: u32,
    // The first sample of the plane, counted in samples from the start of the frame.
    first: u32,
    // Samples from one pixel to the next: 3 where planes lie interleaved.
    step: u32,
    // 1 or 2.
    sample_bytes: u32,
    // One over the highest code.
    scale: f32,
}

@group(0) @binding(0) var<storage, read> packed: array<u32>;
@group(0) @binding(1) var<storage, read_write> plane: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn unpack_samples(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let sample = params.first + at * params.step;
    var code: u32;
    if params.sample_bytes == 1u {
        code = (packed[sample >> 2u] >> ((sample & 3u) * 8u)) & 0xffu;
    } else {
        code = (packed[sample >> 1u] >> ((sample & 1u) * 16u)) & 0xffffu;
    }
    plane[at] = f32(code) * params.scale;
}
