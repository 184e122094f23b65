//! Bands of rows, level by level: the device holds one band of both images at a time, the host their coarser levels.

use std::ops::Range;

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::base::BaseReference;
use super::contrast::{Coarse, background_of, reach_of, sensitivities_of, to_contrast};
use super::display::Display;
use super::host_pyramid::{Bands, Finest, HostPyramid};
use super::masking::Masking;
use super::model::{self, Plan, REACH, halved};
use super::pool::Pools;
use super::whole::{TABLE_WORDS, write_table};
use super::window::Window;
use crate::feed::{Feed, Source};
use crate::image::{Shape, Size};
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::strips::StripReference;
use crate::metrics::workload::Score;
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

/// Bands of rows, on this display.
pub(super) struct CvvdpStrips(pub(super) Display);

/// Bytes of a band's planes, about; what comes on top are two feeds of 2 MiB.
const BAND_BYTES: u64 = 32 << 20;
/// Bytes that a row takes for each of its pixels: 13 planes, and six of half the sides.
const ROW_BYTES: u64 = 58;
/// Rows of a band at least: of fewer, most would be there for others only.
const ROWS_MIN: u64 = 40;

/// The buffers for bands of images of one shape.
pub(super) struct StripWork {
    plan: Plan,
    feed: Feed,
    /// Rows of the planes of both images.
    rows: u32,
    distorted: ImageBand,
    reference: ImageBand,
    sensitivities: Planes,
    luminance: Buffer,
    masks: Planes,
    table: Buffer,
    pools: Pools,
}

/// A band of an image, and of its next coarser level.
struct ImageBand {
    fine: Planes,
    coarse: Planes,
}

/// A reference in host memory.
pub(super) struct Reference {
    finest: StripReference,
    pyramid: HostPyramid,
    base: BaseReference,
}

impl ImageBand {
    fn open(run: &mut Run<'_>, width: u32, rows: u32) -> Result<Self, Fault> {
        let fine = Planes::open(run, u64::from(width) * u64::from(rows))?;
        let coarse = Planes::open(run, u64::from(width.div_ceil(2)) * u64::from(rows / 2 + 3))?;
        Ok(Self { fine, coarse })
    }

    fn bands(&self, rows: u32) -> Bands<'_> {
        Bands { fine: &self.fine, coarse: &self.coarse, rows }
    }
}

/// A band of a level: its own rows, those around it that its blur reaches, and those of the next level under them.
struct Band {
    level: usize,
    size: Size,
    rows: Range<u32>,
    around: Range<u32>,
    under: Range<u32>,
}

impl Band {
    /// The bands of a level whose planes hold this many rows.
    fn of(plan: &Plan, level: usize, held: u32) -> impl Iterator<Item = Self> + use<> {
        let size = plan.size(level);
        let step = if size.height <= held { size.height } else { held - 2 * REACH };
        (0..size.height).step_by(step as usize).map(move |first| {
            let rows = first..size.height.min(first + step);
            let around = rows.start.saturating_sub(REACH)..(rows.end + REACH).min(size.height);
            let under = reach_of(around.clone(), halved(size).height);
            Self { level, size, rows, around, under }
        })
    }
}

impl StripWork {
    /// Turns an image's band into contrasts. The reference's also give the sensitivities.
    fn contrast(&self, run: &mut Run<'_>, band: &Band, image: &ImageBand, is_reference: bool) -> Result<(), Fault> {
        let window = Window::part(band.size, band.around.start, band.around.clone());
        let coarse = image.coarse.each().map(|plane| Coarse { plane, first: band.under.start as i32 });
        background_of(run, window, coarse[0], &self.luminance)?;
        if is_reference {
            write_table(run, &self.plan.levels[band.level], &self.table)?;
            sensitivities_of(run, window, &self.table, &self.luminance, &self.sensitivities)?;
        }
        let channels = coarse.into_iter().zip(self.sensitivities.each()).zip(image.fine.each());
        for ((coarse, sensitivity), channel) in channels {
            to_contrast(run, window, coarse, [&self.luminance, sensitivity], channel)?;
        }
        Ok(())
    }

