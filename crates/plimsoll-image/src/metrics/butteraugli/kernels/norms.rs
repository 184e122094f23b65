//! From a map of distances to the largest and to three norms. The device works on runs of pixels, the host puts those
//! together in double precision.
//! Invariant: sums are of shares of a run's largest distance, so no twelfth power leaves the range of a float.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin, read_floats};

use crate::run::Run;

static NORMS: Kernel = Kernel {
    name: "norms",
    wgsl: include_str!("norms.wgsl"),
    entry: "norms",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: norms,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    first: u32,
    first_half: u32,
    has_half: u32,
    unused: [u32; 3],
}

/// Pixels of one workgroup: an image of the largest size takes half as many workgroups as a launch may have.
const RUN: u32 = 8192;
/// Lanes of a workgroup.
const LANES: usize = 256;
/// Words that a workgroup writes: the largest distance, and three sums.
const WORDS: usize = 4;
/// How much of a distance stays where one at half the resolution is added, and how much of that is.
const FULL_SHARE: f32 = 0.85;
const HALF_SHARE: f32 = 0.5;

/// The largest distance, and sums of the third, sixth and twelfth powers.
#[derive(Copy, Clone, Debug, Default)]
pub(in super::super) struct Norms {
    /// The largest distance.
    pub(in super::super) max: f64,
    powers: [f64; 3],
}

/// Rows of a map of distances, and where they begin at half the resolution.
#[derive(Copy, Clone)]
pub(in super::super) struct Rows {
    pub(in super::super) width: u32,
    pub(in super::super) first: u32,
    pub(in super::super) count: u32,
    /// Nothing if there is no half resolution.
    pub(in super::super) first_half: Option<u32>,
}

/// Where the device leaves its part of the norms.
pub(in super::super) struct Reduction {
    partials: Buffer,
}

impl Norms {
    /// The 3-norm: the mean of the norms of order 3, 6 and 12 over this many pixels.
    pub(in super::super) fn norm3(&self, pixels: u64) -> f64 {
        let norm = |(power, order): (f64, f64)| (power / pixels as f64).powf(1.0 / order);
        self.powers.into_iter().zip([3.0, 6.0, 12.0]).map(norm).sum::<f64>() / 3.0
    }

    /// Adds other pixels. What is not a number stays so.
    pub(in super::super) fn add(&mut self, other: &Self) {
        self.max = self.max.max(other.max);
        self.powers.iter_mut().zip(other.powers).for_each(|(power, other)| *power += other);
    }

    fn of_partial(partial: &[f32]) -> Self {
        let max = f64::from(partial[0]);
        let power = |share: f32, order| f64::from(share) * max.powi(order);
        Self { max, powers: [power(partial[1], 3), power(partial[2], 6), power(partial[3], 12)] }
    }
}

impl Reduction {
    /// Room for maps of this many pixels.
    pub(in super::super) fn open(run: &mut Run<'_>, pixels: u64) -> Result<Self, Fault> {
        Ok(Self { partials: run.allocate(pixels.div_ceil(u64::from(RUN)) * WORDS as u64)? })
    }

    /// The norms of some rows of a map, to which the map at half the resolution is added.
    pub(in super::super) fn norms(
        &self,
        run: &mut Run<'_>,
        map: &Buffer,
        map_half: &Buffer,
        rows: Rows,
    ) -> Result<Norms, Fault> {
        let groups = (rows.width * rows.count).div_ceil(RUN);
        let params = Params {
            width: rows.width,
            rows: rows.count,
            first: rows.first,
            first_half: rows.first_half.unwrap_or(0),
            has_half: u32::from(rows.first_half.is_some()),
            unused: [0; 3],
        };
        run.backend.poison(&self.partials)?;
        run.launch(&NORMS, &[map, map_half, &self.partials], &params, [groups, 1, 1])?;
        let partials = read_floats(run.backend, &self.partials, groups as usize * WORDS)?;
        let mut norms = Norms::default();
        partials.chunks_exact(WORDS).for_each(|partial| norms.add(&Norms::of_partial(partial)));
        Ok(norms)
    }
}

fn norms(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, half) = (params.width as usize, params.width.div_ceil(2) as usize);
    let count = width * params.rows as usize;
    let (reads, mut writes) = twin.reads_and_writes();
    let first = params.first as usize * width;
    let distance = |at: usize| {
        let full = reads[0][first + at];
        if params.has_half == 0 {
            return full;
        }
        let (x, y) = (at % width, at / width);
        full * FULL_SHARE + HALF_SHARE * reads[1][(params.first_half as usize + y / 2) * half + x / 2]
    };
    let mut distances = vec![0.0; RUN as usize];
    for (start, partial) in (0..count).step_by(RUN as usize).zip(writes[0].chunks_exact_mut(WORDS)) {
        let distances = &mut distances[..(count - start).min(RUN as usize)];
        distances.iter_mut().enumerate().for_each(|(at, out)| *out = distance(start + at));
        reduce(distances, partial);
    }
}

fn reduce(distances: &[f32], partial: &mut [f32]) {
    let max = distances.iter().copied().fold(0.0, f32::max);
    let share = if max > 0.0 { 1.0 / max } else { 0.0 };
    let mut lanes = [[0.0_f32; LANES]; 3];
    for row in distances.chunks(LANES) {
        for (lane, distance) in row.iter().enumerate() {
            let part = distance * share;
            let power = part * part * part;
            lanes[0][lane] += power;
            lanes[1][lane] += power * power;
            lanes[2][lane] += (power * power) * (power * power);
        }
    }
    partial[0] = max;
    partial[1..].iter_mut().zip(lanes).for_each(|(out, lanes)| *out = lanes.iter().sum());
}
