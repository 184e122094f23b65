// The terms of SSIMULACRA 2 for one channel, added up: the blur down the columns, the maps and their sums in one pass,
// so that no map is ever stored. A workgroup takes 64 x 32 pixels, an invocation eight of a column, which share the
// rows that their blurs read.

struct Params {
    width: u32,
    rows: u32,
    first: u32,     // the first row that counts; those before and after are there for the blur
    count: u32,     // rows that count
    structure: u32, // 0 where that term has no weight
    first_out: u32, // where the sums go: six words of each workgroup
    unused: vec2<u32>,
    near: vec4<f32>, // the blur's weights at distances 0 to 3
    far: vec4<f32>,  // and 4
}

@group(0) @binding(0) var<storage, read> shift: array<f32>;
@group(0) @binding(1) var<storage, read> squares: array<f32>;
@group(0) @binding(2) var<storage, read> energy: array<f32>;
@group(0) @binding(3) var<storage, read> reference: array<f32>;
@group(0) @binding(4) var<storage, read> distorted: array<f32>;
@group(0) @binding(5) var<storage, read> mean: array<f32>;
@group(0) @binding(6) var<storage, read> variance: array<f32>;
@group(0) @binding(7) var<storage, read_write> sums: array<f32>;
@group(0) @binding(8) var<uniform> params: Params;

const VARIANCE_MIN = 0.0009;

// Structure, artefacts and lost detail; then the fourth powers of the same.
var<workgroup> values: array<vec3<f32>, 256>;
var<workgroup> fourths: array<vec3<f32>, 256>;

fn tap(x: u32, row: i32) -> vec3<f32> {
    if row < 0 || row >= i32(params.rows) {
        return vec3(0.0);
    }
    let at = u32(row) * params.width + x;
    if params.structure == 0u {
        return vec3(shift[at], 0.0, 0.0);
    }
    return vec3(shift[at], squares[at], energy[at]);
}

// Derived in terms.rs: nothing cancels out.
fn terms(at: u32, blur: vec3<f32>) -> vec3<f32> {
    let detail = reference[at] - mean[at];
    let change = (reference[at] - distorted[at]) - blur.x;
    let edge = (abs(detail - change) - abs(detail)) / (1.0 + abs(detail));
    var structure = 0.0;
    if params.structure != 0u {
        let shifted = blur.x * blur.x;
        let mean_distorted = mean[at] - blur.x;
        let variance_distorted = blur.z - mean_distorted * mean_distorted;
        let differing = (blur.y - shifted) / ((variance[at] + variance_distorted) + VARIANCE_MIN);
        structure = shifted + (1.0 - shifted) * differing;
    }
    return max(vec3(structure, edge, -edge), vec3(0.0));
}

@compute @workgroup_size(64, 4)
fn compare_columns(
    @builtin(local_invocation_index) lane: u32,
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    var value = vec3(0.0);
    var fourth = vec3(0.0);
    let top = id.y * 8u;
    if id.x < params.width && top < params.count {
        // A window of nine rows moves down the column.
        let start = i32(params.first + top);
        var row_0 = tap(id.x, start - 4);
        var row_1 = tap(id.x, start - 3);
        var row_2 = tap(id.x, start - 2);
        var row_3 = tap(id.x, start - 1);
        var row_4 = tap(id.x, start);
        var row_5 = tap(id.x, start + 1);
        var row_6 = tap(id.x, start + 2);
        var row_7 = tap(id.x, start + 3);
        for (var k = 0u; k < 8u && top + k < params.count; k++) {
            let row_8 = tap(id.x, start + i32(k) + 4);
            let blur = params.near.x * row_4 + params.near.y * (row_3 + row_5) + params.near.z * (row_2 + row_6)
                + params.near.w * (row_1 + row_7) + params.far.x * (row_0 + row_8);
            let term = terms((params.first + top + k) * params.width + id.x, blur);
            let square = term * term;
            value += term;
            fourth += square * square;
            row_0 = row_1;
            row_1 = row_2;
            row_2 = row_3;
            row_3 = row_4;
            row_4 = row_5;
            row_5 = row_6;
            row_6 = row_7;
            row_7 = row_8;
        }
    }
    values[lane] = value;
    fourths[lane] = fourth;
    workgroupBarrier();
    for (var reach = 128u; reach > 0u; reach /= 2u) {
        if lane < reach {
            values[lane] += values[lane + reach];
            fourths[lane] += fourths[lane + reach];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        let out = params.first_out + (group.y * groups.x + group.x) * 6u;
        for (var term = 0u; term < 3u; term++) {
            sums[out + term] = values[0][term];
            sums[out + 3u + term] = fourths[0][term];
        }
    }
}
