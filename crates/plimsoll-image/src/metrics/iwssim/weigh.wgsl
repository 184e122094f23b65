// How much each place of the window counts: the information that the two images share with what is seen of them.

struct Params {
    width: u32,
    rows: u32,
    members: u32,
    nothing: f32, // variance that is only rounding
    eigenvalues: array<vec4<f32>, 3>,
}

@group(0) @binding(0) var<storage, read> reference: array<f32>;
@group(0) @binding(1) var<storage, read> distorted: array<f32>;
@group(0) @binding(2) var<storage, read> energy: array<f32>;
@group(0) @binding(3) var<storage, read> similarity: array<f32>;
@group(0) @binding(4) var<storage, read_write> weights: array<f32>;
@group(0) @binding(5) var<storage, read_write> weighed: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

const NOISE = 0.4;

@compute @workgroup_size(16, 16)
fn weigh(@builtin(global_invocation_id) id: vec3<u32>) {
    let places = params.width - 10u;
    if id.x >= places || id.y >= params.rows - 10u {
        return;
    }
    let corner = (id.y + 4u) * params.width + id.x + 4u;
    var mean = vec2(0.0, 0.0);
    for (var k = 0u; k < 9u; k++) {
        let at = corner + k / 3u * params.width + k % 3u;
        mean += vec2(reference[at], distorted[at]);
    }
    mean /= 9.0;
    var variance = vec2(0.0, 0.0);
    var covariance = 0.0;
    for (var k = 0u; k < 9u; k++) {
        let at = corner + k / 3u * params.width + k % 3u;
        let apart = vec2(reference[at], distorted[at]) - mean;
        variance += apart * apart;
        covariance += apart.x * apart.y;
    }
    variance /= 9.0;
    covariance /= 9.0;
    var gain = 0.0;
    var left = 0.0;
    if variance.y >= params.nothing {
        left = variance.y;
        if variance.x >= params.nothing {
            gain = covariance / variance.x;
            left = max(variance.y - gain * covariance, 0.0);
        }
    }
    let out = id.y * places + id.x;
    let slope = (left + (1.0 + gain * gain) * NOISE) * energy[out] / (NOISE * NOISE);
    let base = 1.0 + left / NOISE;
    var weight = 0.0;
    for (var k = 0u; k < params.members; k++) {
        weight += log2(base + slope * params.eigenvalues[k / 4u][k % 4u]);
    }
    weight = max(weight, 0.0);
    weights[out] = weight;
    weighed[out] = weight * similarity[out];
}
