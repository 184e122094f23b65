// Red, green and blue made smaller: each pixel the mean of a square of pixels.

struct Params {
    width: u32,     // of the source
    width_out: u32,
    rows_out: u32,
    first_out: u32, // the row of the targets where the first row goes
    side: u32,      // of the square
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> red_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> green_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> blue_out: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn shrink(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width_out || id.y >= params.rows_out {
        return;
    }
    var sum = vec3<f32>(0.0);
    for (var y = 0u; y < params.side; y++) {
        let row = (id.y * params.side + y) * params.width + id.x * params.side;
        var along = vec3<f32>(0.0);
        for (var x = 0u; x < params.side; x++) {
            along += vec3<f32>(red[row + x], green[row + x], blue[row + x]);
        }
        sum += along;
    }
    let mean = sum / f32(params.side * params.side);
    let out = (params.first_out + id.y) * params.width_out + id.x;
    red_out[out] = mean.x;
    green_out[out] = mean.y;
    blue_out[out] = mean.z;
}
