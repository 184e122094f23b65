//! How much of each difference is seen: contrasts that both images have mask the differences between them.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::model::{DILATE, EPSILON, MASK_C, MASK_P, MASK_Q, REACH};
use super::window::Window;
use crate::power::pow;
use crate::run::Run;

static MUTUAL: Kernel = Kernel {
    name: "mutual",
    wgsl: include_str!("mutual.wgsl"),
    entry: "mutual",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<MutualParams>(),
    twin: mutual,
};

static MASK: Kernel = Kernel {
    name: "mask",
    wgsl: include_str!("mask.wgsl"),
    entry: "mask",
    bindings: &[Access::Read, Access::Read, Access::Write, Access::Write],
    params: size_of::<MaskParams>(),
    twin: mask,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct MutualParams {
    width: u32,
    first: u32,
    from: u32,
    rows: u32,
    reach: u32,
    unused: [u32; 3],
    weights: [f32; 8],
}

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct MaskParams {
    width: u32,
    height: u32,
    first: u32,
    from: u32,
    rows: u32,
    reach: u32,
    mask_scale: f32,
    mask_power: f32,
    mask_zero: f32,
    power: f32,
    zero: f32,
    epsilon: f32,
    weights: [f32; 8],
}

/// The planes of one channel that masking goes through.
pub(super) struct Masking<'a> {
    /// Contrasts of the distorted image; in the end the differences from the reference.
    pub(super) contrast: &'a Buffer,
    /// Contrasts of the reference.
    pub(super) reference: &'a Buffer,
    /// Room.
    pub(super) scratch: &'a Buffer,
    /// Where the channel's masks go.
    pub(super) masks: &'a Buffer,
}

impl Masking<'_> {
    /// Masks and differences of the rows of a window. Its buffers hold as many rows around them as the blur reaches, and
    /// contrasts of all of those.
    pub(super) fn apply(&self, run: &mut Run<'_>, window: Window, channel: usize) -> Result<(), Fault> {
        let Window { size, first, from, rows } = window;
        let (reach, weights) = blur(window);
        let around = from.saturating_sub(reach)..(from + rows + reach).min(size.height);
        let params = MutualParams {
            width: size.width,
            first,
            from: around.start,
            rows: around.len() as u32,
            reach,
            unused: [0; 3],
            weights,
        };
        let buffers = [self.contrast, self.reference, self.scratch];
        run.over(&MUTUAL, &buffers, &params, size.width, params.rows)?;
        let (mask_power, power, epsilon) = (MASK_Q[channel], MASK_P, EPSILON as f32);
        let params = MaskParams {
            width: size.width,
            height: size.height,
            first,
            from,
            rows,
            reach,
            mask_scale: 10.0_f32.powf(MASK_C),
            mask_power,
            mask_zero: pow(epsilon, mask_power),
            power,
            zero: pow(epsilon, power),
            epsilon,
            weights,
        };
        let buffers = [self.scratch, self.reference, self.contrast, self.masks];
        run.over(&MASK, &buffers, &params, size.width, rows)
    }
}

/// The blur's reach in a level of this size, and its weights by distance.
fn blur(Window { size, .. }: Window) -> (u32, [f32; 8]) {
    if size.width <= REACH || size.height <= REACH {
        let mut weights = [0.0; 8];
        weights[0] = 1.0;
        return (0, weights);
    }
    let weight = |k: usize| if k > REACH as usize { 0.0 } else { (-0.5 * (k as f32 / DILATE).powi(2)).exp() };
    let weights: [f32; 8] = std::array::from_fn(weight);
    let sum = 2.0 * weights.iter().sum::<f32>() - weights[0];
    (REACH, weights.map(|weight| weight / sum))
}

fn mutual(twin: &mut Twin<'_>) {
    let params: MutualParams = twin.params();
    let (width, reach) = (params.width as usize, params.reach as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let start = (params.from - params.first) as usize * width;
    let rows = reads[0][start..].chunks_exact(width).zip(reads[1][start..].chunks_exact(width));
    // A row with its reflections needs no cases, so the inner loops vectorise.
    let mut padded = vec![0.0; width + 2 * reach];
    for ((distorted, reference), out) in rows.zip(writes[0][start..].chunks_exact_mut(width)).take(params.rows as usize)
    {
        for ((out, distorted), reference) in padded[reach..].iter_mut().zip(distorted).zip(reference) {
            *out = distorted.abs().min(reference.abs());
        }
        for k in 1..=reach {
            padded[reach - k] = padded[reach + k];
            padded[reach + width - 1 + k] = padded[reach + width - 1 - k];
        }
        blur_row(out, &params.weights, reach, |k| &padded[(reach as isize + k) as usize..][..width]);
    }
}

fn mask(twin: &mut Twin<'_>) {
    let params: MaskParams = twin.params();
    let (width, last) = (params.width as usize, params.height as isize - 1);
    let (reads, mut writes) = twin.reads_and_writes();
    let [contrast, masks] = &mut writes[..] else { panic!("two planes") };
    let (blurred, reference) = (reads[0], reads[1]);
    for y in params.from..params.from + params.rows {
        let at = (y - params.first) as usize * width..(y - params.first + 1) as usize * width;
        let masks = &mut masks[at.clone()];
        blur_row(masks, &params.weights, params.reach as usize, |k| {
            let y = last - (last - (y as isize + k).abs()).abs();
            &blurred[(y as usize - params.first as usize) * width..][..width]
        });
        for mask in masks {
            *mask = pow(*mask * params.mask_scale + params.epsilon, params.mask_power) - params.mask_zero;
        }
        for (contrast, reference) in contrast[at.clone()].iter_mut().zip(&reference[at]) {
            let apart = (*contrast - reference).abs();
            *contrast = pow(apart + params.epsilon, params.power) - params.zero;
        }
    }
}

/// The weighed sum of a row and its neighbours, whatever those are. The same operations in the same order as the
/// shaders' for a pixel.
fn blur_row<'a>(out: &mut [f32], weights: &[f32; 8], reach: usize, row: impl Fn(isize) -> &'a [f32]) {
    for (out, value) in out.iter_mut().zip(row(0)) {
        *out = weights[0] * value;
    }
    for (k, weight) in weights.iter().enumerate().take(reach + 1).skip(1) {
        for ((out, one), other) in out.iter_mut().zip(row(-(k as isize))).zip(row(k as isize)) {
            *out += weight * (one + other);
        }
    }
}
