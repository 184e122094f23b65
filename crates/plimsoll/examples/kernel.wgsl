// y = a · x + y, over as many elements as there are invocations left after rounding up.

struct Params {
    a: f32,
    count: u32,
    unused0: u32,
    unused1: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn scale_and_add(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < params.count {
        y[id.x] = params.a * x[id.x] + y[id.x];
    }
}
