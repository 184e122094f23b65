//! SSIMULACRA 2 with kernels, the image as a whole: of a reference every level's colours, means and variances stay on
//! the device, and a comparison reads back once.

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::comparer::Comparer;
use super::kernels::{Area, Learnt, colour, halve};
use super::score::{Level, Sums, Wanted, levels, score};
use crate::feed::{Feed, Source};
use crate::image::{Shape, Size};
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::workload::Score;
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

/// The image as a whole.
#[derive(Copy, Clone)]
pub(super) struct Ssim2Whole;

/// The buffers for images of one shape.
pub(super) struct Work {
    levels: Vec<Level>,
    feed: Feed,
    /// Linear light of levels by turns: even ones, odd ones.
    light: [Planes; 2],
    colours: Planes,
    comparer: Comparer,
}

/// One channel of one level of a reference, on the device.
pub(super) struct Kept {
    samples: Buffer,
    /// The mean and, where structure has any weight, the variance; nothing where nothing has.
    blurred: Option<(Buffer, Option<Buffer>)>,
}

impl Kept {
    fn open(run: &mut Run<'_>, size: Size, wanted: Wanted) -> Result<Self, Fault> {
        let mut plane = |wanted: bool| wanted.then(|| run.allocate(size.pixels())).transpose();
        let samples = plane(true)?.expect("it is wanted");
        let (mean, variance) = (plane(wanted.any)?, plane(wanted.structure)?);
        Ok(Self { samples, blurred: mean.map(|mean| (mean, variance)) })
    }

    fn learnt(&self) -> Option<Learnt<'_>> {
        let (mean, variance) = self.blurred.as_ref()?;
        Some(Learnt { samples: &self.samples, mean, variance: variance.as_ref() })
    }
}

/// A level as a whole: every row counts.
fn whole(size: Size) -> Area {
    Area { width: size.width, rows: size.height, first: 0, count: size.height }
}

impl Work {
    /// Makes the light of the next level, if there is one.
    fn descend(&self, run: &mut Run<'_>, at: usize) -> Result<(), Fault> {
        if at + 1 == self.levels.len() {
            return Ok(());
        }
        let Size { width, height } = self.levels[at].size;
        halve(run, [width, height], &self.light[at % 2], &self.light[(at + 1) % 2], 0)
    }
}

impl DeviceMetric for Ssim2Whole {
    type Work = Work;
    type Reference = Vec<[Kept; 3]>;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Work, Fault> {
        let levels = levels(shape.size);
        let words = levels.iter().map(|level| Comparer::words(level, whole(level.size))).sum();
        let pixels = shape.size.pixels();
        Ok(Work {
            feed: Feed::open(run, shape, Transfer::Linear)?,
            light: [Planes::open(run, pixels)?, Planes::open(run, levels[1].size.pixels())?],
            colours: Planes::open(run, pixels)?,
            comparer: Comparer::open(run, pixels, words)?,
            levels,
        })
    }

    fn prepare(&self, run: &mut Run<'_>, work: &mut Work, reference: Source<'_>) -> Result<Vec<[Kept; 3]>, Fault> {
        let feed = Feed::open(run, reference.shape(), Transfer::Linear)?;
        feed.rows(run, reference, 0..reference.shape().size.height, work.light[0].each())?;
        let mut kept = Vec::new();
        for (at, level) in work.levels.iter().enumerate() {
            let Size { width, height } = level.size;
            let [x, y, b] = level.wanted;
            let channels =
                [Kept::open(run, level.size, x)?, Kept::open(run, level.size, y)?, Kept::open(run, level.size, b)?];
            let samples = channels.each_ref().map(|kept| &kept.samples);
            colour(run, [width, height], &work.light[at % 2], 0, samples)?;
            for learnt in channels.iter().filter_map(Kept::learnt) {
                work.comparer.learn(run, [width, height], learnt)?;
            }
            work.descend(run, at)?;
            kept.push(channels);
        }
        Ok(kept)
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Work,
        reference: &Vec<[Kept; 3]>,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        work.feed.rows(run, distorted, 0..distorted.shape().size.height, work.light[0].each())?;
        work.comparer.begin(run)?;
        for (at, channels) in reference.iter().enumerate() {
            let size = work.levels[at].size;
            colour(run, [size.width, size.height], &work.light[at % 2], 0, work.colours.each())?;
            for (channel, (kept, samples)) in channels.iter().zip(work.colours.each()).enumerate() {
                if let Some(learnt) = kept.learnt() {
                    work.comparer.add(run, (at, channel), whole(size), learnt, samples)?;
                }
            }
            work.descend(run, at)?;
        }
        let mut sums = vec![[Sums::default(); 3]; work.levels.len()];
        work.comparer.read(run, &mut sums)?;
        Ok(Score::of(score(&work.levels, &sums)))
    }
}
