// One channel of a reference and its square, blurred along the rows. Beyond the edge lies zero.

struct Params {
    width: u32,
    rows: u32,
    structure: u32, // 0 where no variance is wanted
    unused: u32,
    near: vec4<f32>, // the blur's weights at distances 0 to 3
    far: vec4<f32>,  // and 4
}

@group(0) @binding(0) var<storage, read> samples: array<f32>;
@group(0) @binding(1) var<storage, read_write> blurred: array<f32>;
@group(0) @binding(2) var<storage, read_write> blurred_squares: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

fn weight(distance: u32) -> f32 {
    if distance == 4u {
        return params.far.x;
    }
    return params.near[distance];
}

@compute @workgroup_size(16, 16)
fn learn_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    let middle = samples[at];
    var sum = weight(0u) * vec2(middle, middle * middle);
    for (var k = 1u; k <= 4u; k++) {
        var before = 0.0;
        var after = 0.0;
        if id.x >= k {
            before = samples[at - k];
        }
        if id.x + k < params.width {
            after = samples[at + k];
        }
        sum += weight(k) * (vec2(before, before * before) + vec2(after, after * after));
    }
    blurred[at] = sum.x;
    if params.structure != 0u {
        blurred_squares[at] = sum.y;
    }
}
