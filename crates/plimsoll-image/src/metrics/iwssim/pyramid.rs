//! The Laplacian pyramid with the binomial filter 1 4 6 4 1, mirrored at the edges, as in the authors' program: each
//! scale is what the next one, made large again, leaves over. Each step doubles the gain.
//!
//! Buffers may hold some rows of a plane only ([`Part`]), so that whole images and bands take the same way.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin};

use crate::run::Run;

static REDUCE: Kernel = Kernel {
    name: "reduce",
    wgsl: include_str!("pyramid.wgsl"),
    entry: "reduce",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: reduce,
};

static SUBTRACT_EXPANDED: Kernel = Kernel {
    name: "subtract_expanded",
    wgsl: include_str!("pyramid.wgsl"),
    entry: "subtract_expanded",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: subtract_expanded,
};

static ENLARGE: Kernel = Kernel {
    name: "enlarge",
    wgsl: include_str!("pyramid.wgsl"),
    entry: "enlarge",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: enlarge,
};

/// A plane, or rows of it, as a kernel sees it: the WGSL says what `rows` counts.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct Part {
    /// Pixels of a row.
    pub(super) width: u32,
    /// Rows of the whole plane where it is read, rows to write where it is written.
    pub(super) rows: u32,
    /// The row of the plane that the buffer begins with.
    pub(super) first: u32,
    unused: u32,
}

impl Part {
    /// All of a plane.
    pub(super) fn whole([width, rows]: [u32; 2]) -> Self {
        Self { width, rows, first: 0, unused: 0 }
    }

    /// A plane to read, of which the buffer holds the rows from `first` on.
    pub(super) fn from(extent: [u32; 2], first: u32) -> Self {
        Self { first, ..Self::whole(extent) }
    }

    /// Rows of a plane to write.
    pub(super) fn rows_of([width, _]: [u32; 2], rows: &Range<u32>) -> Self {
        Self::from([width, rows.len() as u32], rows.start)
    }
}

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    fine: Part,
    coarse: Part,
}

/// Writes rows of the next coarser plane.
pub(super) fn reduce_to(
    run: &mut Run<'_>,
    (from, fine): (&Buffer, Part),
    (to, coarse): (&Buffer, Part),
) -> Result<(), Fault> {
    run.over(&REDUCE, &[from, to], &Params { fine, coarse }, coarse.width, coarse.rows)
}

/// Takes the next coarser plane away from a plane, in place.
pub(super) fn subtract_from(
    run: &mut Run<'_>,
    (from, coarse): (&Buffer, Part),
    (to, fine): (&Buffer, Part),
) -> Result<(), Fault> {
    run.over(&SUBTRACT_EXPANDED, &[from, to], &Params { fine, coarse }, fine.width, fine.rows)
}

/// Writes rows of a plane made large by straight lines between pixels.
pub(super) fn enlarge_to(
    run: &mut Run<'_>,
    (from, coarse): (&Buffer, Part),
    (to, fine): (&Buffer, Part),
) -> Result<(), Fault> {
    run.over(&ENLARGE, &[from, to], &Params { fine, coarse }, fine.width, fine.rows)
}

/// The rows of a plane that rows of the next coarser one are made of.
pub(super) fn rows_to_reduce(rows: u32, coarse: &Range<u32>) -> Range<u32> {
    (2 * coarse.start).saturating_sub(2)..rows.min(2 * coarse.end + 1)
}

/// The rows of the coarser plane, which has `rows`, that are taken away from rows of the finer.
pub(super) fn rows_to_expand(rows: u32, fine: &Range<u32>) -> Range<u32> {
    (fine.start / 2).saturating_sub(1)..rows.min((fine.end - 1) / 2 + 2)
}

/// The rows of the coarser plane, which has `rows`, that rows of the finer lie between.
pub(super) fn rows_to_enlarge(rows: u32, fine: &Range<u32>) -> Range<u32> {
    let last = between(fine.end as usize - 1, rows as usize).0 as u32;
    between(fine.start as usize, rows as usize).0 as u32..rows.min(last + 2)
}

