// Two chroma planes, turned about their middle.

struct Params {
    width: u32,
    height: u32,
    // The cosine and the sine of the angle, times the saturation.
    cosine: f32,
    sine: f32,
    // The number of no colour.
    middle: f32,
}

@group(0) @binding(0) var<storage, read> blue: array<f32>;
@group(0) @binding(1) var<storage, read> red: array<f32>;
@group(0) @binding(2) var<storage, read_write> out_blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> out_red: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn hue(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let u = blue[at] - params.middle;
    let v = red[at] - params.middle;
    out_blue[at] = params.middle + params.cosine * u - params.sine * v;
    out_red[at] = params.middle + params.sine * u + params.cosine * v;
}
