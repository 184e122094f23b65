//! DSSIM with kernels on whole images: scale after scale, each made from the one before; one answer is read at the end.

use plimsoll_core::Fault;
use plimsoll_runtime::{Buffer, read_floats};

use super::kernels::{
    BandParams, DISTANCES, DISTANCES_RUN, LAB, LEVEL, LOSSES, PoolParams, SHRINK, ShrinkParams, TILE,
};
use super::scales::{self, SCALES_MAX};
use crate::feed::{Feed, Source};
use crate::image::{Shape, Size};
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::workload::Score;
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

/// The image as a whole.
#[derive(Copy, Clone)]
pub(super) struct DssimWhole;

/// The buffers for images of one shape.
pub(super) struct Work {
    feed: Feed,
    /// Linear light of one scale and the next, by turns.
    light: [Planes; 2],
    lab: Planes,
    partials: Buffer,
    levels: Buffer,
    distances: Buffer,
}

impl DeviceMetric for DssimWhole {
    type Work = Work;
    /// Lab with smoothed chroma, of every scale.
    type Reference = Vec<Planes>;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Work, Fault> {
        let sizes = scales::sizes(shape.size);
        let pixels = |scale: usize| sizes.get(scale).map_or(1, |size| size.pixels());
        Ok(Work {
            feed: Feed::open(run, shape, Transfer::Linear)?,
            light: [Planes::open(run, pixels(0))?, Planes::open(run, pixels(1))?],
            lab: Planes::open(run, pixels(0))?,
            partials: run.allocate(tiles(shape.size).into())?,
            levels: run.allocate(SCALES_MAX as u64)?,
            distances: run.allocate(sizes.iter().map(|&size| u64::from(runs(size))).sum())?,
        })
    }

    fn prepare(&self, run: &mut Run<'_>, work: &mut Work, reference: Source<'_>) -> Result<Vec<Planes>, Fault> {
        let size = reference.shape().size;
        let sizes = scales::sizes(size);
        let feed = Feed::open(run, reference.shape(), Transfer::Linear)?;
        feed.rows(run, reference, 0..size.height, work.light[0].each())?;
        let mut kept = Vec::new();
        for (scale, &size) in sizes.iter().enumerate() {
            let lab = Planes::open(run, size.pixels())?;
            work.to_lab(run, &sizes, scale, &lab)?;
            kept.push(lab);
        }
        Ok(kept)
    }

    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Work,
        reference: &Vec<Planes>,
        distorted: Source<'_>,
    ) -> Result<Score, Fault> {
        let size = distorted.shape().size;
        let sizes = scales::sizes(size);
        run.backend.poison(&work.distances)?;
        work.feed.rows(run, distorted, 0..size.height, work.light[0].each())?;
        let mut first = 0;
        for (scale, (&size, reference)) in sizes.iter().zip(reference).enumerate() {
            work.to_lab(run, &sizes, scale, &work.lab)?;
            work.pool(run, scale, size, reference, first)?;
            first += runs(size);
        }
        let mut sums = &read_floats(run.backend, &work.distances, first as usize)?[..];
        let mean = |size: &Size| {
            let own = sums.split_off(..runs(*size) as usize).unwrap_or_default();
            own.iter().map(|&sum| f64::from(sum)).sum::<f64>() / size.pixels() as f64
        };
        Ok(scales::score(&sizes.iter().map(mean).collect::<Vec<f64>>()))
    }
}

impl Work {
    /// Lab of a scale, whose light is there, and the light of the next.
    fn to_lab(&self, run: &mut Run<'_>, sizes: &[Size], scale: usize, lab: &Planes) -> Result<(), Fault> {
        let size = sizes[scale];
        let [light, next] = [&self.light[scale % 2], &self.light[(scale + 1) % 2]];
        to_lab(run, &whole(size), light, lab)?;
        match sizes.get(scale + 1) {
            Some(half) => shrink(run, &halving(size, *half), light, next),
            None => Ok(()),
        }
    }

    /// The losses of a scale, and the sums of their distances from their level, which go to `first_out` and after.
    fn pool(
        &self,
        run: &mut Run<'_>,
        scale: usize,
        size: Size,
        reference: &Planes,
        first_out: u32,
    ) -> Result<(), Fault> {
        // The light of this scale has done its service: the losses take the place of its red.
        let [losses, ..] = self.light[scale % 2].each();
        to_losses(run, &whole(size), [reference, &self.lab], losses, &self.partials)?;
        let (scale, pixels) = (scale as u32, size.pixels());
        let level = PoolParams { count: tiles(size), first_out: scale, scale, pixels: pixels as f32 };
        run.launch(&LEVEL, &[&self.partials, &self.levels], &level, [1, 1, 1])?;
        let params = PoolParams { count: pixels as u32, first_out, scale, pixels: pixels as f32 };
        run.launch(&DISTANCES, &[losses, &self.levels, &self.distances], &params, [runs(size), 1, 1])
    }
}

/// Workgroups over a plane.
pub(super) fn tiles(size: Size) -> u32 {
    size.width.div_ceil(TILE) * size.height.div_ceil(TILE)
}

/// Sums of distances of a plane.
fn runs(size: Size) -> u32 {
    size.pixels().div_ceil(DISTANCES_RUN.into()) as u32
}

/// All rows of a scale.
fn whole(Size { width, height }: Size) -> BandParams {
    BandParams { width, height, first_in: 0, rows_in: height, first_out: 0, rows_out: height, unused: [0; 2] }
}

fn halving(size: Size, half: Size) -> ShrinkParams {
    ShrinkParams {
        width: size.width,
        width_out: half.width,
        rows_out: half.height,
        first_out: 0,
        side: 2,
        unused: [0; 3],
    }
}

pub(super) fn shrink(run: &mut Run<'_>, params: &ShrinkParams, from: &Planes, to: &Planes) -> Result<(), Fault> {
    let [[a, b, c], [d, e, f]] = [from.each(), to.each()];
    run.over(&SHRINK, &[a, b, c, d, e, f], params, params.width_out, params.rows_out)
}

pub(super) fn to_lab(run: &mut Run<'_>, params: &BandParams, light: &Planes, lab: &Planes) -> Result<(), Fault> {
    let [[a, b, c], [d, e, f]] = [light.each(), lab.each()];
    run.over(&LAB, &[a, b, c, d, e, f], params, params.width, params.rows_out)
}

pub(super) fn to_losses(
    run: &mut Run<'_>,
    params: &BandParams,
    [reference, distorted]: [&Planes; 2],
    losses: &Buffer,
    partials: &Buffer,
) -> Result<(), Fault> {
    let [[a, b, c], [d, e, f]] = [reference.each(), distorted.each()];
    run.over(&LOSSES, &[a, b, c, d, e, f, losses, partials], params, params.width, params.rows_out)
}