fn mirrored(at: isize, count: usize) -> usize {
    let last = count - 1;
    if at > last as isize { 2 * last - at as usize } else { at.unsigned_abs() }
}

fn beside(at: isize, count: usize) -> usize {
    at.unsigned_abs().min(count - 1)
}

/// Where a row or column of the finer plane lies among `count` of the coarser: after which, and the share of the next.
fn between(at: usize, count: usize) -> (usize, f32) {
    let drift = (3 * at as i64 - count as i64) as f32 / (8 * count - 6) as f32;
    let offset = if at % 2 == 1 { drift } else { 0.5 + drift };
    let low = (at as i64 + 1) / 2 - 1 + offset.floor() as i64;
    match low {
        ..0 => (0, 0.0),
        low if low >= count as i64 - 1 => (count - 1, 0.0),
        low => (low as usize, offset - offset.floor()),
    }
}

/// A row of the next coarser plane, from the five rows around its place.
fn reduce_row(rows: [&[f32]; 5], padded: &mut Vec<f32>, out: &mut [f32]) {
    let width = rows[2].len();
    padded.resize(width + 4, 0.0);
    for (x, sum) in padded[2..width + 2].iter_mut().enumerate() {
        *sum = (rows[0][x] + rows[4][x]) + 4.0 * (rows[1][x] + rows[3][x]) + 6.0 * rows[2][x];
    }
    (padded[0], padded[1]) = (padded[4], padded[3]);
    (padded[width + 2], padded[width + 3]) = (padded[width], padded[width - 1]);
    for (x, out) in out.iter_mut().enumerate() {
        let taps = &padded[2 * x..][..5];
        *out = ((taps[0] + taps[4]) + 4.0 * (taps[1] + taps[3]) + 6.0 * taps[2]) / 128.0;
    }
}

/// Takes what three rows of the coarser plane make of a row, by its number, away from it.
fn subtract_row(number: usize, [before, here, after]: [&[f32]; 3], padded: &mut Vec<f32>, out: &mut [f32]) {
    let width = here.len();
    padded.resize(width + 2, 0.0);
    let sums = padded[1..=width].iter_mut().enumerate();
    if number % 2 == 1 {
        sums.for_each(|(x, sum)| *sum = 4.0 * (here[x] + after[x]));
    } else {
        sums.for_each(|(x, sum)| *sum = (before[x] + after[x]) + 6.0 * here[x]);
    }
    (padded[0], padded[width + 1]) = (padded[2], padded[width]);
    for (x, pair) in out.chunks_mut(2).enumerate() {
        let taps = &padded[x..][..3];
        pair[0] -= ((taps[0] + taps[2]) + 6.0 * taps[1]) / 128.0;
        if let [_, second] = pair {
            *second -= 4.0 * (taps[1] + taps[2]) / 128.0;
        }
    }
}

/// A row between two rows of a coarser plane.
fn enlarge_row(upper: &[f32], lower: &[f32], share: f32, out: &mut [f32]) {
    let side = |at: usize| upper[at] + share * (lower[at] - upper[at]);
    for (x, out) in out.iter_mut().enumerate() {
        let (at, share) = between(x, upper.len());
        let (left, right) = (side(at), side((at + 1).min(upper.len() - 1)));
        *out = left + share * (right - left);
    }
}

/// The next coarser plane.
pub(super) fn reduce_plane(width: usize, fine: &[f32], coarse: &mut [f32]) {
    let (rows, width_out) = (fine.len() / width, width.div_ceil(2));
    let mut padded = Vec::new();
    for (y, out) in coarse.chunks_exact_mut(width_out).enumerate() {
        let row = |by: isize| &fine[mirrored(2 * y as isize + by, rows) * width..][..width];
        reduce_row([row(-2), row(-1), row(0), row(1), row(2)], &mut padded, out);
    }
}

