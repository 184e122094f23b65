// Linear samples into the light of a display, and that into the opponent channels of DKL: achromatic, red-green,
// yellow-violet. In place.

struct Params {
    count: u32,       // pixels
    width: u32,       // pixels in a row of invocations
    unused: vec2<u32>,
    light: vec4<f32>, // gain, lowest, highest, offset
    achromatic: vec4<f32>,
    red_green: vec4<f32>,
    yellow_violet: vec4<f32>,
}

@group(0) @binding(0) var<storage, read_write> red: array<f32>;
@group(0) @binding(1) var<storage, read_write> green: array<f32>;
@group(0) @binding(2) var<storage, read_write> blue: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn opponent(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = id.y * params.width + id.x;
    if id.x >= params.width || at >= params.count {
        return;
    }
    let sample = vec3(red[at], green[at], blue[at]);
    let light = clamp(sample * params.light.x, vec3(params.light.y), vec3(params.light.z)) + params.light.w;
    red[at] = dot(light, params.achromatic.xyz);
    green[at] = dot(light, params.red_green.xyz);
    blue[at] = dot(light, params.yellow_violet.xyz);
}
