// Red, green and blue, each looked up in its own column of a table.

struct Params {
    width: u32,
    height: u32,
    // Points of the table.
    points: u32,
    padding: u32,
    // The code of the first point of each channel.
    lowest: vec4<f32>,
    // Points for each unit of a code.
    scale: vec4<f32>,
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
// Red, green and blue of each point.
@group(0) @binding(3) var<storage, read> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> out_red: array<f32>;
@group(0) @binding(5) var<storage, read_write> out_green: array<f32>;
@group(0) @binding(6) var<storage, read_write> out_blue: array<f32>;
@group(0) @binding(7) var<uniform> params: Params;

fn found(code: f32, channel: u32) -> f32 {
    let last = f32(params.points - 1u);
    let place = clamp((code - params.lowest[channel]) * params.scale[channel], 0.0, last);
    let low = min(floor(place), last - 1.0);
    let first = 3u * u32(low) + channel;
    return mix(table[first], table[first + 3u], place - low);
}

@compute @workgroup_size(16, 16)
fn line(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    out_red[at] = found(red[at], 0u);
    out_green[at] = found(green[at], 1u);
    out_blue[at] = found(blue[at], 2u);
}
