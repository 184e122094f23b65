// Spreads packed pixels over a red, a green and a blue plane.
// A pixel is one word (three 8-bit samples), two (three 16-bit samples) or three (floats, taken as they are).

struct Params {
    width: u32,
    rows: u32,
    first_out: u32, // the row of the planes where the first packed row goes
    words: u32,     // words of a pixel
}

@group(0) @binding(0) var<storage, read> packed: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<f32>;
@group(0) @binding(2) var<storage, read_write> red: array<f32>;
@group(0) @binding(3) var<storage, read_write> green: array<f32>;
@group(0) @binding(4) var<storage, read_write> blue: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(16, 16)
fn unpack(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = (id.y * params.width + id.x) * params.words;
    let out = (id.y + params.first_out) * params.width + id.x;
    let first = packed[at];
    if params.words == 1u {
        red[out] = table[first & 0xffu];
        green[out] = table[(first >> 8u) & 0xffu];
        blue[out] = table[(first >> 16u) & 0xffu];
    } else if params.words == 2u {
        red[out] = table[first & 0xffffu];
        green[out] = table[first >> 16u];
        blue[out] = table[packed[at + 1u] & 0xffffu];
    } else {
        red[out] = bitcast<f32>(first);
        green[out] = bitcast<f32>(packed[at + 1u]);
        blue[out] = bitcast<f32>(packed[at + 2u]);
    }
}
