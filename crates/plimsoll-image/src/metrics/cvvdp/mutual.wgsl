// The smaller of two contrasts at each pixel, blurred along the rows.

struct Params {
    width: u32,
    first: u32, // the row that the planes begin with
    start: u32, // the first row to compute
    rows: u32,  // rows to compute
    reach: u32, // of the blur
    unused: u32,
    unused2: u32,
    unused3: u32,
    weights: array<vec4<f32>, 2>, // by distance
}

@group(0) @binding(0) var<storage, read> distorted: array<f32>;
@group(0) @binding(1) var<storage, read> reference: array<f32>;
@group(0) @binding(2) var<storage, read_write> blurred: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

fn smaller(at: u32) -> f32 {
    return min(abs(distorted[at]), abs(reference[at]));
}

fn reflected(x: i32) -> u32 {
    let last = i32(params.width) - 1;
    return u32(last - abs(last - abs(x)));
}

@compute @workgroup_size(16, 16)
fn mutual(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let row = (params.start + id.y - params.first) * params.width;
    let x = i32(id.x);
    var sum = params.weights[0].x * smaller(row + id.x);
    for (var k = 1u; k <= params.reach; k++) {
        let weight = params.weights[k / 4u][k % 4u];
        sum += weight * (smaller(row + reflected(x - i32(k))) + smaller(row + reflected(x + i32(k))));
    }
    blurred[row + id.x] = sum;
}