/// Takes the next coarser plane away from a plane.
pub(super) fn subtract_plane(width: usize, coarse: &[f32], fine: &mut [f32]) {
    let half = width.div_ceil(2);
    let mut padded = Vec::new();
    for (y, out) in fine.chunks_exact_mut(width).enumerate() {
        let row = |by: isize| &coarse[beside((y / 2) as isize + by, coarse.len() / half) * half..][..half];
        subtract_row(y, [row(-1), row(0), row(1)], &mut padded, out);
    }
}

/// One row, by its number, of a plane made large.
pub(super) fn enlarged_row(number: usize, width: usize, coarse: &[f32], out: &mut [f32]) {
    let half = width.div_ceil(2);
    let rows = coarse.len() / half;
    let (at, share) = between(number, rows);
    let row = |at: usize| &coarse[at.min(rows - 1) * half..][..half];
    enlarge_row(row(at), row(at + 1), share, out);
}

fn reduce(twin: &mut Twin<'_>) {
    let Params { fine, coarse } = twin.params();
    let width = fine.width as usize;
    let (source, target) = twin.floats_from_to(0, 1);
    let mut padded = Vec::new();
    let out = target.chunks_exact_mut(coarse.width as usize).take(coarse.rows as usize);
    for (y, out) in out.enumerate() {
        let number = 2 * (coarse.first as usize + y) as isize;
        let row = |by: isize| {
            let at = mirrored(number + by, fine.rows as usize) - fine.first as usize;
            &source[at * width..][..width]
        };
        reduce_row([row(-2), row(-1), row(0), row(1), row(2)], &mut padded, out);
    }
}

fn subtract_expanded(twin: &mut Twin<'_>) {
    let Params { fine, coarse } = twin.params();
    let width = coarse.width as usize;
    let (source, target) = twin.floats_from_to(0, 1);
    let mut padded = Vec::new();
    let out = target.chunks_exact_mut(fine.width as usize).take(fine.rows as usize);
    for (y, out) in out.enumerate() {
        let number = fine.first as usize + y;
        let row = |by: isize| {
            let at = beside((number / 2) as isize + by, coarse.rows as usize) - coarse.first as usize;
            &source[at * width..][..width]
        };
        subtract_row(number, [row(-1), row(0), row(1)], &mut padded, out);
    }
}

fn enlarge(twin: &mut Twin<'_>) {
    let Params { fine, coarse } = twin.params();
    let width = coarse.width as usize;
    let (source, target) = twin.floats_from_to(0, 1);
    let out = target.chunks_exact_mut(fine.width as usize).take(fine.rows as usize);
    for (y, out) in out.enumerate() {
        let (at, share) = between(fine.first as usize + y, coarse.rows as usize);
        let row = |at: usize| &source[(at.min(coarse.rows as usize - 1) - coarse.first as usize) * width..][..width];
        enlarge_row(row(at), row(at + 1), share, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_plane_leaves_nothing_over() {
        let (mut fine, mut coarse) = (vec![100.0; 21 * 13], vec![0.0; 11 * 7]);
        reduce_plane(21, &fine, &mut coarse);
        assert!(coarse.iter().all(|value| (value - 200.0).abs() < 1e-4), "the gain is two");
        subtract_plane(21, &coarse, &mut fine);
        assert!(fine.iter().all(|value| value.abs() < 1e-4));
    }

    #[test]
    fn places_between_pixels_follow_the_formula() {
        for count in [11_usize, 12, 100, 4097] {
            for at in 0..2 * count {
                let exact = (4.0 * at as f64 - 1.0) * count as f64 / (8 * count - 6) as f64 - 0.5;
                let (low, share) = between(at, count);
                let got = low as f64 + f64::from(share);
                assert!(
                    (got - exact.clamp(0.0, (count - 1) as f64)).abs() < 1e-6,
                    "{at} of {count}: {got}, not {exact}"
                );
            }
        }
    }
}
