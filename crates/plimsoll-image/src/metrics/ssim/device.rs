//! SSIM with kernels: luma, similarity at every place of the window, and its mean.

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::{PEAK, terms};
use crate::feed::Source;
use crate::image::Shape;
use crate::kernels::total::Totals;
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::structure::device::{Comparison, Described, places_of};
use crate::metrics::structure::luma::{LumaFeed, StripLuma};
use crate::metrics::structure::window::REACH;
use crate::metrics::workload::Score;
use crate::run::Run;

/// The image as a whole.
#[derive(Copy, Clone)]
pub(super) struct SsimWhole;

/// The buffers for images, or bands, of one width.
pub(super) struct Work {
    feed: LumaFeed,
    distorted: Buffer,
    comparison: Comparison,
    totals: Totals,
}

impl Work {
    fn open(run: &mut Run<'_>, shape: Shape, rows: u32) -> Result<Self, Fault> {
        let extent = [shape.size.width, rows];
        Ok(Self {
            feed: LumaFeed::open(run, shape, PEAK)?,
            distorted: run.allocate(u64::from(extent[0]) * u64::from(rows))?,
            comparison: Comparison::open(run, extent)?,
            totals: Totals::open(run, [places_of(extent)])?,
        })
    }

    /// The sum of similarities of two planes that lie on the device.
    fn sum(&mut self, run: &mut Run<'_>, extent: [u32; 2], reference: &Described) -> Result<f64, Fault> {
        self.comparison.compare(run, extent, reference, &self.distorted, terms())?;
        self.totals.begin(run)?;
        self.totals.add(run, self.comparison.similarity(), 0..places_of(extent) as u32)?;
        Ok(self.totals.read(run)?.iter().sum())
    }
}

impl DeviceMetric for SsimWhole {
    type Work = Work;
    type Reference = Described;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Work, Fault> {
        Work::open(run, shape, shape.size.height)
    }

    fn prepare(&self, run: &mut Run<'_>, work: &mut Work, reference: Source<'_>) -> Result<Described, Fault> {
        let Shape { size, .. } = reference.shape();
        let extent = [size.width, size.height];
        let feed = LumaFeed::open(run, reference.shape(), PEAK)?;
        let described = Described::open(run, extent)?;
        feed.rows(run, reference, 0..size.height, &described.plane, 0)?;
        work.comparison.describe(run, extent, &described, terms())?;
        Ok(described)
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Work,
        reference: &Described,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        let extent = [size.width, size.height];
        work.feed.rows(run, distorted, 0..size.height, &work.distorted, 0)?;
        Ok(Score::of(work.sum(run, extent, reference)? / places_of(extent) as f64))
    }
}

/// Bands of rows, one after the other in the same buffers.
#[derive(Copy, Clone)]
pub(super) struct SsimStrips;

pub(super) struct StripWork {
    work: Work,
    reference: Described,
    /// Rows of places in a band. The window reaches ten rows further.
    step: u32,
}

impl DeviceMetric for SsimStrips {
    type Work = StripWork;
    type Reference = StripLuma;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<StripWork, Fault> {
        let step = (shape.size.height - REACH).div_ceil(8).clamp(1, 128);
        let reference = Described::open(run, [shape.size.width, step + REACH])?;
        Ok(StripWork { work: Work::open(run, shape, step + REACH)?, reference, step })
    }

    fn prepare(&self, run: &mut Run<'_>, _: &mut StripWork, reference: Source<'_>) -> Result<StripLuma, Fault> {
        StripLuma::open(run, reference, PEAK)
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        strips: &mut StripWork,
        reference: &StripLuma,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        let StripWork { work, reference: band, step } = strips;
        let mut sum = 0.0;
        for first in (0..size.height - REACH).step_by(*step as usize) {
            let rows = first..size.height.min(first + *step + REACH);
            let extent = [size.width, rows.len() as u32];
            reference.rows(run, rows.clone(), &band.plane, 0)?;
            work.comparison.describe(run, extent, band, terms())?;
            work.feed.rows(run, distorted, rows, &work.distorted, 0)?;
            sum += work.sum(run, extent, band)?;
        }
        Ok(Score::of(sum / places_of([size.width, size.height]) as f64))
    }
}
