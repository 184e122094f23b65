// Steps of one level cut into chunks, chunk behind chunk: one word of the result for each invocation. Chunks are whole;
// what lies beyond the array, or beyond the steps that are there, is the fill value.

struct Params {
    steps: vec4<u32>,    // elements along the first four of five dimensions of what is cut
    chunk: vec4<u32>,    // the same of a chunk
    counts: vec4<u32>,   // chunks along them
    steps_last: u32,     // elements along the fifth
    chunk_last: u32,
    counts_last: u32,
    width: u32,          // bytes of an element: 1, 2 or 4; one of eight is two of four
    fill_low: u32,       // the fill value of elements at even places, and at odd ones: they differ only for halves of eight
    fill_high: u32,
    elements: u32,       // of the result
    into: u32,           // the word with which it begins
    row: u32,            // words that one row of workgroups writes
    unused0: u32,
    unused1: u32,
    unused2: u32,
}

@group(0) @binding(0) var<storage, read> steps: array<u32>;
@group(0) @binding(1) var<storage, read_write> chunks: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

fn element(at: u32) -> u32 {
    let in_word = 4u / params.width;
    let bits = 8u * params.width;
    return (steps[at / in_word] >> (bits * (at % in_word))) & (0xffffffffu >> (32u - bits));
}

fn scattered(index: u32) -> u32 {
    let chunk_elements = params.chunk.x * params.chunk.y * params.chunk.z * params.chunk.w * params.chunk_last;
    var chunk = index / chunk_elements;
    var inside = index % chunk_elements;
    let last = inside % params.chunk_last;
    let e = (chunk % params.counts_last) * params.chunk_last + last;
    chunk = chunk / params.counts_last;
    inside = inside / params.chunk_last;
    let d = (chunk % params.counts.w) * params.chunk.w + inside % params.chunk.w;
    chunk = chunk / params.counts.w;
    inside = inside / params.chunk.w;
    let c = (chunk % params.counts.z) * params.chunk.z + inside % params.chunk.z;
    chunk = chunk / params.counts.z;
    inside = inside / params.chunk.z;
    let b = (chunk % params.counts.y) * params.chunk.y + inside % params.chunk.y;
    chunk = chunk / params.counts.y;
    inside = inside / params.chunk.y;
    let a = chunk * params.chunk.x + inside;
    if a >= params.steps.x || b >= params.steps.y || c >= params.steps.z || d >= params.steps.w || e >= params.steps_last {
        return select(params.fill_low, params.fill_high, (last & 1u) == 1u);
    }
    return element((((a * params.steps.y + b) * params.steps.z + c) * params.steps.w + d) * params.steps_last + e);
}

@compute @workgroup_size(64)
fn array_scatter(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = id.y * params.row + id.x;
    let in_word = 4u / params.width;
    if id.x >= params.row || word * in_word >= params.elements { return; }
    var packed = 0u;
    for (var at = 0u; at < in_word && word * in_word + at < params.elements; at++) {
        packed |= scattered(word * in_word + at) << (8u * params.width * at);
    }
    chunks[params.into + word] = packed;
}
