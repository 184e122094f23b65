// Splits the fastest part of X and Y into the finest frequencies and the high ones, and says how much they hide.

struct Params {
    width: u32,
    rows: u32,
}

@group(0) @binding(0) var<storage, read_write> fast_x: array<f32>;   // the finest frequencies after
@group(0) @binding(1) var<storage, read_write> high_x: array<f32>;   // blurred before, high frequencies after
@group(0) @binding(2) var<storage, read_write> fast_y: array<f32>;
@group(0) @binding(3) var<storage, read_write> high_y: array<f32>;
@group(0) @binding(4) var<storage, read_write> activity: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

const MASK_SLOPE = 6.19424080439;
const MASK_BIAS = 78.11251046975313; // the slope times 12.61050594197

fn less(value: f32, by: f32) -> f32 {
    return sign(value) * max(abs(value) - by, 0.0);
}

fn saturated(value: f32, limit: f32) -> f32 {
    let within = clamp(value, -limit, limit);
    return (value - within) * 0.724216146 + within;
}

@compute @workgroup_size(16, 16)
fn split_high(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows {
        return;
    }
    let at = id.y * params.width + id.x;
    let finest_x = less(fast_x[at] - high_x[at], 0.04);
    let slow_x = less(high_x[at], 1.5);
    let slow = saturated(high_y[at], 28.4691806922);
    let finest_y = saturated(fast_y[at] - slow, 5.19175294647) * 2.69313763794;
    let weighed = slow * 2.155;
    let slow_y = weighed + clamp(weighed, -0.132, 0.132);
    fast_x[at] = finest_x;
    high_x[at] = slow_x;
    fast_y[at] = finest_y;
    high_y[at] = slow_y;
    let x = (finest_x + slow_x) * 2.5;
    let y = finest_y * 0.4 + slow_y * 0.4;
    activity[at] = sqrt(MASK_SLOPE * sqrt(x * x + y * y) + MASK_BIAS) - sqrt(MASK_BIAS);
}
