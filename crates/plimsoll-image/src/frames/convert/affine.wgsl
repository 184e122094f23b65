// Three planes from three: each a sum of all of them and a constant.

struct Params {
    width: u32,
    height: u32,
    // For each output plane: what is taken of each input plane, and the constant.
    rows: array<vec4<f32>, 3>,
}

@group(0) @binding(0) var<storage, read> first: array<f32>;
@group(0) @binding(1) var<storage, read> second: array<f32>;
@group(0) @binding(2) var<storage, read> third: array<f32>;
@group(0) @binding(3) var<storage, read_write> out_first: array<f32>;
@group(0) @binding(4) var<storage, read_write> out_second: array<f32>;
@group(0) @binding(5) var<storage, read_write> out_third: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn affine(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let all = vec4(first[at], second[at], third[at], 1.0);
    out_first[at] = dot(params.rows[0], all);
    out_second[at] = dot(params.rows[1], all);
    out_third[at] = dot(params.rows[2], all);
}
