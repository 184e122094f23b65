// Weights to the last bit: what the finest level of bit planes says, moved on by the difference that the exact level has for
// each, in the order of all numbers of the tensor's type. Whole numbers only, so that no device flushes or rounds anything.

struct Params {
    weights: u32, // that are decoded
    row: u32,     // weights that one row of workgroups writes
    begin: u32,   // the first of them in the piece
    kind: u32,    // 0: half floats, 1: bfloat16, 2: 32-bit floats
}

@group(0) @binding(0) var<storage, read> differences: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>; // floats, as bits
@group(0) @binding(2) var<uniform> params: Params;

// The nearest number of the type, ties to even.
fn narrowed(x: u32) -> u32 {
    if params.kind == 2u {
        return x;
    }
    if params.kind == 1u {
        return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
    }
    let sign = (x >> 16u) & 0x8000u;
    let exponent = i32((x >> 23u) & 0xffu) - 112;
    let fraction = x & 0x7fffffu;
    if exponent >= 31 {
        return sign | 0x7c00u;
    }
    if exponent < -10 {
        return sign;
    }
    if exponent <= 0 {
        let whole = fraction | 0x800000u;
        let shift = u32(14 - exponent);
        return sign | rounded(whole >> shift, whole & ((1u << shift) - 1u), 1u << (shift - 1u));
    }
    return sign | rounded((u32(exponent) << 10u) | (fraction >> 13u), fraction & 0x1fffu, 0x1000u);
}

fn rounded(number: u32, rest: u32, half: u32) -> u32 {
    if rest > half || (rest == half && (number & 1u) == 1u) {
        return number + 1u;
    }
    return number;
}

// The same number as a 32-bit float.
fn widened(x: u32) -> u32 {
    if params.kind == 2u {
        return x;
    }
    if params.kind == 1u {
        return x << 16u;
    }
    let sign = (x & 0x8000u) << 16u;
    let exponent = (x >> 10u) & 0x1fu;
    let fraction = x & 0x3ffu;
    if exponent == 31u {
        return sign | 0x7f800000u | (fraction << 13u);
    }
    if exponent != 0u {
        return sign | ((exponent + 112u) << 23u) | (fraction << 13u);
    }
    if fraction == 0u {
        return sign;
    }
    let leading = firstLeadingBit(fraction);
    return sign | ((leading + 103u) << 23u) | ((fraction << (23u - leading)) & 0x7fffffu);
}

@compute @workgroup_size(64)
fn fragments_exact(@builtin(global_invocation_id) id: vec3<u32>) {
    let place = id.y * params.row + id.x;
    if place >= params.weights {
        return;
    }
    let at = params.begin + place;
    var difference = 0u;
    var sign = 0x80000000u;
    var mask = 0xffffffffu;
    if params.kind == 2u {
        difference = differences[at];
    } else {
        difference = (differences[at / 2u] >> (16u * (at % 2u))) & 0xffffu;
        sign = 0x8000u;
        mask = 0xffffu;
    }
    let near = narrowed(result[place]);
    let rank = select(near | sign, ~near, (near & sign) != 0u);
    let moved = (rank + ((difference >> 1u) ^ (~(difference & 1u) + 1u))) & mask;
    let exact = select(~moved, moved & ~sign, (moved & sign) != 0u) & mask;
    result[place] = widened(exact);
}
