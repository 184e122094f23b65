// A plane as in a mirror.

struct Params {
    width: u32,
    height: u32,
    // 1 to exchange left and right.
    across: u32,
    // 1 to exchange top and bottom.
    down: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn flip(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let x = select(id.x, params.width - 1u - id.x, params.across == 1u);
    let y = select(id.y, params.height - 1u - id.y, params.down == 1u);
    output[id.y * params.width + id.x] = input[y * params.width + x];
}
