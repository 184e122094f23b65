// From linear light to the colours that SSIMULACRA 2 compares: XYB, moved and stretched so that all is positive.

struct Params {
    width: u32,
    rows: u32,
    first: u32, // the row of the light where to begin
    unused: u32,
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> x: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> b: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

const BIAS = 0.0037930734;
const BIAS_ROOT = 0.1559542;
const LIGHT_MIN = 1e-24;

// A third of the exponent, then two of Halley's steps: `pow` has too few right digits on some devices.
fn cube_root(value: vec3<f32>) -> vec3<f32> {
    var root = bitcast<vec3<f32>>(bitcast<vec3<u32>>(value) / 3u + 709958130u);
    var cube = root * root * root;
    root *= (cube + 2.0 * value) / (2.0 * cube + value);
    cube = root * root * root;
    return root * ((cube + 2.0 * value) / (2.0 * cube + value));
}

@compute @workgroup_size(16, 16)
fn colours(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = (params.first + id.y) * params.width + id.x;
    let out = id.y * params.width + id.x;
    let seen = vec3(0.30, 0.23, 0.24342269) * red[at]
        + (vec3(0.622, 0.692, 0.20476745) * green[at] + (vec3(0.078, 0.078, 0.55180986) * blue[at] + BIAS));
    let cones = cube_root(max(seen, vec3(LIGHT_MIN))) - BIAS_ROOT;
    let luma = 0.5 * (cones.x + cones.y);
    x[out] = (0.5 * (cones.x - cones.y)) * 14.0 + 0.42;
    y[out] = luma + 0.01;
    b[out] = (cones.z - luma) + 0.55;
}
