// One coarser level from a finer one, one word of the result for each invocation.
// Floats are ordered and passed on by their bits; nothing here calculates with them.

struct Params {
    finer: vec4<u32>,    // elements along the first four of five dimensions
    coarser: vec4<u32>,  // the same of what comes out
    finer_last: u32,     // elements along the fifth
    coarser_last: u32,
    halved: u32,         // bit d: dimension d is halved
    elements: u32,       // of the result
    width: u32,          // bytes of an element: 1, 2 or 4
    kind: u32,           // 0 unsigned, 1 signed, 2 float
    reduction: u32,      // 0 mean, 1 min, 2 max, 3 median, 4 second-highest
    row: u32,            // words that one row of workgroups writes
}

const SIGNED = 1u;
const FLOAT = 2u;
const MEAN = 0u;
const MIN = 1u;
const MAX = 2u;
const MEDIAN = 3u;
const NAN_KEY = 0xffffffffu;

@group(0) @binding(0) var<storage, read> finer: array<u32>;
@group(0) @binding(1) var<storage, read_write> coarser: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

var<private> window: array<u32, 8>;

fn bits() -> u32 {
    return 8u * params.width;
}

fn all_bits() -> u32 {
    return 0xffffffffu >> (32u - bits());
}

fn sign_bit() -> u32 {
    return 1u << (bits() - 1u);
}

// The bits of infinity: every larger magnitude is a NaN.
fn infinity() -> u32 {
    return select(0x7f800000u, 0x7c00u, params.width == 2u);
}

fn canonical_nan() -> u32 {
    return select(0x7fc00000u, 0x7e00u, params.width == 2u);
}

fn element(at: u32) -> u32 {
    let in_word = 4u / params.width;
    return (finer[at / in_word] >> (bits() * (at % in_word))) & all_bits();
}

fn sign_extended(x: u32) -> u32 {
    let unused = 32u - bits();
    return bitcast<u32>(bitcast<i32>(x << unused) >> unused);
}

// A number that is ordered as the element is.
fn key_of(x: u32) -> u32 {
    if params.kind == FLOAT {
        if (x & ~sign_bit()) > infinity() { return NAN_KEY; }
        return select(x | sign_bit(), ~x & all_bits(), (x & sign_bit()) != 0u);
    }
    if params.kind == SIGNED { return sign_extended(x) ^ 0x80000000u; }
    return x;
}

fn of_key(key: u32) -> u32 {
    if params.kind == FLOAT {
        if key == NAN_KEY { return canonical_nan(); }
        return select(~key & all_bits(), key ^ sign_bit(), (key & sign_bit()) != 0u);
    }
    if params.kind == SIGNED { return (key ^ 0x80000000u) & all_bits(); }
    return key;
}

// The first element of a window along a dimension, and how many it has.
fn span(dimension: u32, at: u32, size: u32) -> vec2<u32> {
    if ((params.halved >> dimension) & 1u) == 0u { return vec2<u32>(at, at + 1u); }
    return vec2<u32>(2u * at, min(2u * at + 2u, size));
}

// Gathers the window that an element of the result stands for; says how many elements it has.
fn gather(index: u32) -> u32 {
    var rest = index;
    let x4 = span(4u, rest % params.coarser_last, params.finer_last);
    rest = rest / params.coarser_last;
    let x3 = span(3u, rest % params.coarser.w, params.finer.w);
    rest = rest / params.coarser.w;
    let x2 = span(2u, rest % params.coarser.z, params.finer.z);
    rest = rest / params.coarser.z;
    let x1 = span(1u, rest % params.coarser.y, params.finer.y);
    let x0 = span(0u, rest / params.coarser.y, params.finer.x);
    var count = 0u;
    for (var a = x0.x; a < x0.y; a++) {
        for (var b = x1.x; b < x1.y; b++) {
            for (var c = x2.x; c < x2.y; c++) {
                for (var d = x3.x; d < x3.y; d++) {
                    let line = (((a * params.finer.y + b) * params.finer.z + c) * params.finer.w + d) * params.finer_last;
                    for (var e = x4.x; e < x4.y && count < 8u; e++) {
                        window[count] = element(line + e);
                        count++;
                    }
                }
            }
        }
    }
    return count;
}

// The sum of what each element gives to the mean, and of what is left of it: nothing overflows. The count is a power of
// two, so both are shifts.
fn mean(count: u32) -> u32 {
    let shift = firstTrailingBit(count);
    var whole = 0u;
    var left = 0u;
    for (var at = 0u; at < count; at++) {
        let x = window[at];
        left += x & (count - 1u);
        if params.kind == SIGNED {
            whole += bitcast<u32>(bitcast<i32>(sign_extended(x)) >> shift);
        } else {
            whole += x >> shift;
        }
    }
    return (whole + ((left + count / 2u) >> shift)) & all_bits();
}

// The element of a rank, the least first.
fn ranked(count: u32) -> u32 {
    for (var at = 0u; at < count; at++) {
        let key = key_of(window[at]);
        var to = at;
        while to > 0u && window[to - 1u] > key {
            window[to] = window[to - 1u];
            to--;
        }
        window[to] = key;
    }
    let last = count - 1u;
    var rank = last;
    if params.reduction == MIN {
        rank = 0u;
    } else if params.reduction == MEDIAN {
        rank = last / 2u;
    } else if params.reduction != MAX && last > 0u {
        rank = last - 1u;
    }
    return of_key(window[rank]);
}

@compute @workgroup_size(64)
fn array_reduce(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = id.y * params.row + id.x;
    let in_word = 4u / params.width;
    if id.x >= params.row || word * in_word >= params.elements { return; }
    var packed = 0u;
    for (var at = 0u; at < in_word && word * in_word + at < params.elements; at++) {
        let count = gather(word * in_word + at);
        var reduced = 0u;
        if params.reduction == MEAN {
            reduced = mean(count);
        } else {
            reduced = ranked(count);
        }
        packed |= reduced << (bits() * at);
    }
    coarser[word] = packed;
}
