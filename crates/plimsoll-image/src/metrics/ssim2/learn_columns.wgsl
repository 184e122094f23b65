// The mean and the variance around each pixel, from samples and squares that are blurred along the rows. Beyond the
// edge lies zero.

struct Params {
    width: u32,
    rows: u32,
    structure: u32, // 0 where no variance is wanted
    unused: u32,
    near: vec4<f32>, // the blur's weights at distances 0 to 3
    far: vec4<f32>,  // and 4
}

@group(0) @binding(0) var<storage, read> blurred: array<f32>;
@group(0) @binding(1) var<storage, read> blurred_squares: array<f32>;
@group(0) @binding(2) var<storage, read_write> mean: array<f32>;
@group(0) @binding(3) var<storage, read_write> variance: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

fn weight(distance: u32) -> f32 {
    if distance == 4u {
        return params.far.x;
    }
    return params.near[distance];
}

@compute @workgroup_size(16, 16)
fn learn_columns(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    var sum = weight(0u) * vec2(blurred[at], blurred_squares[at]);
    for (var k = 1u; k <= 4u; k++) {
        var before = vec2(0.0);
        var after = vec2(0.0);
        if id.y >= k {
            before = vec2(blurred[at - k * params.width], blurred_squares[at - k * params.width]);
        }
        if id.y + k < params.rows {
            after = vec2(blurred[at + k * params.width], blurred_squares[at + k * params.width]);
        }
        sum += weight(k) * (before + after);
    }
    mean[at] = sum.x;
    if params.structure != 0u {
        variance[at] = sum.y - sum.x * sum.x;
    }
}
