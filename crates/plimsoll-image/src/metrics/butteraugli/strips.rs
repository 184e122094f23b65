//! Butteraugli in bands of rows, both images and both resolutions one after the other in the same planes.
//! Invariant: each band has [`HALO`] rows more on either side, of the resolution it is in.

use std::ops::Range;

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::kernels::halve_three;
use super::kernels::norms::{Norms, Reduction, Rows};
use super::scale::{Desk, HALO, ReferenceScale};
use super::{half_size, score};
use crate::feed::{Feed, Source};
use crate::image::{Shape, Size};
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::strips::StripReference;
use crate::metrics::workload::Score;
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

/// Planes of a band: eleven for the reference, eight for the image; one more, a quarter as large, holds the distances
/// at half the resolution.
const PLANES: u64 = 20;
/// What they may take where a band has more rows than [`ROWS_MIN`].
const PLANES_BYTES: u64 = 42 << 20;
/// Rows of a band that count, at least: then 54 % of the work goes into the halo, and 4096 pixels a row fit in 48 MiB.
const ROWS_MIN: u32 = 64;
/// Rows of a band that count, at most: with 256, the halo costs 29 %, and more rows would win little.
const ROWS_MAX: u32 = 256;

/// Bands of rows.
#[derive(Copy, Clone)]
pub(super) struct ButteraugliStrips;

pub(super) struct StripWork {
    feed: Feed,
    reference: ReferenceScale,
    colour: Planes,
    spare: Planes,
    detail: Buffer,
    map: Buffer,
    map_half: Buffer,
    reduction: Reduction,
    rows: u32,
}

/// Rows of a band, with those around it that it depends on, at one resolution.
struct Band {
    /// All of them.
    rows: Range<u32>,
    /// Where those begin that count, from the first of all.
    first: u32,
}

impl Band {
    fn around(counted: Range<u32>, height: u32) -> Self {
        let start = counted.start.saturating_sub(HALO);
        Self { rows: start..height.min(counted.end + HALO), first: counted.start - start }
    }
}

/// Rows of a band that count: an even number, so that no pixel of half the resolution lies in two bands.
fn rows_of_a_band(width: u32) -> u32 {
    let rows = (PLANES_BYTES / (PLANES * 4 * u64::from(width))).saturating_sub(u64::from(2 * HALO));
    (rows as u32 & !1).clamp(ROWS_MIN, ROWS_MAX)
}

impl DeviceMetric for ButteraugliStrips {
    type Work = StripWork;
    type Reference = StripReference;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<StripWork, Fault> {
        let Size { width, height } = shape.size;
        let rows = rows_of_a_band(width).min(height);
        let pixels = u64::from(width) * u64::from(height.min(rows + 2 * HALO));
        let half = half_size(shape.size)
            .map_or(1, |half| u64::from(half.width) * u64::from(half.height.min(rows.div_ceil(2) + 2 * HALO)));
        Ok(StripWork {
            feed: Feed::open(run, shape, Transfer::Linear)?,
            reference: ReferenceScale::open(run, pixels)?,
            colour: Planes::open(run, pixels)?,
            spare: Planes::open(run, pixels)?,
            detail: run.allocate(pixels)?,
            map: run.allocate(pixels)?,
            map_half: run.allocate(half)?,
            reduction: Reduction::open(run, u64::from(width) * u64::from(rows))?,
            rows,
        })
    }

    fn prepare(&self, run: &mut Run<'_>, _: &mut StripWork, reference: Source<'_>) -> Result<StripReference, Fault> {
        StripReference::open(run, reference, Transfer::Linear)
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut StripWork,
        reference: &StripReference,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        let mut norms = Norms::default();
        for first in (0..size.height).step_by(work.rows as usize) {
            let counted = first..size.height.min(first + work.rows);
            norms.add(&work.compare(run, reference, distorted, counted)?);
        }
        Ok(score(size, &norms))
    }
}

impl StripWork {
    /// The norms of some rows.
    fn compare(
        &self,
        run: &mut Run<'_>,
        reference: &StripReference,
        distorted: Source<'_>,
        counted: Range<u32>,
    ) -> Result<Norms, Fault> {
        let size = distorted.shape().size;
        let first_half = match half_size(size) {
            Some(half) => Some(self.compare_half(run, reference, distorted, counted.clone(), half)?),
            None => None,
        };
        let band = Band::around(counted.clone(), size.height);
        reference.rows(run, band.rows.clone(), &self.reference.colour)?;
        self.feed.rows(run, distorted, band.rows.clone(), self.colour.each())?;
        self.map(run, [size.width, band.rows.len() as u32], &self.map)?;
        let rows = Rows { width: size.width, first: band.first, count: counted.len() as u32, first_half };
        self.reduction.norms(run, &self.map, &self.map_half, rows)
    }

    /// Maps the distances of some rows at half the resolution, and says where they begin.
    fn compare_half(
        &self,
        run: &mut Run<'_>,
        reference: &StripReference,
        distorted: Source<'_>,
        counted: Range<u32>,
        half: Size,
    ) -> Result<u32, Fault> {
        let size = distorted.shape().size;
        let band = Band::around(counted.start / 2..counted.end.div_ceil(2), half.height);
        let bring = |run: &mut Run<'_>, rows| reference.rows(run, rows, &self.spare);
        self.halve(run, size, &band, bring, &self.reference.colour)?;
        let bring = |run: &mut Run<'_>, rows| self.feed.rows(run, distorted, rows, self.spare.each());
        self.halve(run, size, &band, bring, &self.colour)?;
        self.map(run, [half.width, band.rows.len() as u32], &self.map_half)?;
        Ok(band.first)
    }

    /// Brings the rows of a band at half the resolution, through the spare planes: they hold fewer rows of the full one
    /// than the band stands for, so in pieces.
    fn halve(
        &self,
        run: &mut Run<'_>,
        size: Size,
        band: &Band,
        bring: impl Fn(&mut Run<'_>, Range<u32>) -> Result<(), Fault>,
        to: &Planes,
    ) -> Result<(), Fault> {
        let first = 2 * band.rows.start;
        let last = size.height.min(2 * band.rows.end);
        let step = size.height.min(self.rows + 2 * HALO) & !1;
        for start in (first..last).step_by(step as usize) {
            let rows = start..last.min(start + step);
            bring(run, rows.clone())?;
            let sides = [size.width, rows.len() as u32];
            halve_three::halve(run, sides, self.spare.each(), to.each(), (start - first) / 2)?;
        }
        Ok(())
    }

    /// Maps the distances of the light in the planes.
    fn map(&self, run: &mut Run<'_>, size: [u32; 2], map: &Buffer) -> Result<(), Fault> {
        self.reference.prepare(run, size, self.spare.each())?;
        let desk = Desk { colour: self.colour.each(), spare: self.spare.each(), detail: &self.detail, map };
        self.reference.compare(run, size, desk)
    }
}
