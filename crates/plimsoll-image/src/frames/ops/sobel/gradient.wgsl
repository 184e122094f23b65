// How steep a plane is: the length of the gradient by Sobel's two operators. Beyond an edge lies the last row or column
// again.

struct Params {
    width: u32,
    height: u32,
    // What a flat plane gives.
    black: f32,
    // The most that is given: by a step from black to white.
    white: f32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn gradient(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let left = id.x - min(id.x, 1u);
    let right = min(id.x + 1u, params.width - 1u);
    let above = (id.y - min(id.y, 1u)) * params.width;
    let own = id.y * params.width;
    let below = min(id.y + 1u, params.height - 1u) * params.width;
    let top = vec3(input[above + left], input[above + id.x], input[above + right]);
    let middle = vec2(input[own + left], input[own + right]);
    let bottom = vec3(input[below + left], input[below + id.x], input[below + right]);
    let across = (top.z - top.x) + 2.0 * (middle.y - middle.x) + (bottom.z - bottom.x);
    let down = (bottom.x - top.x) + 2.0 * (bottom.y - top.y) + (bottom.z - top.z);
    let steep = 0.25 * sqrt(across * across + down * down);
    output[own + id.x] = min(params.black + steep, params.white);
}
