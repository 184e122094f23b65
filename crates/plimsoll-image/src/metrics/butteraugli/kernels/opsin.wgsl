// Linear red, green and blue into X, Y and B, in place. The sensitivity comes from the light around a pixel: the planes
// that were blurred along the rows are blurred down the columns here. Edges are mirrors.

struct Params {
    width: u32,
    rows: u32,
    weights: vec4<f32>, // by distance
}

@group(0) @binding(0) var<storage, read> red_around: array<f32>;
@group(0) @binding(1) var<storage, read> green_around: array<f32>;
@group(0) @binding(2) var<storage, read> blue_around: array<f32>;
@group(0) @binding(3) var<storage, read_write> red: array<f32>;
@group(0) @binding(4) var<storage, read_write> green: array<f32>;
@group(0) @binding(5) var<storage, read_write> blue: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

const NITS = 80.0;
const LEAST = vec3<f32>(1.7557483643287353, 1.7557483643287353, 12.226454707163354);

fn mirrored(at: i32) -> u32 {
    let count = i32(params.rows);
    return u32(select(select(at, 2 * count - 1 - at, at >= count), -at - 1, at < 0));
}

fn light_at(at: u32) -> vec3<f32> {
    return vec3(red_around[at], green_around[at], blue_around[at]);
}

fn mixed(light: vec3<f32>) -> vec3<f32> {
    let a = 0.29956550340058319 * light.x + 0.63373087833825936 * light.y + 0.077705617820981968 * light.z;
    let b = 0.22158691104574774 * light.x + 0.69391388044116142 * light.y + 0.0987313588422 * light.z;
    let c = 0.02 * light.x + 0.02 * light.y + 0.20480129041026129 * light.z;
    return vec3(a, b, c) + LEAST;
}

fn log2_near(value: vec3<f32>) -> vec3<f32> {
    let bits = bitcast<vec3<i32>>(value);
    let exponent = (bits - vec3(0x3f2aaaab)) >> vec3(23u);
    let part = bitcast<vec3<f32>>(bits - (exponent << vec3(23u))) - 1.0;
    let above = (0.74245873327820566 * part + 1.4287160470083755) * part - 1.850383340051831e-6;
    let below = (0.17409343003366853 * part + 1.0096718572241148) * part + 0.99032814277590719;
    return above / below + vec3<f32>(exponent);
}

fn gamma(light: vec3<f32>) -> vec3<f32> {
    return 19.245013259874995 * 0.6931471805599453 * log2_near(light + 9.9710635769299145) - 23.16046239805755;
}

@compute @workgroup_size(16, 16)
fn opsin(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let y = i32(id.y);
    let at = id.y * params.width + id.x;
    let near = light_at(mirrored(y - 1) * params.width + id.x) + light_at(mirrored(y + 1) * params.width + id.x);
    let far = light_at(mirrored(y - 2) * params.width + id.x) + light_at(mirrored(y + 2) * params.width + id.x);
    let around = light_at(at) * params.weights.x + near * params.weights.y + far * params.weights.z;
    let adapted = max(mixed(around * NITS), LEAST);
    let sensitivity = max(gamma(adapted) / adapted, vec3(1e-4));
    let seen = max(mixed(vec3(red[at], green[at], blue[at]) * NITS) * sensitivity, LEAST);
    red[at] = seen.x - seen.y;
    green[at] = seen.x + seen.y;
    blue[at] = seen.z;
}
