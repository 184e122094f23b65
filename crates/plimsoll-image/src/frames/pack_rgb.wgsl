// Three planes of numbers to interleaved codes: one invocation for each word of 4 or 2 of them.

struct Params {
    // Samples to write.
    samples: u32,
    // The first word of the frame to write.
    first_word: u32,
    // 1 or 2.
    sample_bytes: u32,
    // The highest code.
    scale: f32,
    // The word to set if a sample was never computed.
    flag: u32,
    // The word to set when the last word was written.
    done: u32,
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> packed: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

fn code(at: u32) -> u32 {
    let pixel = at / 3u;
    let channel = at % 3u;
    var sample: f32;
    if channel == 0u {
        sample = red[pixel];
    } else if channel == 1u {
        sample = green[pixel];
    } else {
        sample = blue[pixel];
    }
    // A comparison of numbers could be optimised away.
    if (bitcast<u32>(sample) & 0x7fffffffu) > 0x7f800000u {
        packed[params.flag] = 1u;
    }
    return u32(clamp(sample, 0.0, 1.0) * params.scale + 0.5);
}

@compute @workgroup_size(16, 16)
fn pack_rgb(@builtin(global_invocation_id) id: vec3<u32>) {
    let each = 4u / params.sample_bytes;
    let word = id.y * 1024u + id.x;
    let first = word * each;
    if first >= params.samples {
        return;
    }
    var codes = 0u;
    for (var k = 0u; k < each && first + k < params.samples; k++) {
        codes |= code(first + k) << (k * 8u * params.sample_bytes);
    }
    packed[params.first_word + word] = codes;
    if first + each >= params.samples {
        packed[params.done] = 1u;
    }
}
