//! How much each place counts: the information that reference and image share with what is seen of them, in bits.
//! The distorted image is taken for the reference times a gain, with noise added; both are seen through more noise.

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
        let count = out.len();
        let (reference, distorted) = (around(reference, count), around(distorted, count));
        let energy = &energy[..count];
        for (x, out) in out.iter_mut().enumerate() {
            let [own, other] = [&reference, &distorted].map(|members| members.map(|member| member[x]));
            *out = self.weight(own, other, energy[x]);
        }
    }

    fn weight(&self, reference: [f32; 9], distorted: [f32; 9], energy: f32) -> f32 {
        let [reference, distorted] = [reference, distorted].map(|members| {
            let mean = members.iter().sum::<f32>() / 9.0;
            members.map(|member| member - mean)
        });
        let product = |one: &[f32; 9], other: &[f32; 9]| {
            let products: [f32; 9] = std::array::from_fn(|at| one[at] * other[at]);
            products.iter().sum::<f32>() / 9.0
        };
        let (variance, variance_other) = (product(&reference, &reference), product(&distorted, &distorted));
        let covariance = product(&reference, &distorted);
        let (gain, left) = match (variance < self.nothing, variance_other < self.nothing) {
            (_, true) => (0.0, 0.0),
            (true, false) => (0.0, variance_other),
            (false, false) => {
                let gain = covariance / variance;
                (gain, (variance_other - gain * covariance).max(0.0))
            }
        };
        let slope = f64::from((left + (1.0 + gain * gain) * NOISE) * energy / (NOISE * NOISE));
        let base = f64::from(1.0 + left / NOISE);
        // The sum of ten logarithms is the logarithm of a product, which a double holds: one call instead of ten.
        let factors = self.eigenvalues[..self.members].iter().map(|&value| base + slope * f64::from(value));
        (factors.product::<f64>().log2() as f32).max(0.0)
    }
}

/// The nine members of the neighbourhoods at a row of places.
fn around(rows: [&[f32]; 3], count: usize) -> [&[f32]; 9] {
    std::array::from_fn(|at| &rows[at / 3][4 + at % 3..][..count])
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
