// Red, green and blue looked up in a table of three dimensions.

struct Params {
    width: u32,
    height: u32,
    // Points along each dimension.
    points: u32,
    // 0: tetrahedra, 1: all three directions.
    between: u32,
    // The code of the first point of each channel.
    lowest: vec4<f32>,
    // Points for each unit of a code.
    scale: vec4<f32>,
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
// Red, green and blue of each point; red counts fastest.
@group(0) @binding(3) var<storage, read> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> out_red: array<f32>;
@group(0) @binding(5) var<storage, read_write> out_green: array<f32>;
@group(0) @binding(6) var<storage, read_write> out_blue: array<f32>;
@group(0) @binding(7) var<uniform> params: Params;

fn point(at: vec3<u32>) -> vec3<f32> {
    let first = 3u * (at.x + params.points * (at.y + params.points * at.z));
    return vec3(table[first], table[first + 1u], table[first + 2u]);
}

// From the corner at `low` along the direction of the largest part first, and of the smallest last.
fn tetrahedral(low: vec3<u32>, part: vec3<f32>) -> vec3<f32> {
    let high = low + vec3(1u);
    var first = vec3(high.x, low.y, low.z);
    var second = vec3(high.x, high.y, low.z);
    var parts = part;
    if part.x >= part.y {
        if part.y < part.z {
            if part.x >= part.z {
                second = vec3(high.x, low.y, high.z);
                parts = part.xzy;
            } else {
                first = vec3(low.x, low.y, high.z);
                second = vec3(high.x, low.y, high.z);
                parts = part.zxy;
            }
        }
    } else if part.z >= part.y {
        first = vec3(low.x, low.y, high.z);
        second = vec3(low.x, high.y, high.z);
        parts = part.zyx;
    } else if part.z >= part.x {
        first = vec3(low.x, high.y, low.z);
        second = vec3(low.x, high.y, high.z);
        parts = part.yzx;
    } else {
        first = vec3(low.x, high.y, low.z);
        second = vec3(high.x, high.y, low.z);
        parts = part.yxz;
    }
    return point(low) * (1.0 - parts.x) + point(first) * (parts.x - parts.y) + point(second) * (parts.y - parts.z)
        + point(high) * parts.z;
}

fn trilinear(low: vec3<u32>, part: vec3<f32>) -> vec3<f32> {
    let high = low + vec3(1u);
    let near_low = mix(point(low), point(vec3(high.x, low.y, low.z)), part.x);
    let near_high = mix(point(vec3(low.x, high.y, low.z)), point(vec3(high.x, high.y, low.z)), part.x);
    let far_low = mix(point(vec3(low.x, low.y, high.z)), point(vec3(high.x, low.y, high.z)), part.x);
    let far_high = mix(point(vec3(low.x, high.y, high.z)), point(high), part.x);
    return mix(mix(near_low, near_high, part.y), mix(far_low, far_high, part.y), part.z);
}

@compute @workgroup_size(16, 16)
fn solid(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let last = f32(params.points - 1u);
    let codes = vec3(red[at], green[at], blue[at]);
    let place = clamp((codes - params.lowest.xyz) * params.scale.xyz, vec3(0.0), vec3(last));
    // The last point is the end of the last cell, not the begin of one.
    let low = min(floor(place), vec3(last - 1.0));
    let part = place - low;
    var found = vec3(0.0);
    if params.between == 0u {
        found = tetrahedral(vec3<u32>(low), part);
    } else {
        found = trilinear(vec3<u32>(low), part);
    }
    out_red[at] = found.r;
    out_green[at] = found.g;
    out_blue[at] = found.b;
}
