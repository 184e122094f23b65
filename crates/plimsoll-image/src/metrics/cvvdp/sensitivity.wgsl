// How sensitive the eye is to contrasts at each pixel, by the luminance around it, for three channels.

struct Params {
    width: u32,
    first: u32,    // the row that the planes begin with
    start: u32,    // the first row to compute
    rows: u32,     // rows to compute
    low: f32,      // log2 of the table's lowest luminance
    per_step: f32, // steps of the table for each doubling
    steps: u32,    // of the table
    unused: u32,
}

@group(0) @binding(0) var<storage, read> luminance: array<f32>;
@group(0) @binding(1) var<storage, read> table: array<f32>; // log2 of the sensitivities, one channel after the other
@group(0) @binding(2) var<storage, read_write> achromatic: array<f32>;
@group(0) @binding(3) var<storage, read_write> red_green: array<f32>;
@group(0) @binding(4) var<storage, read_write> yellow_violet: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

fn looked_up(channel: u32, below: u32, share: f32) -> f32 {
    let at = channel * params.steps;
    let above = min(below + 1u, params.steps - 1u);
    return exp2(table[at + below] * (1.0 - share) + table[at + above] * share);
}

@compute @workgroup_size(16, 16)
fn sensitivity(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = (params.start + id.y - params.first) * params.width + id.x;
    let step = clamp((log2(luminance[at]) - params.low) * params.per_step, 0.0, f32(params.steps - 1u));
    let below = u32(step);
    let share = step - f32(below);
    achromatic[at] = looked_up(0u, below, share);
    red_green[at] = looked_up(1u, below, share);
    yellow_violet[at] = looked_up(2u, below, share);
}
