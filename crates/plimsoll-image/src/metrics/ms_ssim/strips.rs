//! MS-SSIM with kernels in bands of rows. Every row comes to the device once: each scale keeps the last ten rows of a
//! band, which the window needs again, and the next band is put behind them. Invariant: nothing here grows with the
//! height of an image.

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::{PEAK, score, terms};
use crate::feed::Source;
use crate::image::Shape;
use crate::kernels::total::Totals;
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::structure::device::{Comparison, Described, pixels_of, places_of};
use crate::metrics::structure::halve::Rows;
use crate::metrics::structure::luma::{LumaFeed, StripLuma};
use crate::metrics::structure::scales::extents;
use crate::metrics::structure::window::REACH;
use crate::metrics::workload::Score;
use crate::run::Run;

/// Rows of a band are a multiple of this, so that each but the last has whole rows at all five scales.
const BAND_UNIT: u32 = 16;
/// Rows of a band at most: 2 MiB a plane at a width of 4096.
const BAND_MAX: u32 = 128;

/// Bands of rows, one after the other in the same buffers.
#[derive(Copy, Clone)]
pub(super) struct MsSsimStrips;

/// One scale of both images: the rows kept of the band before, then those of this one.
struct Scale {
    width: u32,
    reference: Described,
    distorted: Buffer,
    kept: u32,
    fresh: u32,
}

impl Scale {
    fn open(run: &mut Run<'_>, width: u32, band: u32) -> Result<Self, Fault> {
        let extent = [width, band + REACH];
        let reference = Described::open(run, extent)?;
        Ok(Self { width, reference, distorted: run.allocate(pixels_of(extent))?, kept: 0, fresh: 0 })
    }

    /// Fills the next scale from the fresh rows of this one.
    fn halve_into(&self, run: &mut Run<'_>, next: &mut Self) -> Result<(), Fault> {
        next.fresh = self.fresh.div_ceil(2);
        let rows = Rows { width: self.width, rows: self.fresh, first: self.kept, first_out: next.kept };
        rows.halve(run, &self.reference.plane, &next.reference.plane)?;
        rows.halve(run, &self.distorted, &next.distorted)
    }

    /// Moves the rows that the next band needs again to the front.
    fn keep(&mut self, run: &mut Run<'_>, aside: &Buffer) -> Result<(), Fault> {
        let there = self.kept + self.fresh;
        self.kept = there.min(REACH);
        let away = Rows { width: self.width, rows: self.kept, first: there - self.kept, first_out: 0 };
        let back = Rows { first: 0, ..away };
        for plane in [&self.reference.plane, &self.distorted] {
            away.copy(run, plane, aside)?;
            back.copy(run, aside, plane)?;
        }
        Ok(())
    }
}

pub(super) struct Work {
    feed: LumaFeed,
    scales: Vec<Scale>,
    /// Ten rows on their way from the end of a plane to its front: they may overlap there.
    aside: Buffer,
    comparison: Comparison,
    totals: Totals,
    band: u32,
}

impl Work {
    /// The sums of similarities of a band, for each scale.
    fn sums(&mut self, run: &mut Run<'_>) -> Result<Vec<f64>, Fault> {
        let count = self.scales.len();
        for at in 1..count {
            let (finer, coarser) = self.scales.split_at_mut(at);
            finer[at - 1].halve_into(run, &mut coarser[0])?;
        }
        self.totals.begin(run)?;
        let mut summed = Vec::new();
        for (at, scale) in self.scales.iter_mut().enumerate() {
            let extent = [scale.width, scale.kept + scale.fresh];
            if extent[1] > REACH {
                let terms = terms(at, count);
                self.comparison.describe(run, extent, &scale.reference, terms)?;
                self.comparison.compare(run, extent, &scale.reference, &scale.distorted, terms)?;
                self.totals.add(run, self.comparison.similarity(), 0..places_of(extent) as u32)?;
                summed.push(at);
            }
            scale.keep(run, &self.aside)?;
        }
        let mut sums = vec![0.0; count];
        for (at, sum) in summed.into_iter().zip(self.totals.read(run)?) {
            sums[at] = sum;
        }
        Ok(sums)
    }
}

impl DeviceMetric for MsSsimStrips {
    type Work = Work;
    type Reference = StripLuma;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Work, Fault> {
        let extents = extents(shape.size);
        let band = shape.size.height.div_ceil(8).next_multiple_of(BAND_UNIT).min(BAND_MAX);
        let feed = LumaFeed::open(run, shape, PEAK)?;
        let widths = extents.iter().enumerate();
        let scales = widths.map(|(at, &[width, _])| Scale::open(run, width, band >> at)).collect::<Result<_, _>>()?;
        let aside = run.allocate(pixels_of([shape.size.width, REACH]))?;
        let comparison = Comparison::open(run, [shape.size.width, band + REACH])?;
        let places = extents.iter().enumerate().map(|(at, &[width, _])| places_of([width, (band >> at) + REACH]));
        let totals = Totals::open(run, places)?;
        Ok(Work { feed, scales, aside, comparison, totals, band })
    }

    fn prepare(&self, run: &mut Run<'_>, _: &mut Work, reference: Source<'_>) -> Result<StripLuma, Fault> {
        StripLuma::open(run, reference, PEAK)
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Work,
        reference: &StripLuma,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        work.scales.iter_mut().for_each(|scale| scale.kept = 0);
        let mut sums = vec![0.0; work.scales.len()];
        for first in (0..size.height).step_by(work.band as usize) {
            let rows = first..size.height.min(first + work.band);
            let finest = &mut work.scales[0];
            finest.fresh = rows.len() as u32;
            reference.rows(run, rows.clone(), &finest.reference.plane, finest.kept)?;
            work.feed.rows(run, distorted, rows, &finest.distorted, finest.kept)?;
            sums.iter_mut().zip(work.sums(run)?).for_each(|(sum, of_band)| *sum += of_band);
        }
        Ok(score(&extents(size), &sums))
    }
}
