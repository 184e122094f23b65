// A plane with the differences of another added within a rectangle of it.

struct Params {
    width: u32,
    height: u32,
    // The first column and row of the rectangle.
    left: u32,
    top: u32,
    patch_width: u32,
    patch_height: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read> differences: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn add(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    // What lies before the rectangle wraps around to far behind it.
    let inside = id.x - params.left < params.patch_width && id.y - params.top < params.patch_height;
    output[at] = input[at] + select(0.0, differences[at], inside);
}
