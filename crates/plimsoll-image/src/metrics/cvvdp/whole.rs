//! The image as a whole: one pyramid on the device, its levels turned into contrasts and differences in place.
//! The prepared reference stays there as contrasts and sensitivities of every level.

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Buffer, read_floats};

use super::base::BaseReference;
use super::contrast::{Coarse, background_of, sensitivities_of, to_contrast};
use super::display::Display;
use super::masking::Masking;
use super::model::{self, Level, Plan};
use super::opponent::to_opponent;
use super::pool::Pools;
use super::shrink::shrink_plane;
use super::window::Window;
use crate::feed::{Feed, Source};
use crate::image::Shape;
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::workload::Score;
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

/// The image as a whole, on this display.
pub(super) struct CvvdpWhole(pub(super) Display);

/// The buffers for images of one shape.
pub(super) struct Work {
    plan: Plan,
    feed: Feed,
    levels: Vec<Planes>,
    base: Buffer,
    luminance: Buffer,
    masks: Planes,
    table: Buffer,
    pools: Pools,
}

/// A reference on the device.
pub(super) struct Reference {
    levels: Vec<ReferenceLevel>,
    base: BaseReference,
}

struct ReferenceLevel {
    contrasts: Planes,
    sensitivities: Planes,
}

/// A pyramid on the device: planes for each level, the three channels of the coarsest in one buffer.
struct Pyramid<'a> {
    levels: Vec<[&'a Buffer; 3]>,
    base: &'a Buffer,
}

impl<'a> Pyramid<'a> {
    /// The plane below that of a level.
    fn coarser(&self, plan: &Plan, level: usize, channel: usize) -> Coarse<'a> {
        match self.levels.get(level + 1) {
            Some(planes) => Coarse { plane: planes[channel], first: 0 },
            None => Coarse { plane: self.base, first: -((channel as u32 * plan.base.height) as i32) },
        }
    }

    /// Computes the level below one.
    fn descend(&self, run: &mut Run<'_>, plan: &Plan, level: usize) -> Result<(), Fault> {
        let (fine, coarse) = (Window::whole(plan.size(level)), Window::whole(plan.size(level + 1)));
        for channel in 0..3 {
            let Coarse { plane, first } = self.coarser(plan, level, channel);
            shrink_plane(run, fine, coarse, first, self.levels[level][channel], plane)?;
        }
        Ok(())
    }

    /// Turns a level into contrasts, by the luminance around them.
    fn contrast(
        &self,
        run: &mut Run<'_>,
        plan: &Plan,
        level: usize,
        luminance: &Buffer,
        sensitivities: &Planes,
    ) -> Result<(), Fault> {
        let window = Window::whole(plan.size(level));
        for (channel, sensitivity) in sensitivities.each().into_iter().enumerate() {
            let coarse = self.coarser(plan, level, channel);
            to_contrast(run, window, coarse, [luminance, sensitivity], self.levels[level][channel])?;
        }
        Ok(())
    }
}

/// The coarsest level, back on the host.
fn read_base(run: &mut Run<'_>, plan: &Plan, base: &Buffer) -> Result<Vec<f32>, Fault> {
    read_floats(run.backend, base, 3 * plan.base.pixels() as usize)
}

/// Brings a level's sensitivities to the device.
pub(super) fn write_table(run: &mut Run<'_>, level: &Level, table: &Buffer) -> Result<(), Fault> {
    run.backend.write(table, Bytes::ZERO, bytemuck::cast_slice(level.sensitivity.as_flattened()))
}

/// Words of a level's sensitivities.
pub(super) const TABLE_WORDS: u64 = 3 * super::castle::STEPS as u64;

impl DeviceMetric for CvvdpWhole {
    type Work = Work;
    type Reference = Reference;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Work, Fault> {
        let plan = Plan::new(self.0, shape.size);
        let mut levels = Vec::new();
        for level in &plan.levels {
            levels.push(Planes::open(run, level.size.pixels())?);
        }
        Ok(Work {
            feed: Feed::open(run, shape, Transfer::Linear)?,
            levels,
            base: run.allocate(3 * plan.base.pixels())?,
            luminance: run.allocate(shape.size.pixels())?,
            masks: Planes::open(run, shape.size.pixels())?,
            table: run.allocate(TABLE_WORDS)?,
            pools: Pools::open(run, plan.levels.iter().map(|level| level.size))?,
            plan,
        })
    }

    fn prepare(&self, run: &mut Run<'_>, work: &mut Work, reference: Source<'_>) -> Result<Reference, Fault> {
        let Work { plan, base, luminance, table, .. } = work;
        let size = reference.shape().size;
        let mut levels = Vec::new();
        for Level { size, .. } in &plan.levels {
            let (contrasts, sensitivities) = (Planes::open(run, size.pixels())?, Planes::open(run, size.pixels())?);
            levels.push(ReferenceLevel { contrasts, sensitivities });
        }
        let finest = &levels[0].contrasts;
        Feed::open(run, reference.shape(), Transfer::Linear)?.rows(run, reference, 0..size.height, finest.each())?;
        to_opponent(run, self.0, finest, size.width, size.height)?;
        run.backend.poison(base)?;
        let pyramid = Pyramid { levels: levels.iter().map(|level| level.contrasts.each()).collect(), base };
        for (at, ReferenceLevel { sensitivities, .. }) in levels.iter().enumerate() {
            pyramid.descend(run, plan, at)?;
            let window = Window::whole(plan.size(at));
            background_of(run, window, pyramid.coarser(plan, at, 0), luminance)?;
            write_table(run, &plan.levels[at], table)?;
            sensitivities_of(run, window, table, luminance, sensitivities)?;
            pyramid.contrast(run, plan, at, luminance, sensitivities)?;
        }
        let base = BaseReference::new(plan, &read_base(run, plan, base)?);
        Ok(Reference { levels, base })
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Work,
        reference: &Reference,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let Work { plan, feed, levels, base, luminance, masks, pools, .. } = work;
        let size = distorted.shape().size;
        feed.rows(run, distorted, 0..size.height, levels[0].each())?;
        to_opponent(run, self.0, &levels[0], size.width, size.height)?;
        run.backend.poison(base)?;
        pools.begin(run)?;
        let pyramid = Pyramid { levels: levels.iter().map(Planes::each).collect(), base };
        for (at, ReferenceLevel { contrasts, sensitivities }) in reference.levels.iter().enumerate() {
            pyramid.descend(run, plan, at)?;
            let window = Window::whole(plan.size(at));
            background_of(run, window, pyramid.coarser(plan, at, 0), luminance)?;
            pyramid.contrast(run, plan, at, luminance, sensitivities)?;
            for channel in 0..3 {
                let (contrast, reference) = (pyramid.levels[at][channel], contrasts.each()[channel]);
                let masking = Masking { contrast, reference, scratch: luminance, masks: masks.each()[channel] };
                masking.apply(run, window, channel)?;
            }
            pools.add(run, window, masks, pyramid.levels[at])?;
        }
        let mut differences: Vec<_> = pools.read(run)?;
        for (sums, level) in differences.iter_mut().zip(&plan.levels) {
            *sums = sums.map(|sum| model::root_of_mean(sum, level.size.pixels()));
        }
        differences.push(reference.base.differences(&read_base(run, plan, base)?));
        Ok(Score::of(model::score(&differences)))
    }
}
