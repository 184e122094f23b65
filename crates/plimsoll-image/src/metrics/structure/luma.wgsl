// Luma of coded red, green and blue, with the weights of BT.601.

struct Params {
    width: u32,
    rows: u32,
    first_out: u32, // the row of the plane where the first row goes
    peak: f32,      // the luma of white
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> plane: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn luma(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    let value = 0.299 * red[at] + 0.587 * green[at] + 0.114 * blue[at];
    plane[params.first_out * params.width + at] = value * params.peak;
}
