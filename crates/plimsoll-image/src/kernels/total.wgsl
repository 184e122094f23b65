// Sums of a plane: each workgroup adds up 8192 values, always in the same order.

struct Params {
    first: u32,     // the first value to add
    count: u32,     // how many values to add
    first_out: u32, // where the sums go
    unused: u32,
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> partial: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

var<workgroup> lanes: array<f32, 256>;

@compute @workgroup_size(256)
fn total(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    var sum = 0.0;
    for (var k = 0u; k < 32u; k++) {
        let at = group.x * 8192u + k * 256u + lane;
        if at < params.count {
            sum += source[params.first + at];
        }
    }
    lanes[lane] = sum;
    workgroupBarrier();
    for (var reach = 128u; reach > 0u; reach /= 2u) {
        if lane < reach {
            lanes[lane] += lanes[lane + reach];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        partial[params.first_out + group.x] = lanes[0];
    }
}
