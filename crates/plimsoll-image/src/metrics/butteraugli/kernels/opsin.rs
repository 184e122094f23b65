//! Light into what the eye makes of it: an opponent, a brightness and a blue plane (X, Y, B), each scaled by how
//! sensitive the eye is to the light around the pixel.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use crate::run::Run;

static ROWS: Kernel = Kernel {
    name: "opsin_rows",
    wgsl: include_str!("opsin_rows.wgsl"),
    entry: "opsin_rows",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write, Access::Write, Access::Write],
    params: size_of::<Params>(),
    twin: opsin_rows,
};

static OPSIN: Kernel = Kernel {
    name: "opsin",
    wgsl: include_str!("opsin.wgsl"),
    entry: "opsin",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write, Access::Write, Access::Write],
    params: size_of::<Params>(),
    twin: opsin,
};

/// `weights` of the blur, by distance.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    unused: [u32; 2],
    weights: [f32; 4],
}

/// How far the blur reaches.
pub(in super::super) const RADIUS: u32 = 2;
/// How wide the surroundings are that a pixel's sensitivity comes from.
const SIGMA: f32 = 1.2;

/// Light that full white stands for, in nits.
const NITS: f32 = 80.0;
/// Red, green, blue and a constant, for each of three receptors.
const MIX: [[f32; 4]; 3] = [
    [0.299_565_5, 0.633_730_9, 0.077_705_614, 1.755_748_4],
    [0.221_586_91, 0.693_913_9, 0.098_731_36, 1.755_748_4],
    [0.02, 0.02, 0.204_801_29, 12.226_455],
];
/// The least sensitivity.
const SENSITIVITY_MIN: f32 = 1e-4;

/// Turns linear red, green and blue into X, Y and B, in place, through three spare planes.
pub(in super::super) fn see(
    run: &mut Run<'_>,
    [width, rows]: [u32; 2],
    colour: [&Buffer; 3],
    spare: [&Buffer; 3],
) -> Result<(), Fault> {
    let params = Params { width, rows, unused: [0; 2], weights: weights() };
    let [[red, green, blue], [a, b, c]] = [colour, spare];
    run.over(&ROWS, &[red, green, blue, a, b, c], &params, width, rows)?;
    run.over(&OPSIN, &[a, b, c, red, green, blue], &params, width, rows)
}

/// A Gaussian whose five weights add up to one.
fn weights() -> [f32; 4] {
    let bell = |at: f32| (-at * at / (2.0 * SIGMA * SIGMA)).exp();
    let sum = bell(0.0) + 2.0 * (bell(1.0) + bell(2.0));
    [bell(0.0) / sum, bell(1.0) / sum, bell(2.0) / sum, 0.0]
}

/// Where a place beyond the edge is found: the edge is a mirror, and shows the edge pixel itself first. A side has at
/// least eight pixels, so one reflection is enough.
fn mirrored(at: isize, count: usize) -> usize {
    let count = count as isize;
    (if at < 0 {
        -at - 1
    } else if at >= count {
        2 * count - 1 - at
    } else {
        at
    }) as usize
}

fn opsin_rows(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let width = params.width as usize;
    let (reads, writes) = twin.reads_and_writes();
    let mut padded = vec![0.0; width + 4];
    for (source, target) in reads.into_iter().zip(writes) {
        let rows = source.chunks_exact(width).zip(target.chunks_exact_mut(width));
        for (source, target) in rows.take(params.rows as usize) {
            padded[2..width + 2].copy_from_slice(source);
            for at in [-2, -1, width as isize, width as isize + 1] {
                padded[(at + 2) as usize] = source[mirrored(at, width)];
            }
            let taps = [0, 1, 2, 3, 4].map(|tap| &padded[tap..tap + width]);
            blur(target, taps, params.weights);
        }
    }
}

fn opsin(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, rows) = (params.width as usize, params.rows as usize);
    let (reads, writes) = twin.reads_and_writes();
    let [red, green, blue]: [&mut [f32]; 3] = writes.try_into().expect("three planes are written");
    let mut around = [vec![0.0; width], vec![0.0; width], vec![0.0; width]];
    for y in 0..rows {
        for (around, source) in around.iter_mut().zip(&reads) {
            let taps = [-2, -1, 0, 1, 2].map(|tap| &source[mirrored(y as isize + tap, rows) * width..][..width]);
            blur(around, taps, params.weights);
        }
        let row = y * width..(y + 1) * width;
        see_row([&mut red[row.clone()], &mut green[row.clone()], &mut blue[row]], &around);
    }
}

fn blur(target: &mut [f32], [a, b, c, d, e]: [&[f32]; 5], weights: [f32; 4]) {
    for (x, target) in target.iter_mut().enumerate() {
        *target = c[x] * weights[0] + (b[x] + d[x]) * weights[1] + (a[x] + e[x]) * weights[2];
    }
}

fn see_row([red, green, blue]: [&mut [f32]; 3], around: &[Vec<f32>; 3]) {
    let around = around.each_ref().map(|plane| &plane[..red.len()]);
    let (green, blue) = (&mut green[..red.len()], &mut blue[..red.len()]);
    for x in 0..red.len() {
        let here = [red[x] * NITS, green[x] * NITS, blue[x] * NITS];
        let around = around.map(|plane| plane[x] * NITS);
        let [a, b, c] = MIX.map(|mix| {
            let adapted = mixed(mix, around).max(mix[3]);
            let sensitivity = (gamma(adapted) / adapted).max(SENSITIVITY_MIN);
            (mixed(mix, here) * sensitivity).max(mix[3])
        });
        (red[x], green[x], blue[x]) = (a - b, a + b, c);
    }
}

fn mixed(mix: [f32; 4], [red, green, blue]: [f32; 3]) -> f32 {
    mix[0] * red + mix[1] * green + mix[2] * blue + mix[3]
}

/// The response to light, a logarithm.
fn gamma(light: f32) -> f32 {
    const SCALE: f32 = 19.245_014 * std::f32::consts::LN_2;
    SCALE * log2(light + 9.971_064) - 23.160_463
}

/// The logarithm that butteraugli is defined with: a ratio of two polynomials, off by up to 4e-6, of the part between
/// 2/3 and 4/3.
fn log2(value: f32) -> f32 {
    let bits = value.to_bits().cast_signed();
    let exponent = (bits - 0x3f2a_aaab) >> 23;
    let part = f32::from_bits((bits - (exponent << 23)).cast_unsigned()) - 1.0;
    let above = (0.742_458_76 * part + 1.428_716_1) * part - 1.850_383_3e-6;
    let below = (0.174_093_43 * part + 1.009_671_8) * part + 0.990_328_13;
    above / below + exponent as f32
}
