// One level of a tree sum: each workgroup adds up to 1024 values, always in the same order.

struct Params {
    count: u32,     // values in the source
    first_out: u32, // where this launch's results go
    unused0: u32,
    unused1: u32,
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> partial: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

var<workgroup> lanes: array<f32, 256>;

@compute @workgroup_size(256)
fn sum(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    // Long rows of groups are folded over y.
    let index = group.y * groups.x + group.x;
    var total = 0.0;
    for (var k = 0u; k < 4u; k++) {
        let at = index * 1024u + k * 256u + lane;
        if at < params.count {
            total += source[at];
        }
    }
    lanes[lane] = total;
    workgroupBarrier();
    for (var reach = 128u; reach > 0u; reach /= 2u) {
        if lane < reach {
            lanes[lane] += lanes[lane + reach];
        }
        workgroupBarrier();
    }
    if lane == 0u && index * 1024u < params.count {
        partial[params.first_out + index] = lanes[0];
    }
}
