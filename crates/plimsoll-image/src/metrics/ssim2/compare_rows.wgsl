// One channel of a distorted image beside its reference, blurred along the rows: their difference, its square, and the
// square of the distorted image. Beyond the edge lies zero.

struct Params {
    width: u32,
    rows: u32,
    structure: u32, // 0 where only the difference is wanted
    unused: u32,
    near: vec4<f32>, // the blur's weights at distances 0 to 3
    far: vec4<f32>,  // and 4
}

@group(0) @binding(0) var<storage, read> reference: array<f32>;
@group(0) @binding(1) var<storage, read> distorted: array<f32>;
@group(0) @binding(2) var<storage, read_write> shift: array<f32>;
@group(0) @binding(3) var<storage, read_write> squares: array<f32>;
@group(0) @binding(4) var<storage, read_write> energy: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

fn weight(distance: u32) -> f32 {
    if distance == 4u {
        return params.far.x;
    }
    return params.near[distance];
}

fn values(at: u32) -> vec3<f32> {
    let other = distorted[at];
    let difference = reference[at] - other;
    return vec3(difference, difference * difference, other * other);
}

@compute @workgroup_size(16, 16)
fn compare_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    var sum = weight(0u) * values(at);
    for (var k = 1u; k <= 4u; k++) {
        var before = vec3(0.0);
        var after = vec3(0.0);
        if id.x >= k {
            before = values(at - k);
        }
        if id.x + k < params.width {
            after = values(at + k);
        }
        sum += weight(k) * (before + after);
    }
    shift[at] = sum.x;
    if params.structure != 0u {
        squares[at] = sum.y;
        energy[at] = sum.z;
    }
}
