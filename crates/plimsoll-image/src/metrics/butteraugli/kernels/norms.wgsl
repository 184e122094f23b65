// The largest distance of each run of 8192 pixels, and sums of the third, sixth and twelfth powers of their shares of
// it. A map at half the resolution is added on the way.

struct Params {
    width: u32,
    rows: u32,
    first: u32,      // the first row of the map
    first_half: u32, // the first row of the map at half the resolution
    has_half: u32,   // whether there is one
}

@group(0) @binding(0) var<storage, read> map: array<f32>;
@group(0) @binding(1) var<storage, read> map_half: array<f32>;
@group(0) @binding(2) var<storage, read_write> partial: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> lanes: array<vec3<f32>, 256>;

fn distance_at(at: u32) -> f32 {
    let full = map[params.first * params.width + at];
    if params.has_half == 0u {
        return full;
    }
    let half = (params.first_half + at / params.width / 2u) * ((params.width + 1u) / 2u) + at % params.width / 2u;
    return full * 0.85 + 0.5 * map_half[half];
}

@compute @workgroup_size(256)
fn norms(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let count = params.width * params.rows;
    var distances: array<f32, 32>;
    var most = 0.0;
    for (var k = 0u; k < 32u; k++) {
        let at = group.x * 8192u + k * 256u + lane;
        distances[k] = 0.0;
        if at < count {
            distances[k] = distance_at(at);
        }
        most = max(most, distances[k]);
    }
    lanes[lane] = vec3(most);
    workgroupBarrier();
    for (var reach = 128u; reach > 0u; reach /= 2u) {
        if lane < reach {
            lanes[lane] = max(lanes[lane], lanes[lane + reach]);
        }
        workgroupBarrier();
    }
    most = lanes[0].x;
    workgroupBarrier();
    let share = select(0.0, 1.0 / most, most > 0.0);
    var sums = vec3(0.0);
    for (var k = 0u; k < 32u; k++) {
        let part = distances[k] * share;
        let power = part * part * part;
        sums += vec3(power, power * power, (power * power) * (power * power));
    }
    lanes[lane] = sums;
    workgroupBarrier();
    for (var reach = 128u; reach > 0u; reach /= 2u) {
        if lane < reach {
            lanes[lane] += lanes[lane + reach];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        partial[group.x * 4u] = most;
        partial[group.x * 4u + 1u] = lanes[0].x;
        partial[group.x * 4u + 2u] = lanes[0].y;
        partial[group.x * 4u + 3u] = lanes[0].z;
    }
}
