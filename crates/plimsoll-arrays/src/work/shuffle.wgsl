// Chunks whose blocks are shuffled, each by itself: one word of the result for each invocation.

struct Params {
    chunk: u32,     // bytes of a chunk
    block: u32,     // bytes of its blocks; the last one has what is left
    width: u32,     // bytes of an element
    is_bits: u32,   // 1: by bits, 0: by bytes
    bytes: u32,     // of all chunks
    begin: u32,     // the word with which they begin, in both buffers
    row: u32,       // words that one row of workgroups writes
    unused: u32,
}

@group(0) @binding(0) var<storage, read> chunks: array<u32>;
@group(0) @binding(1) var<storage, read_write> shuffled: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

fn byte(at: u32) -> u32 {
    return (chunks[params.begin + at / 4u] >> (8u * (at % 4u))) & 0xffu;
}

// One byte of the result. Blocks whose elements do not come in eights stay as they are if they are shuffled by bits.
fn shuffled_byte(at: u32) -> u32 {
    let chunk = at / params.chunk * params.chunk;
    let inside = at - chunk;
    let block = inside / params.block * params.block;
    let bytes = min(params.block, params.chunk - block);
    let place = inside - block;
    let elements = bytes / params.width;
    let begin = chunk + block;
    if params.is_bits == 0u {
        return byte(begin + place % elements * params.width + place / elements);
    }
    if elements % 8u != 0u { return byte(at); }
    // A row holds one bit of every element, eight elements a byte.
    let row_bytes = elements / 8u;
    let row = place / row_bytes;
    let first = 8u * (place % row_bytes);
    var packed = 0u;
    for (var next = 0u; next < 8u; next++) {
        let bit = byte(begin + (first + next) * params.width + row / 8u) >> (row % 8u);
        packed |= (bit & 1u) << next;
    }
    return packed;
}

@compute @workgroup_size(64)
fn array_shuffle(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = id.y * params.row + id.x;
    if id.x >= params.row || word * 4u >= params.bytes { return; }
    var packed = 0u;
    for (var at = 0u; at < 4u && word * 4u + at < params.bytes; at++) {
        packed |= shuffled_byte(word * 4u + at) << (8u * at);
    }
    shuffled[params.begin + word] = packed;
}
