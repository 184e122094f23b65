// The neighbourhood of a pixel: its 3 x 3 and, in place 9, its parent at the next coarser scale.

struct Params {
    width: u32,
    rows: u32,
    members: u32, // 9, or 10 with the parent
    first_out: u32,
}

@group(0) @binding(0) var<storage, read> plane: array<f32>;
@group(0) @binding(1) var<storage, read> parent: array<f32>;

// A member of the neighbourhood whose upper left pixel is here.
fn member(index: u32, x: u32, y: u32, width: u32) -> f32 {
    if index == 9u {
        return parent[(y + 1u) * width + x + 1u];
    }
    return plane[(y + index / 3u) * width + x + index % 3u];
}

@group(0) @binding(2) var<storage, read_write> partial: array<f32>;
@group(0) @binding(3) var<uniform> product_params: Params;

var<workgroup> lanes: array<f32, 256>;

// Sums of the products of two members: a workgroup takes a tile of 256 x 16 neighbourhoods, and z counts the pairs.
@compute @workgroup_size(256)
fn products(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    var one = 0u;
    var other = group.z;
    while other >= product_params.members - one {
        other -= product_params.members - one;
        one++;
    }
    other += one;
    let width = product_params.width;
    let x = group.x * 256u + lane;
    let last = min(group.y * 16u + 16u, product_params.rows - 2u);
    var sum = 0.0;
    if x < width - 2u {
        for (var y = group.y * 16u; y < last; y++) {
            sum += member(one, x, y, width) * member(other, x, y, width);
        }
    }
    lanes[lane] = sum;
    workgroupBarrier();
    for (var reach = 128u; reach > 0u; reach /= 2u) {
        if lane < reach {
            lanes[lane] += lanes[lane + reach];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        let at = (group.z * groups.y + group.y) * groups.x + group.x;
        partial[product_params.first_out + at] = lanes[0];
    }
}

@group(0) @binding(2) var<storage, read> whitening: array<f32>;
@group(0) @binding(3) var<storage, read_write> energy_out: array<f32>;
@group(0) @binding(4) var<uniform> energy_params: Params;

// How much there is in each neighbourhood, in units of what there is on average; at every place of the window.
@compute @workgroup_size(16, 16)
fn energy(@builtin(global_invocation_id) id: vec3<u32>) {
    let places = energy_params.width - 10u;
    if id.x >= places || id.y >= energy_params.rows - 10u {
        return;
    }
    var members: array<f32, 10>;
    for (var k = 0u; k < energy_params.members; k++) {
        members[k] = member(k, id.x + 4u, id.y + 4u, energy_params.width);
    }
    var sum = 0.0;
    for (var j = 0u; j < energy_params.members; j++) {
        var along = 0.0;
        for (var k = 0u; k < energy_params.members; k++) {
            along += whitening[j * 10u + k] * members[k];
        }
        sum += along * along;
    }
    energy_out[id.y * places + id.x] = sum / f32(energy_params.members);
}
