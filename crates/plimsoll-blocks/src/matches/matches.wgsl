// Match finding. A workgroup looks at one lane of the block, a segment of 256 positions between two barriers: first all of
// them are looked up, then all are put into the lane's table. So what is found depends on nobody's speed.

struct Params {
    bytes: u32,         // of the block
    distance_max: u32,
    row: u32,           // positions that one row of workgroups covers, in `match_first`
    unused: u32,
}

const SEGMENT = 256u;
const LANE = 65536u;
const WARM = 32768u;
const LANE_BITS = 14u;
const FIRST_BITS = 15u;
const LENGTH_MIN = 4u;
const LENGTH_MAX = 258u;

@group(0) @binding(0) var<storage, read> block: array<u32>;
@group(0) @binding(1) var<storage, read_write> first: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> lanes: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> found: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

fn byte_at(at: u32) -> u32 {
    return (block[at / 4u] >> (8u * (at % 4u))) & 0xffu;
}

// Four bytes from any position on; the buffer is longer than the block.
fn word_at(at: u32) -> u32 {
    let shift = 8u * (at % 4u);
    let low = block[at / 4u] >> shift;
    if shift == 0u { return low; }
    return low | (block[at / 4u + 1u] << (32u - shift));
}

fn hash(word: u32, bits: u32) -> u32 {
    return (word * 2654435761u) >> (32u - bits);
}

fn same(source: u32, position: u32) -> u32 {
    let limit = min(LENGTH_MAX, params.bytes - position);
    var count = 0u;
    while count + 4u <= limit {
        let differ = word_at(source + count) ^ word_at(position + count);
        if differ != 0u { return count + countTrailingZeros(differ) / 8u; }
        count += 4u;
    }
    while count < limit && byte_at(source + count) == byte_at(position + count) { count++; }
    return count;
}

// The better of a match and what a candidate gives: length in the upper 12 bits, distance in the lower 20.
fn better(best: u32, candidate: u32, position: u32) -> u32 {
    let distance = position - candidate;
    if distance > params.distance_max { return best; }
    let length = same(candidate, position);
    let longest = best >> 20u;
    if length < LENGTH_MIN || length < longest { return best; }
    if length == longest && distance >= (best & 0xfffffu) { return best; }
    return (length << 20u) | distance;
}

@compute @workgroup_size(256)
fn match_first(@builtin(global_invocation_id) id: vec3<u32>) {
    let position = id.y * params.row + id.x;
    if position + 4u > params.bytes { return; }
    atomicMin(&first[hash(word_at(position), FIRST_BITS)], position);
}

@compute @workgroup_size(256)
fn match_find(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = group.x * LANE;
    let table = group.x << LANE_BITS;
    let begin = select(0u, lane - WARM, lane >= WARM);
    let end = min(lane + LANE, params.bytes);
    for (var at = begin; at < end; at += SEGMENT) {
        let position = at + thread;
        let is_whole = position + 4u <= params.bytes;
        if at >= lane && position < params.bytes {
            var best = 0u;
            if is_whole {
                let word = word_at(position);
                let last = atomicLoad(&lanes[table + hash(word, LANE_BITS)]);
                if last > 0u { best = better(best, last - 1u, position); }
                let earliest = atomicLoad(&first[hash(word, FIRST_BITS)]);
                if earliest < position { best = better(best, earliest, position); }
                if position > 0u { best = better(best, position - 1u, position); }
            }
            found[position] = best;
        }
        storageBarrier();
        workgroupBarrier();
        if is_whole && position < end {
            atomicMax(&lanes[table + hash(word_at(position), LANE_BITS)], position + 1u);
        }
        storageBarrier();
        workgroupBarrier();
    }
}
