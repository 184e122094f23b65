// The pooling of a scale's losses: the level that they are measured from, and the sums of their distances from it.

struct Params {
    count: u32,     // values to take in
    first_out: u32, // where the result goes
    scale: u32,     // the scale's number, the full size being 0
    pixels: f32,    // of the scale
}

@group(0) @binding(0) var<storage, read> partial: array<f32>;
@group(0) @binding(1) var<storage, read_write> level_out: array<f32>;
@group(0) @binding(2) var<uniform> params_level: Params;

@group(0) @binding(0) var<storage, read> loss: array<f32>;
@group(0) @binding(1) var<storage, read> level_in: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> lanes: array<f32, 256>;

// The sum of all lanes ends up in the first.
fn add_up(lane: u32) {
    workgroupBarrier();
    for (var reach = 128u; reach > 0u; reach /= 2u) {
        if lane < reach {
            lanes[lane] += lanes[lane + reach];
        }
        workgroupBarrier();
    }
}

// One workgroup: the level from the sums that the kernel `losses` left.
@compute @workgroup_size(256)
fn level(@builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var at = lane; at < params_level.count; at += 256u) {
        sum += partial[at];
    }
    lanes[lane] = sum;
    add_up(lane);
    if lane == 0u {
        var level = min(lanes[0] / params_level.pixels, 1.0);
        for (var k = 0u; k < params_level.scale; k++) {
            level /= 1.0 + sqrt(1.0 - level);
        }
        level_out[params_level.first_out] = level;
    }
}

// Each workgroup adds up the distances of 8192 losses.
@compute @workgroup_size(256)
fn distances(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let level = level_in[params.scale];
    var sum = 0.0;
    for (var k = 0u; k < 32u; k++) {
        let at = group.x * 8192u + k * 256u + lane;
        if at < params.count {
            sum += abs(loss[at] - level);
        }
    }
    lanes[lane] = sum;
    add_up(lane);
    if lane == 0u {
        sums[params.first_out + group.x] = lanes[0];
    }
}
