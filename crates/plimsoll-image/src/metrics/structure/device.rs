//! Similarity with kernels: a pass along rows, then one down columns that ends in the similarity itself.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use super::Terms;
use super::rows::{self, Known};
use super::window::{REACH, along, down, weigh};
use crate::run::Run;

static MOMENTS_OF_ONE: Kernel = Kernel {
    name: "moments_of_one",
    wgsl: include_str!("moments.wgsl"),
    entry: "moments_of_one",
    bindings: &[Access::Read, Access::Write, Access::Write],
    params: size_of::<MomentParams>(),
    twin: moments_of_one,
};

static MOMENTS_OF_TWO: Kernel = Kernel {
    name: "moments_of_two",
    wgsl: include_str!("moments.wgsl"),
    entry: "moments_of_two",
    bindings: &[Access::Read, Access::Read, Access::Write, Access::Write, Access::Write],
    params: size_of::<MomentParams>(),
    twin: moments_of_two,
};

static DESCRIBE: Kernel = Kernel {
    name: "describe",
    wgsl: include_str!("similarity.wgsl"),
    entry: "describe",
    bindings: &[Access::Read, Access::Read, Access::Write, Access::Write],
    params: size_of::<SimilarityParams>(),
    twin: describe,
};

static SIMILARITY: Kernel = Kernel {
    name: "similarity",
    wgsl: include_str!("similarity.wgsl"),
    entry: "similarity",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<SimilarityParams>(),
    twin: similarity,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct MomentParams {
    width: u32,
    rows: u32,
    middle: f32,
    unused: u32,
}

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct SimilarityParams {
    places: u32,
    rows: u32,
    middle: f32,
    c1: f32,
    c2: f32,
    luminance: u32,
    unused: [u32; 2],
}

/// A plane of a reference, or of a band of it, with its means and variances at every place of the window.
pub(in crate::metrics) struct Described {
    /// The plane itself.
    pub(in crate::metrics) plane: Buffer,
    mean: Buffer,
    variance: Buffer,
}

impl Described {
    /// Room for `width` x `rows` pixels.
    pub(in crate::metrics) fn open(run: &mut Run<'_>, extent: [u32; 2]) -> Result<Self, Fault> {
        let plane = run.allocate(pixels_of(extent))?;
        Ok(Self { plane, mean: run.allocate(places_of(extent))?, variance: run.allocate(places_of(extent))? })
    }
}

/// How many pixels `width` x `rows` are.
pub(in crate::metrics) fn pixels_of([width, rows]: [u32; 2]) -> u64 {
    u64::from(width) * u64::from(rows)
}

/// How many places the window has on `width` x `rows` pixels.
pub(in crate::metrics) fn places_of([width, rows]: [u32; 2]) -> u64 {
    u64::from(width - REACH) * u64::from(rows - REACH)
}

/// What a comparison needs beside the images: rows weighed along, and the similarity at every place.
pub(in crate::metrics) struct Comparison {
    along: [Buffer; 3],
    similarity: Buffer,
}

impl Comparison {
    /// Room for comparisons of up to `width` x `rows` pixels.
    pub(in crate::metrics) fn open(run: &mut Run<'_>, [width, rows]: [u32; 2]) -> Result<Self, Fault> {
        let words = u64::from(width - REACH) * u64::from(rows);
        Ok(Self {
            along: [run.allocate(words)?, run.allocate(words)?, run.allocate(words)?],
            similarity: run.allocate(places_of([width, rows]))?,
        })
    }

    /// The similarity at every place, as the last comparison left it.
    pub(in crate::metrics) fn similarity(&self) -> &Buffer {
        &self.similarity
    }

    /// Makes the statistics of a plane of `width` x `rows` that lies there already.
    pub(in crate::metrics) fn describe(
        &self,
        run: &mut Run<'_>,
        [width, rows]: [u32; 2],
        of: &Described,
        terms: Terms,
    ) -> Result<(), Fault> {
        let [values, squares, _] = &self.along;
        let params = MomentParams { width, rows, middle: terms.middle, unused: 0 };
        run.over(&MOMENTS_OF_ONE, &[&of.plane, values, squares], &params, width - REACH, rows)?;
        let params = similarity_params([width, rows], terms);
        run.over(&DESCRIBE, &[values, squares, &of.mean, &of.variance], &params, params.places, params.rows)
    }

    /// Compares two planes of `width` x `rows`, the first of them described already.
    pub(in crate::metrics) fn compare(
        &self,
        run: &mut Run<'_>,
        [width, rows]: [u32; 2],
        reference: &Described,
        distorted: &Buffer,
        terms: Terms,
    ) -> Result<(), Fault> {
        let [differences, squares, own] = &self.along;
        let params = MomentParams { width, rows, middle: terms.middle, unused: 0 };
        let buffers = [&reference.plane, distorted, differences, squares, own];
        run.over(&MOMENTS_OF_TWO, &buffers, &params, width - REACH, rows)?;
        let params = similarity_params([width, rows], terms);
        let buffers = [differences, squares, own, &reference.mean, &reference.variance, &self.similarity];
        run.over(&SIMILARITY, &buffers, &params, params.places, params.rows)
    }
}

fn similarity_params([width, rows]: [u32; 2], terms: Terms) -> SimilarityParams {
    let Terms { c1, c2, middle, luminance } = terms;
    let (places, rows) = (width - REACH, rows - REACH);
    SimilarityParams { places, rows, middle, c1, c2, luminance: u32::from(luminance), unused: [0; 2] }
}

fn moments_of_one(twin: &mut Twin<'_>) {
    let params: MomentParams = twin.params();
    let (width, places) = (params.width as usize, (params.width - REACH) as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let mut values = [vec![0.0; width], vec![0.0; width]];
    for (y, row) in reads[0].chunks_exact(width).take(params.rows as usize).enumerate() {
        let [value, square] = &mut values;
        rows::moments_of_one(row, params.middle, value, square);
        for (values, out) in values.iter().zip(&mut writes) {
            weigh(along(values), &mut out[y * places..][..places]);
        }
    }
}

fn moments_of_two(twin: &mut Twin<'_>) {
    let params: MomentParams = twin.params();
    let (width, places) = (params.width as usize, (params.width - REACH) as usize);
    let (reads, mut writes) = twin.reads_and_writes();
    let mut values = [vec![0.0; width], vec![0.0; width], vec![0.0; width]];
    let both = reads[0].chunks_exact(width).zip(reads[1].chunks_exact(width));
    for (y, (reference, distorted)) in both.take(params.rows as usize).enumerate() {
        let [differences, squares, own] = &mut values;
        rows::moments_of_two(reference, distorted, params.middle, [differences, squares, own]);
        for (values, out) in values.iter().zip(&mut writes) {
            weigh(along(values), &mut out[y * places..][..places]);
        }
    }
}

fn describe(twin: &mut Twin<'_>) {
    let params: SimilarityParams = twin.params();
    let places = params.places as usize;
    let (reads, writes) = twin.reads_and_writes();
    let [mean, variance]: [&mut [f32]; 2] = writes.try_into().expect("the kernel has two outputs");
    let mut weighed = [vec![0.0; places], vec![0.0; places]];
    let out = mean.chunks_exact_mut(places).zip(variance.chunks_exact_mut(places));
    for (y, (mean, variance)) in out.take(params.rows as usize).enumerate() {
        let taps = [0, 1].map(|kind: usize| down(reads[kind], places, y));
        rows::describe_row(taps, params.middle, &mut weighed, mean, variance);
    }
}

fn similarity(twin: &mut Twin<'_>) {
    let params: SimilarityParams = twin.params();
    let SimilarityParams { middle, c1, c2, .. } = params;
    let (places, terms) = (params.places as usize, Terms { c1, c2, middle, luminance: params.luminance != 0 });
    let (reads, mut writes) = twin.reads_and_writes();
    let mut weighed = [vec![0.0; places], vec![0.0; places], vec![0.0; places]];
    for (y, out) in writes[0].chunks_exact_mut(places).take(params.rows as usize).enumerate() {
        let taps = [0, 1, 2].map(|kind: usize| down(reads[kind], places, y));
        let known = Known { mean: &reads[3][y * places..][..places], variance: &reads[4][y * places..][..places] };
        rows::similarity_row(taps, known, terms, &mut weighed, out);
    }
}
