// Codes of red, green and blue for a bright display to codes for another. `power.wgsl` stands before this.

struct Params {
    width: u32,
    height: u32,
    // 0: PQ, 1: HLG, 2: gamma.
    transfer: u32,
    // 0: Reinhard, 1: Hable, 2: BT.2390.
    curve: u32,
    // The light of each channel, from that of all three.
    gamut: array<vec4<f32>, 3>,
    // Shares of luminance, and the exponent of HLG's OOTF.
    luminance: vec4<f32>,
    // Light of the highest code, and of the peak: 1 is the target.
    unit: f32,
    white: f32,
    // One over what the filmic curve makes of the peak.
    hable_scale: f32,
    // The target as a share of 10 000 nits.
    pq_unit: f32,
    // The peak's code in PQ; the target's and the knee's as shares of that; one over what lies above the knee.
    pq_peak: f32,
    pq_target: f32,
    knee: f32,
    above_knee: f32,
}

@group(0) @binding(0) var<storage, read> red: array<f32>;
@group(0) @binding(1) var<storage, read> green: array<f32>;
@group(0) @binding(2) var<storage, read> blue: array<f32>;
@group(0) @binding(3) var<storage, read_write> out_red: array<f32>;
@group(0) @binding(4) var<storage, read_write> out_green: array<f32>;
@group(0) @binding(5) var<storage, read_write> out_blue: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

const M1 = 2610.0 / 16384.0;
const M2 = 2523.0 / 4096.0 * 128.0;
const C1 = 3424.0 / 4096.0;
const C2 = 2413.0 / 4096.0 * 32.0;
const C3 = 2392.0 / 4096.0 * 32.0;
const GAMMA = 2.4;
const STRAIGHT_SHARE = 1e-5;

fn power_or_zero(x: f32, exponent: f32) -> f32 {
    return select(0.0, power(max(x, 1e-20), exponent), x > 1e-20);
}

fn pq(light: f32) -> f32 {
    let p = power_or_zero(light, M1);
    return power((C1 + C2 * p) / (1.0 + C3 * p), M2);
}

fn light_of_pq(code: f32) -> f32 {
    let p = power_or_zero(code, 1.0 / M2);
    return power_or_zero(max(p - C1, 0.0) / (C2 - C3 * p), 1.0 / M1);
}

fn scene_of_hlg(code: f32) -> f32 {
    if code <= 0.5 {
        return code * code * (1.0 / 3.0);
    }
    return (exp2_of((code - 0.55991073) * (1.442695 / 0.17883277)) + 0.28466892) * (1.0 / 12.0);
}

fn displayed(codes: vec3<f32>) -> vec3<f32> {
    if params.transfer == 0u {
        return vec3(light_of_pq(codes.r), light_of_pq(codes.g), light_of_pq(codes.b)) * params.unit;
    }
    if params.transfer == 1u {
        let scene = vec3(scene_of_hlg(codes.r), scene_of_hlg(codes.g), scene_of_hlg(codes.b));
        return scene * (power_or_zero(dot(scene, params.luminance.xyz), params.luminance.w) * params.unit);
    }
    let light = vec3(power_or_zero(codes.r, GAMMA), power_or_zero(codes.g, GAMMA), power_or_zero(codes.b, GAMMA));
    return light * params.unit;
}

fn filmic(x: f32) -> f32 {
    return x * (0.14 * x + 1.0 / 60.0) / (x * (0.15 * x + 0.5) + 0.06);
}

fn bt2390(x: f32) -> f32 {
    let knee = params.knee;
    let code = min(pq(x * params.pq_unit) / params.pq_peak, 1.0);
    if code < knee {
        return x;
    }
    let t = (code - knee) * params.above_knee;
    let t2 = t * t;
    let t3 = t2 * t;
    let bent = (2.0 * t3 - 3.0 * t2 + 1.0) * knee + (t3 - 2.0 * t2 + t) * (1.0 - knee)
        + (3.0 * t2 - 2.0 * t3) * params.pq_target;
    return light_of_pq(bent * params.pq_peak) / params.pq_unit;
}

fn mapped(light: f32) -> f32 {
    let x = min(light, params.white);
    if params.curve == 0u {
        return x * (1.0 + x * (1.0 / (params.white * params.white))) / (1.0 + x);
    }
    if params.curve == 1u {
        return filmic(x) * params.hable_scale;
    }
    return bt2390(x);
}

fn encoded(light: f32, straight_max: f32) -> f32 {
    let bent = power_or_zero(max(light, straight_max), 1.0 / GAMMA);
    if light < straight_max {
        return bent * (light / straight_max);
    }
    return bent;
}

@compute @workgroup_size(16, 16)
fn tonemap(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.height {
        return;
    }
    let at = id.y * params.width + id.x;
    let shown = displayed(clamp(vec3(red[at], green[at], blue[at]), vec3(0.0), vec3(1.0)));
    let gamut = params.gamut;
    let light = max(vec3(dot(shown, gamut[0].xyz), dot(shown, gamut[1].xyz), dot(shown, gamut[2].xyz)), vec3(0.0));
    let brightest = max(max(light.r, light.g), light.b);
    let share = mapped(brightest) / max(brightest, 1e-12);
    let out = clamp(light * share, vec3(0.0), vec3(1.0));
    let straight_max = max(max(out.r, out.g), out.b) * STRAIGHT_SHARE;
    out_red[at] = encoded(out.r, straight_max);
    out_green[at] = encoded(out.g, straight_max);
    out_blue[at] = encoded(out.b, straight_max);
}
