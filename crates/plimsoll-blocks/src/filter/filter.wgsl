// The steps of a filter forwards, four bytes of the result for each invocation.
// What lies behind the last whole element stays as it is.

struct Params {
    bytes: u32,   // of the block
    width: u32,   // of an element: 1, 2, 4 or 8
    row: u32,     // words that one row of workgroups writes
    unused: u32,
}

@group(0) @binding(0) var<storage, read> block: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

fn byte_at(at: u32) -> u32 {
    return (block[at / 4u] >> (8u * (at % 4u))) & 0xffu;
}

fn shuffled(at: u32) -> u32 {
    let count = params.bytes / params.width;
    if at >= count * params.width { return byte_at(at); }
    return byte_at(at % count * params.width + at / count);
}

fn bitshuffled(at: u32) -> u32 {
    let plane = params.bytes / params.width / 8u;
    if at >= plane * 8u * params.width { return byte_at(at); }
    let bit = at / plane;
    let group = at % plane;
    var bits = 0u;
    for (var row = 0u; row < 8u; row++) {
        let element = byte_at((group * 8u + row) * params.width + bit / 8u);
        bits |= ((element >> (bit % 8u)) & 1u) << row;
    }
    return bits;
}

// One byte of the difference: subtract up to it, with the borrow of the bytes below.
fn differed(at: u32) -> u32 {
    let element = at / params.width;
    let count = params.bytes / params.width;
    if element == 0u || element >= count { return byte_at(at); }
    let byte = at % params.width;
    let start = at - byte;
    var borrow = 0u;
    var difference = 0u;
    for (var below = 0u; below <= byte; below++) {
        let taken = byte_at(start - params.width + below) + borrow;
        let minuend = byte_at(start + below);
        difference = (minuend - taken) & 0xffu;
        borrow = select(0u, 1u, minuend < taken);
    }
    return difference;
}

fn word_of(id: vec3<u32>) -> u32 {
    return id.y * params.row + id.x;
}

@compute @workgroup_size(256)
fn filter_shuffle(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = word_of(id);
    if word >= arrayLength(&result) || word * 4u >= params.bytes { return; }
    var packed = 0u;
    for (var byte = 0u; byte < 4u && word * 4u + byte < params.bytes; byte++) {
        packed |= shuffled(word * 4u + byte) << (8u * byte);
    }
    result[word] = packed;
}

@compute @workgroup_size(256)
fn filter_bitshuffle(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = word_of(id);
    if word >= arrayLength(&result) || word * 4u >= params.bytes { return; }
    var packed = 0u;
    for (var byte = 0u; byte < 4u && word * 4u + byte < params.bytes; byte++) {
        packed |= bitshuffled(word * 4u + byte) << (8u * byte);
    }
    result[word] = packed;
}

@compute @workgroup_size(256)
fn filter_delta(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = word_of(id);
    if word >= arrayLength(&result) || word * 4u >= params.bytes { return; }
    var packed = 0u;
    for (var byte = 0u; byte < 4u && word * 4u + byte < params.bytes; byte++) {
        packed |= differed(word * 4u + byte) << (8u * byte);
    }
    result[word] = packed;
}
