//! MS-SSIM with kernels on the image as a whole: one read at the end, for all scales together.

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::{PEAK, score, terms};
use crate::feed::Source;
use crate::image::Shape;
use crate::kernels::total::Totals;
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::structure::device::{Comparison, Described, pixels_of, places_of};
use crate::metrics::structure::halve::Rows;
use crate::metrics::structure::luma::LumaFeed;
use crate::metrics::structure::scales::extents;
use crate::metrics::workload::Score;
use crate::run::Run;

/// The image as a whole.
#[derive(Copy, Clone)]
pub(super) struct MsSsimWhole;

pub(super) struct Work {
    feed: LumaFeed,
    scales: Vec<Buffer>,
    comparison: Comparison,
    totals: Totals,
}

/// Halves a plane of `width` x `rows`.
fn halve(run: &mut Run<'_>, [width, rows]: [u32; 2], from: &Buffer, to: &Buffer) -> Result<(), Fault> {
    Rows { width, rows, first: 0, first_out: 0 }.halve(run, from, to)
}

impl DeviceMetric for MsSsimWhole {
    type Work = Work;
    type Reference = Vec<Described>;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Work, Fault> {
        let extents = extents(shape.size);
        let feed = LumaFeed::open(run, shape, PEAK)?;
        let scales = extents.iter().map(|&extent| run.allocate(pixels_of(extent))).collect::<Result<_, _>>()?;
        let comparison = Comparison::open(run, extents[0])?;
        let totals = Totals::open(run, extents.iter().map(|&extent| places_of(extent)))?;
        Ok(Work { feed, scales, comparison, totals })
    }

    fn prepare(&self, run: &mut Run<'_>, work: &mut Work, reference: Source<'_>) -> Result<Vec<Described>, Fault> {
        let size = reference.shape().size;
        let extents = extents(size);
        let feed = LumaFeed::open(run, reference.shape(), PEAK)?;
        let scales: Vec<_> = extents.iter().map(|&extent| Described::open(run, extent)).collect::<Result<_, _>>()?;
        feed.rows(run, reference, 0..size.height, &scales[0].plane, 0)?;
        for (pair, &extent) in scales.windows(2).zip(&extents) {
            halve(run, extent, &pair[0].plane, &pair[1].plane)?;
        }
        for (at, (scale, &extent)) in scales.iter().zip(&extents).enumerate() {
            work.comparison.describe(run, extent, scale, terms(at, extents.len()))?;
        }
        Ok(scales)
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Work,
        reference: &Vec<Described>,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        let extents = extents(size);
        work.feed.rows(run, distorted, 0..size.height, &work.scales[0], 0)?;
        for (pair, &extent) in work.scales.windows(2).zip(&extents) {
            halve(run, extent, &pair[0], &pair[1])?;
        }
        work.totals.begin(run)?;
        for (at, (scale, &extent)) in work.scales.iter().zip(&extents).enumerate() {
            work.comparison.compare(run, extent, &reference[at], scale, terms(at, extents.len()))?;
            work.totals.add(run, work.comparison.similarity(), 0..places_of(extent) as u32)?;
        }
        Ok(score(&extents, &work.totals.read(run)?))
    }
}
