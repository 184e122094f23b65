//! A separable symmetric filter with a finite reach, one pass along the rows and one down the columns. Beyond the edge
//! lies nothing, and what is inside weighs the more.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use crate::run::Run;

static ROWS: Kernel = Kernel {
    name: "fir_rows",
    wgsl: include_str!("fir.wgsl"),
    entry: "fir_rows",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: fir_rows,
};

static COLUMNS: Kernel = Kernel {
    name: "fir_columns",
    wgsl: include_str!("fir.wgsl"),
    entry: "fir_columns",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: fir_columns,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    rows: u32,
    radius: u32,
    unused: u32,
    weights: [f32; Filter::RADIUS_LIMIT + 1],
}

/// A symmetric filter: its weights by distance.
#[derive(Copy, Clone, Debug)]
pub(in super::super) struct Filter {
    radius: u32,
    weights: [f32; Filter::RADIUS_LIMIT + 1],
}

impl Filter {
    /// The largest reach: its weights fill the parameters.
    pub(in super::super) const RADIUS_LIMIT: usize = 47;

    /// A filter with these weights, the middle one first.
    pub(in super::super) fn new(weights: &[f32]) -> Self {
        assert!((1..=Self::RADIUS_LIMIT + 1).contains(&weights.len()), "a filter has 1 to 48 weights");
        let mut padded = [0.0; Self::RADIUS_LIMIT + 1];
        padded[..weights.len()].copy_from_slice(weights);
        Self { radius: weights.len() as u32 - 1, weights: padded }
    }

    /// Filters a plane of `width` x `rows`, through `scratch`. `to` may be neither of the others.
    pub(in super::super) fn apply(
        &self,
        run: &mut Run<'_>,
        [width, rows]: [u32; 2],
        from: &Buffer,
        scratch: &Buffer,
        to: &Buffer,
    ) -> Result<(), Fault> {
        let params = Params { width, rows, radius: self.radius, unused: 0, weights: self.weights };
        run.over(&ROWS, &[from, scratch], &params, width, rows)?;
        run.over(&COLUMNS, &[scratch, to], &params, width, rows)
    }
}

fn fir_rows(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, radius) = (params.width as usize, params.radius as usize);
    let (source, target) = twin.floats_from_to(0, 1);
    // A row with zeros beyond its edges needs no cases, so the inner loop vectorises.
    let mut padded = vec![0.0; width + 2 * radius];
    let shares = shares(&params, width);
    let rows = source.chunks_exact(width).zip(target.chunks_exact_mut(width));
    for (source, target) in rows.take(params.rows as usize) {
        padded[radius..radius + width].copy_from_slice(source);
        weigh(target, params.weights[0], source);
        for k in 1..=radius {
            add_pair(target, params.weights[k], &padded[radius - k..], &padded[radius + k..]);
        }
        target.iter_mut().zip(&shares).for_each(|(target, share)| *target /= share);
    }
}

fn fir_columns(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, rows) = (params.width as usize, params.rows as usize);
    let (source, target) = twin.floats_from_to(0, 1);
    let shares = shares(&params, rows);
    let zeros = vec![0.0; width];
    let row = |y: isize| match usize::try_from(y) {
        Ok(y) if y < rows => &source[y * width..][..width],
        _ => &zeros[..],
    };
    for (y, target) in target.chunks_exact_mut(width).take(rows).enumerate() {
        let at = y as isize;
        weigh(target, params.weights[0], row(at));
        for k in 1..=params.radius as isize {
            add_pair(target, params.weights[k as usize], row(at - k), row(at + k));
        }
        target.iter_mut().for_each(|target| *target /= shares[y]);
    }
}

/// How much of the filter lies inside, for each position along a side.
fn shares(params: &Params, count: usize) -> Vec<f32> {
    let inside = |at: usize| {
        let mut share = params.weights[0];
        for k in 1..=params.radius as usize {
            share += if at >= k { params.weights[k] } else { 0.0 };
            share += if at + k < count { params.weights[k] } else { 0.0 };
        }
        share
    };
    (0..count).map(inside).collect()
}

fn weigh(target: &mut [f32], weight: f32, source: &[f32]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target = weight * source;
    }
}

/// The same operations, in the same order, as the shader's for a pixel.
fn add_pair(target: &mut [f32], weight: f32, one: &[f32], other: &[f32]) {
    for ((target, one), other) in target.iter_mut().zip(one).zip(other) {
        *target += weight * (one + other);
    }
}
