// Differences of three channels, each lessened by the masks of all; the sum of their squares over 16 x 16 pixels.

struct Params {
    width: u32,
    first: u32,     // the row that the planes begin with
    start: u32,     // the first row to take
    rows: u32,      // rows to take
    first_out: u32, // where the sums go, three for each workgroup
    highest: f32,   // where differences saturate
    epsilon: f32,
    unused: u32,
    masked_by: array<vec4<f32>, 3>, // how much the masks of a channel lessen each channel
}

@group(0) @binding(0) var<storage, read> mask_a: array<f32>;
@group(0) @binding(1) var<storage, read> mask_b: array<f32>;
@group(0) @binding(2) var<storage, read> mask_c: array<f32>;
@group(0) @binding(3) var<storage, read> apart_a: array<f32>;
@group(0) @binding(4) var<storage, read> apart_b: array<f32>;
@group(0) @binding(5) var<storage, read> apart_c: array<f32>;
@group(0) @binding(6) var<storage, read_write> sums: array<f32>;
@group(0) @binding(7) var<uniform> params: Params;

var<workgroup> lanes: array<vec3<f32>, 256>;

@compute @workgroup_size(16, 16)
fn pool(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    var squares = vec3(0.0);
    if id.x < params.width && id.y < params.rows {
        let at = (params.start + id.y - params.first) * params.width + id.x;
        let masks = mask_a[at] * params.masked_by[0].xyz + mask_b[at] * params.masked_by[1].xyz
            + mask_c[at] * params.masked_by[2].xyz;
        let seen = vec3(apart_a[at], apart_b[at], apart_c[at]) / (1.0 + masks);
        let difference = params.highest * seen / (params.highest + seen);
        squares = difference * (difference + 2.0 * params.epsilon);
    }
    lanes[lane] = squares;
    workgroupBarrier();
    for (var reach = 128u; reach > 0u; reach /= 2u) {
        if lane < reach {
            lanes[lane] += lanes[lane + reach];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        let out = params.first_out + 3u * (group.y * groups.x + group.x);
        sums[out] = lanes[0].x;
        sums[out + 1u] = lanes[0].y;
        sums[out + 2u] = lanes[0].z;
    }
}
