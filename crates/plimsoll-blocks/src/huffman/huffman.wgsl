// The bits of tokens. A workgroup writes one deflate block: each of its threads a run of tokens, behind those of the threads
// before it. Neighbours meet within a word, so bits are or-ed in; the words hold zeros there before.

struct Params {
    tokens: u32,    // of the stream
    group: u32,     // tokens of one block
    unused0: u32,
    unused1: u32,
}

const THREADS = 256u;
const MATCH = 0x80000000u;
const TABLE = 316u;
const LITERALS = 286u;

@group(0) @binding(0) var<storage, read> tokens: array<u32>;
@group(0) @binding(1) var<storage, read> starts: array<u32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(3) var<storage, read_write> words: array<atomic<u32>>;
@group(0) @binding(4) var<uniform> params: Params;

var<workgroup> sums: array<u32, 256>;

// A symbol in the lower 16 bits, how many extra bits it has above, and the bits themselves.
struct Symbol { symbol: u32, extra: u32, extra_bits: u32 }

fn length_symbol(length: u32) -> Symbol {
    if length == 255u { return Symbol(285u, 0u, 0u); }
    if length < 8u { return Symbol(257u + length, 0u, 0u); }
    let log = firstLeadingBit(length);
    let extra_bits = log - 2u;
    return Symbol(257u + 4u * extra_bits + (length >> extra_bits), length & ((1u << extra_bits) - 1u), extra_bits);
}

fn distance_symbol(distance: u32) -> Symbol {
    if distance < 4u { return Symbol(distance, 0u, 0u); }
    let log = firstLeadingBit(distance);
    let extra_bits = log - 1u;
    return Symbol(2u * log + ((distance >> extra_bits) & 1u), distance & ((1u << extra_bits) - 1u), extra_bits);
}

fn bits_of(token: u32, table: u32) -> u32 {
    if (token & MATCH) == 0u { return tables[table + (token & 0xffu)] >> 16u; }
    let length = length_symbol((token >> 16u) & 0xffu);
    let distance = distance_symbol(token & 0xffffu);
    let codes = (tables[table + length.symbol] >> 16u) + (tables[table + LITERALS + distance.symbol] >> 16u);
    return codes + length.extra_bits + distance.extra_bits;
}

fn put(at: u32, value: u32, bits: u32) -> u32 {
    if bits > 0u {
        let shift = at % 32u;
        atomicOr(&words[at / 32u], value << shift);
        if shift + bits > 32u { atomicOr(&words[at / 32u + 1u], value >> (32u - shift)); }
    }
    return at + bits;
}

fn put_symbol(at: u32, table: u32, symbol: Symbol) -> u32 {
    let code = tables[table + symbol.symbol];
    let behind = put(at, code & 0xffffu, code >> 16u);
    return put(behind, symbol.extra, symbol.extra_bits);
}

@compute @workgroup_size(256)
fn huffman_put(@builtin(workgroup_id) block: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let table = block.x * TABLE;
    let run = params.group / THREADS;
    let begin = block.x * params.group + thread * run;
    let end = min(begin + run, params.tokens);
    var bits = 0u;
    for (var at = begin; at < end; at++) { bits += bits_of(tokens[at], table); }
    sums[thread] = bits;
    workgroupBarrier();
    for (var step = 1u; step < THREADS; step *= 2u) {
        var before = 0u;
        if thread >= step { before = sums[thread - step]; }
        workgroupBarrier();
        sums[thread] += before;
        workgroupBarrier();
    }
    var place = starts[block.x] + sums[thread] - bits;
    for (var at = begin; at < end; at++) {
        let token = tokens[at];
        if (token & MATCH) == 0u {
            let code = tables[table + (token & 0xffu)];
            place = put(place, code & 0xffffu, code >> 16u);
        } else {
            place = put_symbol(place, table, length_symbol((token >> 16u) & 0xffu));
            place = put_symbol(place, table + LITERALS, distance_symbol(token & 0xffffu));
        }
    }
}
