// All differences at a pixel become one distance, by what the mask hides of them.

struct Params {
    width: u32,
    rows: u32,
}

@group(0) @binding(0) var<storage, read> mask: array<f32>;
@group(0) @binding(1) var<storage, read> activity: array<f32>;
@group(0) @binding(2) var<storage, read> activity_image: array<f32>;
@group(0) @binding(3) var<storage, read> detail: array<f32>;
@group(0) @binding(4) var<storage, read_write> low: array<f32>; // the distance after
@group(0) @binding(5) var<uniform> params: Params;

const GLOBAL_SCALE = 0.07092224061489105; // 1 / (17.83 * 0.79079917)

fn shown(mask_here: f32, fall: f32, speed: f32, start: f32) -> f32 {
    let part = GLOBAL_SCALE + GLOBAL_SCALE * (fall / (speed * mask_here + start));
    return part * part;
}

@compute @workgroup_size(16, 16)
fn combine(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    let difference = activity[at] - activity_image[at];
    let fast = detail[at] + difference * difference * 10.0;
    let shown_low = shown(mask[at], 0.505054525019, 3.87449418804, 0.20025578522);
    let shown_fast = shown(mask[at], 2.5485944793, 0.451936922203, 0.829591754942);
    low[at] = sqrt(low[at] * shown_low + fast * shown_fast);
}
