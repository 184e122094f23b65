// Takes each word through a linear congruential generator, as many rounds as asked: as slow as one likes, and exact.

struct Params {
    rounds: u32,
    unused0: u32,
    unused1: u32,
    unused2: u32,
}

@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(64)
fn stir(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&words) {
        return;
    }
    var word = words[id.x];
    for (var round = 0u; round < params.rounds; round++) {
        word = word * 1664525u + 1013904223u;
    }
    words[id.x] = word;
}
