// Linear light to lightness and smoothed chroma, each about zero: the twin says what is left out, and why.
// A workgroup works out Lab for its 16 x 16 pixels and two more on each side, once, and blurs the chroma from there.

struct Params {
    width: u32,
    height: u32,    // of the whole scale, where the planes go on as their mirror image
    first_in: u32,  // the row of the scale that the source begins with
    rows_in: u32,
    first_out: u32, // the row of the scale that the target begins with
    rows_out: u32,
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> lightness: array<f32>;
@group(0) @binding(4) var<storage, read_write> red_green: array<f32>;
@group(0) @binding(5) var<storage, read_write> blue_yellow: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

// As in the twin, digit for digit.
const BLUR = array<f32, 5>(0.095332034, 0.2361899, 0.33695716, 0.2361899, 0.095332034);

var<workgroup> pixels: array<vec3<f32>, 400>; // 20 x 20
var<workgroup> along: array<vec2<f32>, 320>;  // 16 x 20

fn mirrored(at: i32, count: i32) -> i32 {
    let round = ((at % (2 * count)) + 2 * count) % (2 * count);
    return min(round, 2 * count - 1 - round);
}

// The same steps as the twin's: the bits give a guess, and two steps improve it.
fn cube_root(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    var third = (bits >> 2u) + (bits >> 4u);
    third += third >> 4u;
    third += third >> 8u;
    var inverse = bitcast<f32>(0x54a21d2au - third);
    var error = 1.0 - x * inverse * inverse * inverse;
    inverse += inverse * error * (1.0 / 3.0 + error * (2.0 / 9.0));
    error = 1.0 - x * inverse * inverse * inverse;
    inverse += inverse * error * (1.0 / 3.0);
    return x * inverse * inverse;
}

fn lab_curve(x: f32) -> f32 {
    if x > 216.0 / 24389.0 {
        return cube_root(x) - 16.0 / 116.0;
    }
    return 24389.0 / (27.0 * 116.0) * x;
}

fn lab_of(r: f32, g: f32, b: f32) -> vec3<f32> {
    let x = lab_curve(0.4124 / 0.9505 * r + 0.3576 / 0.9505 * g + 0.1805 / 0.9505 * b);
    let y = lab_curve(0.2126 * r + 0.7152 * g + 0.0722 * b);
    let z = lab_curve(0.0193 / 1.089 * r + 0.1192 / 1.089 * g + 0.9505 / 1.089 * b);
    return vec3<f32>(1.05 * y - 0.5, 500.0 / 220.0 * (x - y), 200.0 / 220.0 * (y - z));
}

@compute @workgroup_size(16, 16)
fn lab_planes(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    let left = i32(group.x * 16u) - 2;
    let top = i32(params.first_out + group.y * 16u) - 2;
    for (var at = lane; at < 400u; at += 256u) {
        let x = mirrored(left + i32(at % 20u), i32(params.width));
        // Rows that only pixels beyond the target would need may be missing: any other will do.
        let y = mirrored(top + i32(at / 20u), i32(params.height)) - i32(params.first_in);
        let source = u32(clamp(y, 0, i32(params.rows_in) - 1)) * params.width + u32(x);
        pixels[at] = lab_of(red[source], green[source], blue[source]);
    }
    workgroupBarrier();
    for (var at = lane; at < 320u; at += 256u) {
        let first = at / 16u * 20u + at % 16u;
        var sum = vec2<f32>(0.0);
        for (var k = 0u; k < 5u; k++) {
            sum += BLUR[k] * pixels[first + k].yz;
        }
        along[at] = sum;
    }
    workgroupBarrier();
    if id.x < params.width && id.y < params.rows_out {
        var sum = vec2<f32>(0.0);
        for (var k = 0u; k < 5u; k++) {
            sum += BLUR[k] * along[lane + 16u * k];
        }
        let out = id.y * params.width + id.x;
        lightness[out] = pixels[(local.y + 2u) * 20u + local.x + 2u].x;
        red_green[out] = sum.x;
        blue_yellow[out] = sum.y;
    }
}
