//! SSIMULACRA 2 with kernels in bands of rows: both images come up band by band, and nothing of them stays.

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::bands::{Band, Group, Part, groups};
use super::comparer::Comparer;
use super::kernels::{Learnt, colour, halve};
use super::score::{Level, Sums, levels, score};
use crate::feed::{Feed, Source};
use crate::image::Shape;
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::strips::StripReference;
use crate::metrics::workload::Score;
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

/// Bands of rows, one after the other in the same buffers.
#[derive(Copy, Clone)]
pub(super) struct Ssim2Strips;

/// The buffers of a band.
pub(super) struct StripWork {
    levels: Vec<Level>,
    groups: Vec<Group>,
    feed: Feed,
    reference: Side,
    distorted: Side,
    mean: Buffer,
    variance: Buffer,
    comparer: Comparer,
    /// Pixels that a plane of colours holds.
    pixels: u64,
}

/// A band of one of the two images.
struct Side {
    /// Linear light of the band's levels by turns.
    light: [Planes; 2],
    colours: Planes,
}

impl Side {
    fn open(run: &mut Run<'_>, light: [u64; 2], colours: u64) -> Result<Self, Fault> {
        let light = [Planes::open(run, light[0])?, Planes::open(run, light[1])?];
        Ok(Self { light, colours: Planes::open(run, colours)? })
    }
}

impl DeviceMetric for Ssim2Strips {
    type Work = StripWork;
    type Reference = StripReference;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<StripWork, Fault> {
        let levels = levels(shape.size);
        let groups = groups(&levels);
        let (mut light, mut pixels, mut words) = ([1, 1], 1, 1);
        for group in &groups {
            let parts = group.largest(&levels);
            for (halvings, &Part { light: rows, area, .. }) in parts.iter().enumerate() {
                let planes: &mut u64 = &mut light[halvings % 2];
                *planes = (*planes).max(u64::from(rows) * u64::from(area.width));
                pixels = pixels.max(u64::from(area.rows) * u64::from(area.width));
            }
            let of_level = |(at, part): (usize, &Part)| Comparer::words(&levels[at], part.area);
            words = words.max(group.levels.clone().zip(&parts).map(of_level).sum());
        }
        Ok(StripWork {
            feed: Feed::open(run, shape, Transfer::Linear)?,
            reference: Side::open(run, light, pixels)?,
            distorted: Side::open(run, light, pixels)?,
            mean: run.allocate(pixels)?,
            variance: run.allocate(pixels)?,
            comparer: Comparer::open(run, pixels, words)?,
            levels,
            groups,
            pixels,
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
        let mut sums = vec![[Sums::default(); 3]; work.levels.len()];
        for group in work.groups.clone() {
            for band in group.bands() {
                work.bring(run, reference, distorted, &group, band)?;
                work.comparer.begin(run)?;
                for at in group.levels.clone() {
                    work.compare(run, &group, band, at)?;
                }
                work.comparer.read(run, &mut sums)?;
            }
        }
        Ok(Score::of(score(&work.levels, &sums)))
    }
}

impl StripWork {
    /// Brings up the light of a band of both images, at the first level of its group.
    fn bring(
        &self,
        run: &mut Run<'_>,
        reference: &StripReference,
        distorted: Source<'_>,
        group: &Group,
        band: Band,
    ) -> Result<(), Fault> {
        let (halvings, rows) = (group.levels.start, band.rows());
        let height = self.levels[0].size.height;
        // What is halved on its way goes through the planes of colours, which nobody needs yet.
        let step = if halvings == 0 { rows.len() as u32 } else { self.chunk(halvings) };
        for first in rows.clone().step_by(step as usize) {
            let end = rows.end.min(first + step);
            let origin = first << halvings..height.min(end << halvings);
            for (side, of_reference) in [(&self.reference, true), (&self.distorted, false)] {
                let target = if halvings == 0 { &side.light[0] } else { &self.reference.colours };
                match of_reference {
                    true => reference.rows(run, origin.clone(), target)?,
                    false => self.feed.rows(run, distorted, origin.clone(), target.each())?,
                }
                self.shrink(run, halvings, origin.len() as u32, &side.light[0], first - rows.start)?;
            }
        }
        Ok(())
    }

    /// Rows of a level that can be made at once from rows of the image.
    fn chunk(&self, halvings: usize) -> u32 {
        let row = u64::from(self.levels[0].size.width) << halvings;
        u32::try_from(self.pixels / row).unwrap_or(u32::MAX).max(1)
    }

    /// Halves rows of the image some times, from the reference's planes of colours by way of the other's.
    fn shrink(
        &self,
        run: &mut Run<'_>,
        halvings: usize,
        mut rows: u32,
        to: &Planes,
        first_out: u32,
    ) -> Result<(), Fault> {
        let turns = [&self.reference.colours, &self.distorted.colours];
        for at in 0..halvings {
            let last = at + 1 == halvings;
            let (target, first_out) = if last { (to, first_out) } else { (turns[(at + 1) % 2], 0) };
            halve(run, [self.levels[at].size.width, rows], turns[at % 2], target, first_out)?;
            rows = rows.div_ceil(2);
        }
        Ok(())
    }

    /// Compares a band at one of its levels, and makes the light of the next.
    fn compare(&mut self, run: &mut Run<'_>, group: &Group, band: Band, at: usize) -> Result<(), Fault> {
        let (level, halvings) = (self.levels[at], at - group.levels.start);
        let part = band.part(halvings, &level);
        let sides = [part.area.width, part.area.rows];
        for side in [&self.reference, &self.distorted] {
            colour(run, sides, &side.light[halvings % 2], part.first, side.colours.each())?;
            if at + 1 < group.levels.end {
                let [from, to] = [halvings, halvings + 1].map(|turn| &side.light[turn % 2]);
                halve(run, [level.size.width, part.light], from, to, 0)?;
            }
        }
        let planes = self.reference.colours.each().into_iter().zip(self.distorted.colours.each());
        for (channel, (samples, distorted)) in planes.enumerate().filter(|(channel, _)| level.wanted[*channel].any) {
            let variance = level.wanted[channel].structure.then_some(&self.variance);
            let learnt = Learnt { samples, mean: &self.mean, variance };
            self.comparer.learn(run, sides, learnt)?;
            self.comparer.add(run, (at, channel), part.area, learnt, distorted)?;
        }
        Ok(())
    }
}