    /// The sums of a band whose images are contrasts.
    fn compare(&mut self, run: &mut Run<'_>, band: &Band) -> Result<[f64; 3], Fault> {
        let window = Window::part(band.size, band.around.start, band.rows.clone());
        let (contrasts, references, masks) =
            (self.distorted.fine.each(), self.reference.fine.each(), self.masks.each());
        for channel in 0..3 {
            let (contrast, reference) = (contrasts[channel], references[channel]);
            let masking = Masking { contrast, reference, scratch: &self.luminance, masks: masks[channel] };
            masking.apply(run, window, channel)?;
        }
        self.pools.begin(run)?;
        self.pools.add(run, window, &self.masks, contrasts)?;
        Ok(self.pools.read(run)?.first().copied().unwrap_or_default())
    }
}

impl CvvdpStrips {
    /// Brings an image's band, and what lies under it, to the device.
    fn bring(
        &self,
        run: &mut Run<'_>,
        plan: &Plan,
        band: &Band,
        (finest, pyramid): (&Finest<'_>, &HostPyramid),
        to: &ImageBand,
    ) -> Result<(), Fault> {
        pyramid.bring(run, (self.0, plan), finest, band.level, band.around.clone(), &to.fine)?;
        pyramid.bring(run, (self.0, plan), finest, band.level + 1, band.under.clone(), &to.coarse)
    }

    fn pyramid(
        &self,
        run: &mut Run<'_>,
        work: &StripWork,
        source: Source<'_>,
        finest: &Finest<'_>,
    ) -> Result<HostPyramid, Fault> {
        match source {
            Source::Pixels(_) => {
                HostPyramid::build(run, (self.0, &work.plan), finest, &work.distorted.bands(work.rows))
            }
            Source::Blank(_) => Ok(HostPyramid::blank(&work.plan)),
        }
    }
}

impl DeviceMetric for CvvdpStrips {
    type Work = StripWork;
    type Reference = Reference;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<StripWork, Fault> {
        let Size { width, height } = shape.size;
        let rows = (BAND_BYTES / (ROW_BYTES * u64::from(width))).min(u64::from(height) / 4);
        let rows = rows.max(ROWS_MIN).min(u64::from(height)) as u32;
        let pixels = u64::from(width) * u64::from(rows);
        Ok(StripWork {
            plan: Plan::new(self.0, shape.size),
            feed: Feed::open(run, shape, Transfer::Linear)?,
            rows,
            distorted: ImageBand::open(run, width, rows)?,
            reference: ImageBand::open(run, width, rows)?,
            sensitivities: Planes::open(run, pixels)?,
            luminance: run.allocate(pixels)?,
            masks: Planes::open(run, pixels)?,
            table: run.allocate(TABLE_WORDS)?,
            pools: Pools::open(run, [Size { width, height: rows }])?,
        })
    }

    fn prepare(&self, run: &mut Run<'_>, work: &mut StripWork, reference: Source<'_>) -> Result<Reference, Fault> {
        let finest = StripReference::open(run, reference, Transfer::Linear)?;
        let pyramid = self.pyramid(run, work, reference, &|run, rows, to| finest.rows(run, rows, to))?;
        let base = BaseReference::new(&work.plan, pyramid.base());
        Ok(Reference { finest, pyramid, base })
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut StripWork,
        reference: &Reference,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let pixels =
            |feed: &Feed, run: &mut Run<'_>, rows: Range<u32>, to: &Planes| feed.rows(run, distorted, rows, to.each());
        let pyramid = self.pyramid(run, work, distorted, &|run, rows, to| pixels(&work.feed, run, rows, to))?;
        let mut differences = Vec::new();
        for level in 0..work.plan.levels.len() {
            let mut sums = [0.0; 3];
            for band in Band::of(&work.plan, level, work.rows) {
                let finest: &Finest<'_> = &|run, rows, to| reference.finest.rows(run, rows, to);
                self.bring(run, &work.plan, &band, (finest, &reference.pyramid), &work.reference)?;
                work.contrast(run, &band, &work.reference, true)?;
                let finest: &Finest<'_> = &|run, rows, to| pixels(&work.feed, run, rows, to);
                self.bring(run, &work.plan, &band, (finest, &pyramid), &work.distorted)?;
                work.contrast(run, &band, &work.distorted, false)?;
                let band = work.compare(run, &band)?;
                sums.iter_mut().zip(band).for_each(|(sum, band)| *sum += band);
            }
            differences.push(sums.map(|sum| model::root_of_mean(sum, work.plan.size(level).pixels())));
        }
        differences.push(reference.base.differences(pyramid.base()));
        Ok(Score::of(model::score(&differences)))
    }
}
