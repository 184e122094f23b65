//! How much each place counts: the information that reference and image share with what is seen of them, in bits.
//! The distorted image is taken for the reference times a gain, with noise added; both are seen through more noise.

use std::f64::consts::{LOG2_E, SQRT_2};

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::model::{MEMBERS_MAX, Model};
use crate::metrics::structure::window::REACH;
use crate::run::Run;

static WEIGH: Kernel = Kernel {
    name: "weigh",
    wgsl: include_str!("weigh.wgsl"),
    entry: "weigh",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Write, Access::Write],
    params: size_of::<Params>(),
    twin: weigh,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    members: u32,
    nothing: f32,
    eigenvalues: [f32; 12],
}

/// The variance of the noise that everything is seen through, for samples from 0 to 255.
const NOISE: f32 = 0.4;

/// What one scale is weighed with.
#[derive(Copy, Clone)]
pub(super) struct Scale {
    /// The reference's eigenvalues; those that are zero stand for members that are always the same.
    eigenvalues: [f32; MEMBERS_MAX],
    members: usize,
    nothing: f32,
}

impl Scale {
    /// For a model. Variance below `nothing` is only rounding.
    pub(super) fn new(model: &Model, nothing: f32) -> Self {
        Self { eigenvalues: model.eigenvalues, members: model.members, nothing }
    }

    /// Writes the weight of every place on `width` x `rows` pixels, and each times its similarity.
    pub(super) fn weigh(
        &self,
        run: &mut Run<'_>,
        [width, rows]: [u32; 2],
        [reference, distorted, energy, similarity]: [&Buffer; 4],
        [weights, weighed]: [&Buffer; 2],
    ) -> Result<(), Fault> {
        let mut eigenvalues = [0.0; 12];
        eigenvalues[..MEMBERS_MAX].copy_from_slice(&self.eigenvalues);
        let params = Params { width, rows, members: self.members as u32, nothing: self.nothing, eigenvalues };
        let buffers = [reference, distorted, energy, similarity, weights, weighed];
        run.over(&WEIGH, &buffers, &params, width - REACH, rows - REACH)
    }

    /// The weights of a row of places, whose middle rows these are.
    pub(super) fn weigh_row(&self, reference: [&[f32]; 3], distorted: [&[f32]; 3], energy: &[f32], out: &mut [f32]) {
        for (at, out) in out.chunks_mut(CHUNK).enumerate() {
            let (left, count) = (at * CHUNK, out.len());
            let (reference, distorted) = (around(reference, left, count), around(distorted, left, count));
            self.weigh_chunk(reference, distorted, &energy[left..][..count], out);
        }
    }

    /// Step by step over a few places, so that each step is a loop that vectorises: about five times as fast as place
    /// by place.
    fn weigh_chunk(&self, reference: [&[f32]; 9], distorted: [&[f32]; 9], energy: &[f32], out: &mut [f32]) {
        let [variance, variance_other, covariance] = moments(reference, distorted);
        let (mut base, mut slope, mut product) = ([0.0_f32; CHUNK], [0.0_f32; CHUNK], [1.0_f64; CHUNK]);
        for (x, &energy) in energy.iter().take(CHUNK).enumerate() {
            let moments = [variance[x], variance_other[x], covariance[x]];
            (base[x], slope[x]) = line(moments, energy, self.nothing);
        }
        // The sum of ten logarithms is the logarithm of a product, which a double holds.
        for &value in &self.eigenvalues[..self.members] {
            for ((product, base), slope) in product.iter_mut().zip(&base).zip(&slope) {
                *product *= f64::from(base + slope * value);
            }
        }
        for (out, &product) in out.iter_mut().zip(&product) {
            *out = (log2(product) as f32).max(0.0);
        }
    }
}

/// Places that are weighed together: little enough for the first-level cache.
const CHUNK: usize = 64;
/// The share of one of nine members.
const NINTH: f32 = 1.0 / 9.0;

