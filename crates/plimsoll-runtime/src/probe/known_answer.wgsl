// Whole numbers, fractions and memory shared by a workgroup, all exact, so that every right device gives the same bits.

struct Params {
    nonce: u32,
    unused0: u32,
    unused1: u32,
    unused2: u32,
}

@group(0) @binding(0) var<storage, read> steps: array<u32>;
@group(0) @binding(1) var<storage, read_write> answers: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

var<workgroup> shared_squares: array<u32, 64>;

@compute @workgroup_size(64)
fn known_answer(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let count = steps[id.x];
    var squares = 0u;
    var half = 1.0;
    var halves = 0.0;
    for (var k = 1u; k <= count; k++) {
        squares += k * k;
        if k <= 12u {
            half *= 0.5;
            halves += half;
        }
    }
    shared_squares[lane] = squares;
    workgroupBarrier();
    answers[id.x] = shared_squares[63u - lane] ^ params.nonce;
    let scaled = halves * f32(1u + params.nonce % 1000u);
    answers[256u + id.x] = bitcast<u32>(scaled) ^ params.nonce;
}
