// Weights from levels of bit planes, one for each invocation. A level is a table of what its cells stand for, in the coarsest
// level the scales of the groups, and for each 32 weights the words of its planes.

struct Params {
    weights: u32, // that are decoded
    levels: u32,  // that are there
    row: u32,     // weights that one row of workgroups writes
    bits: u32,    // of a code that are known with them
    scales: u32,  // where the scales begin in the coarsest level, in words
    added: u32,   // planes of each level, four bits each
    planes_0: u32, // where the planes of each level begin, in words
    planes_1: u32,
    planes_2: u32,
    planes_3: u32,
    planes_4: u32,
    classes: u32,
    begin: u32,   // the first weight that is decoded; the first of a group
    all: u32,     // weights of the piece
    unused_0: u32,
    unused_1: u32,
}

@group(0) @binding(0) var<storage, read> level_0: array<u32>;
@group(0) @binding(1) var<storage, read> level_1: array<u32>;
@group(0) @binding(2) var<storage, read> level_2: array<u32>;
@group(0) @binding(3) var<storage, read> level_3: array<u32>;
@group(0) @binding(4) var<storage, read> level_4: array<u32>;
@group(0) @binding(5) var<storage, read_write> result: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

fn word(level: u32, at: u32) -> u32 {
    switch level {
        case 0u: { return level_0[at]; }
        case 1u: { return level_1[at]; }
        case 2u: { return level_2[at]; }
        case 3u: { return level_3[at]; }
        default: { return level_4[at]; }
    }
}

fn planes(level: u32) -> u32 {
    switch level {
        case 0u: { return params.planes_0; }
        case 1u: { return params.planes_1; }
        case 2u: { return params.planes_2; }
        case 3u: { return params.planes_3; }
        default: { return params.planes_4; }
    }
}

@compute @workgroup_size(64)
fn fragments_decode(@builtin(global_invocation_id) id: vec3<u32>) {
    let place = id.y * params.row + id.x;
    if place >= params.weights {
        return;
    }
    let at = params.begin + place;
    var code = 0u;
    for (var level = 0u; level < params.levels; level++) {
        let added = (params.added >> (4u * level)) & 0xfu;
        let begin = planes(level) + at / 32u * added;
        for (var plane = 0u; plane < added; plane++) {
            code = (code << 1u) | ((word(level, begin + plane) >> (at % 32u)) & 1u);
        }
    }
    let group = at / 64u;
    let header = (level_0[params.scales + group / 2u] >> (16u * (group % 2u))) & 0xffffu;
    let class_ = min(((header >> 13u) & 4u) | (header & 3u), params.classes - 1u);
    let scale = bitcast<f32>((header & 0x7ffcu) << 16u);
    let entry = bitcast<f32>(word(params.levels - 1u, (class_ << params.bits) + code));
    result[place] = scale * entry;
}