/// The variance of the reference's neighbourhoods, that of the image's, and their covariance.
fn moments(reference: [&[f32]; 9], distorted: [&[f32]; 9]) -> [[f32; CHUNK]; 3] {
    let (mean, mean_other) = (mean_of(reference), mean_of(distorted));
    let [mut variance, mut variance_other, mut covariance] = [[0.0; CHUNK]; 3];
    for (member, other) in reference.into_iter().zip(distorted) {
        let count = member.len().min(CHUNK);
        let (member, other) = (&member[..count], &other[..count]);
        for x in 0..count {
            let (apart, apart_other) = (member[x] - mean[x], other[x] - mean_other[x]);
            variance[x] += apart * apart * NINTH;
            variance_other[x] += apart_other * apart_other * NINTH;
            covariance[x] += apart * apart_other * NINTH;
        }
    }
    [variance, variance_other, covariance]
}

fn mean_of(members: [&[f32]; 9]) -> [f32; CHUNK] {
    let mut sum = [0.0; CHUNK];
    for member in members {
        sum.iter_mut().zip(member).for_each(|(sum, member)| *sum += member);
    }
    sum.map(|sum| sum * NINTH)
}

/// What the information in a neighbourhood is made of: `log2(base + slope * eigenvalue)`, summed over the eigenvalues.
#[inline]
fn line([variance, variance_other, covariance]: [f32; 3], energy: f32, nothing: f32) -> (f32, f32) {
    // Without branches, which would keep the loop around this from being vectorised.
    let gain = if variance < nothing { 0.0 } else { covariance / variance };
    let left = (variance_other - gain * covariance).max(0.0);
    let gain = if variance_other < nothing { 0.0 } else { gain };
    let left = if variance_other < nothing { 0.0 } else { left };
    (1.0 + left / NOISE, (left + (1.0 + gain * gain) * NOISE) * energy / (NOISE * NOISE))
}

/// The binary logarithm of a number that is at least about 1, to nine digits. A loop over the library's own would not
/// vectorise.
#[inline]
fn log2(value: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = value.to_bits();
    let exponent = f64::from((bits >> 52) as i32 - 1023);
    let mantissa = f64::from_bits(bits & MANTISSA | 1.0_f64.to_bits());
    // Around the middle of 1 to 2: ln m = ln sqrt 2 + 2 artanh t, with |t| below 0.172.
    let t = (mantissa - SQRT_2) / (mantissa + SQRT_2);
    let square = t * t;
    let series =
        1.0 + square * (1.0 / 3.0 + square * (1.0 / 5.0 + square * (1.0 / 7.0 + square * (1.0 / 9.0 + square / 11.0))));
    exponent + 0.5 + 2.0 * LOG2_E * t * series
}

/// The nine members of the neighbourhoods at some places of a row, from the place `left` on.
fn around(rows: [&[f32]; 3], left: usize, count: usize) -> [&[f32]; 9] {
    std::array::from_fn(|at| &rows[at / 3][left + 4 + at % 3..][..count])
}

fn weigh(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, places) = (params.width as usize, (params.width - REACH) as usize);
    let eigenvalues = std::array::from_fn(|at| params.eigenvalues[at]);
    let scale = Scale { eigenvalues, members: params.members as usize, nothing: params.nothing };
    let (reads, writes) = twin.reads_and_writes();
    let [weights, weighed]: [&mut [f32]; 2] = writes.try_into().expect("the kernel has two outputs");
    let rows = weights.chunks_exact_mut(places).zip(weighed.chunks_exact_mut(places));
    for (y, (weights, weighed)) in rows.take((params.rows - REACH) as usize).enumerate() {
        let three = |plane: usize| [4, 5, 6].map(|by: usize| &reads[plane][(y + by) * width..][..width]);
        let [energy, similarity] = [2, 3].map(|plane: usize| &reads[plane][y * places..][..places]);
        scale.weigh_row(three(0), three(1), energy, weights);
        for ((weighed, weight), similarity) in weighed.iter_mut().zip(weights).zip(similarity) {
            *weighed = *weight * similarity;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_right_to_nine_digits() {
        for step in 0..4000 {
            let value = 1.0 + (f64::from(step) * 0.05).exp2() * 1e-7;
            assert!((log2(value) - value.log2()).abs() <= 1e-9 * value.log2().max(1.0), "{value}");
        }
        assert!(log2(1.0).abs() < 1e-9);
    }
}
