// What each pixel lacks to be like the reference's, from Lab with smoothed chroma of both; and the sum of each
// workgroup.
// The reference's means and variances are worked out again: reading them would cost more than the arithmetic.

struct Params {
    width: u32,
    height: u32,    // of the whole scale, where the planes go on as their mirror image
    first_in: u32,  // the row of the scale that the sources begin with
    rows_in: u32,
    first_out: u32, // the row of the scale that the target begins with
    rows_out: u32,
}

@group(0) @binding(0) var<storage, read> reference_l: array<f32>;
@group(0) @binding(1) var<storage, read> reference_a: array<f32>;
@group(0) @binding(2) var<storage, read> reference_b: array<f32>;
@group(0) @binding(3) var<storage, read> distorted_l: array<f32>;
@group(0) @binding(4) var<storage, read> distorted_a: array<f32>;
@group(0) @binding(5) var<storage, read> distorted_b: array<f32>;
@group(0) @binding(6) var<storage, read_write> loss: array<f32>;
@group(0) @binding(7) var<storage, read_write> partial: array<f32>;
@group(0) @binding(8) var<uniform> params: Params;

// As in the twin, digit for digit.
const BLUR = array<f32, 5>(0.095332034, 0.2361899, 0.33695716, 0.2361899, 0.095332034);
// For three channels together.
const STEADY_MEANS = 3.0 * 0.01 * 0.01;
const STEADY_VARIANCES = 3.0 * 0.03 * 0.03;

// What a plane of ones is after the blur, and what was left out of Lab. The gain less one has its own constant, worked
// out in double precision, because here it would be lost.
const GAIN_LESS_ONE = 2.0563613e-6;
const GAIN = 1.0 + GAIN_LESS_ONE;
const CENTRES = vec3<f32>(0.5, 86.2 / 220.0 * GAIN, 107.9 / 220.0 * GAIN);
const CENTRES_SQUARED = 0.25 + (86.2 * 86.2 + 107.9 * 107.9) / (220.0 * 220.0) * GAIN * GAIN;

// Blurred along the rows, 16 x 20: the three channels and their squares, of each image, and the squared distances.
var<workgroup> reference: array<vec4<f32>, 320>;
var<workgroup> distorted: array<vec4<f32>, 320>;
var<workgroup> distances: array<f32, 320>;
var<workgroup> lanes: array<f32, 256>;

fn mirrored(at: i32, count: i32) -> i32 {
    let round = ((at % (2 * count)) + 2 * count) % (2 * count);
    return min(round, 2 * count - 1 - round);
}

fn blur_along(at: u32, x: i32, row: u32) {
    var one = vec4<f32>(0.0);
    var other = vec4<f32>(0.0);
    var apart = 0.0;
    for (var k = 0; k < 5; k++) {
        let source = row + u32(mirrored(x + k - 2, i32(params.width)));
        let a = vec3<f32>(reference_l[source], reference_a[source], reference_b[source]);
        let b = vec3<f32>(distorted_l[source], distorted_a[source], distorted_b[source]);
        one += BLUR[k] * vec4<f32>(a, dot(a, a));
        other += BLUR[k] * vec4<f32>(b, dot(b, b));
        apart += BLUR[k] * dot(b - a, b - a);
    }
    reference[at] = one;
    distorted[at] = other;
    distances[at] = apart;
}

fn loss_at(lane: u32) -> f32 {
    var one = vec4<f32>(0.0);
    var other = vec4<f32>(0.0);
    var apart = 0.0;
    for (var k = 0u; k < 5u; k++) {
        one += BLUR[k] * reference[lane + 16u * k];
        other += BLUR[k] * distorted[lane + 16u * k];
        apart += BLUR[k] * distances[lane + 16u * k];
    }
    let squared = vec2<f32>(dot(one.xyz, one.xyz), dot(other.xyz, other.xyz));
    let along = vec2<f32>(dot(CENTRES, one.xyz), dot(CENTRES, other.xyz));
    let means_squared = squared + 2.0 * GAIN * along + GAIN * GAIN * CENTRES_SQUARED;
    let corrections = -GAIN_LESS_ONE * (2.0 * along + GAIN * CENTRES_SQUARED);
    let variances = (vec2<f32>(one.w, other.w) - squared) + corrections;
    let means_apart = dot(other.xyz - one.xyz, other.xyz - one.xyz);
    apart -= means_apart;
    let means = means_squared.x + means_squared.y + STEADY_MEANS;
    let steadied = variances.x + variances.y + STEADY_VARIANCES;
    // 1 - similarity, in a form that keeps the digits of small losses: the twin says how.
    return (means_apart * steadied + apart * (means - means_apart)) / (means * steadied);
}

@compute @workgroup_size(16, 16)
fn losses(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let top = i32(params.first_out + group.y * 16u) - 2;
    for (var at = lane; at < 320u; at += 256u) {
        // Rows that only pixels beyond the target would need may be missing: any other will do.
        let y = mirrored(top + i32(at / 16u), i32(params.height)) - i32(params.first_in);
        let row = u32(clamp(y, 0, i32(params.rows_in) - 1)) * params.width;
        blur_along(at, i32(group.x * 16u + at % 16u), row);
    }
    workgroupBarrier();
    lanes[lane] = 0.0;
    if id.x < params.width && id.y < params.rows_out {
        let value = loss_at(lane);
        loss[id.y * params.width + id.x] = value;
        lanes[lane] = value;
    }
    workgroupBarrier();
    for (var reach = 128u; reach > 0u; reach /= 2u) {
        if lane < reach {
            lanes[lane] += lanes[lane + reach];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        partial[group.y * groups.x + group.x] = lanes[0];
    }
}
