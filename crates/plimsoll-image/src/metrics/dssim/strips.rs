//! DSSIM with kernels in bands of rows: each scale by itself, shrunk from the image's own rows, so that a band needs no
//! more than four rows of its scale beyond itself. The losses are read back and pooled by the host, which holds those
//! of one scale at a time: four bytes for each of its pixels.

use std::ops::Range;

use plimsoll_core::Fault;
use plimsoll_runtime::{Buffer, read_floats};

use super::device::{shrink, tiles, to_lab, to_losses};
use super::kernels::{BandParams, ShrinkParams};
use super::rows::{self, REACH};
use super::scales;
use crate::feed::{Feed, Source};
use crate::image::{Shape, Size};
use crate::metrics::device_metric::DeviceMetric;
use crate::metrics::strips::StripReference;
use crate::metrics::workload::Score;
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

/// Rows of a band of the full size; smaller scales have more of their shorter rows. At 4096 x 4096 pixels, a band and
/// all that belongs to it take 26.5 MiB.
const BAND_ROWS: u32 = 128;
/// Rows of the image that are shrunk at a time: a multiple of the largest square.
const SHRUNK_ROWS: u32 = 32;
/// Rows that the losses need of Lab beyond a band, and Lab as many of the light.
const HALO: u32 = REACH as u32;

/// Bands of rows, one after the other in the same buffers.
#[derive(Copy, Clone)]
pub(super) struct DssimStrips;

pub(super) struct StripWork {
    feed: Feed,
    /// Rows of the image at its full size, on their way to a smaller scale.
    shrunk: Planes,
    light: Planes,
    /// Of the reference, and of the image.
    lab: [Planes; 2],
    losses: Buffer,
    partials: Buffer,
}

impl DeviceMetric for DssimStrips {
    type Work = StripWork;
    type Reference = StripReference;

    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<StripWork, Fault> {
        let sizes = scales::sizes(shape.size);
        let bands = || sizes.iter().enumerate().map(|(scale, &size)| Size { height: band_rows(scale, size), ..size });
        let words = |beyond: u32| {
            let rows = bands().zip(&sizes).map(|(band, size)| (band.height + 2 * beyond).min(size.height));
            bands().zip(rows).map(|(band, rows)| u64::from(band.width) * u64::from(rows)).max().unwrap_or(1)
        };
        let shrunk = u64::from(shape.size.width) * u64::from(if sizes.len() > 1 { SHRUNK_ROWS } else { 1 });
        Ok(StripWork {
            feed: Feed::open(run, shape, Transfer::Linear)?,
            shrunk: Planes::open(run, shrunk)?,
            light: Planes::open(run, words(2 * HALO))?,
            lab: [Planes::open(run, words(HALO))?, Planes::open(run, words(HALO))?],
            losses: run.allocate(words(0))?,
            partials: run.allocate(bands().map(tiles).max().unwrap_or(1).into())?,
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
        let sizes = scales::sizes(distorted.shape().size);
        let mut deviations = Vec::new();
        for (scale, &size) in sizes.iter().enumerate() {
            let mut losses = Vec::new();
            for first in (0..size.height).step_by(band_rows(scale, size) as usize) {
                let rows = first..size.height.min(first + band_rows(scale, size));
                let band = Band { scale, size, rows };
                let read = work.losses(run, &band, reference, distorted)?;
                // Without pixels only the device's memory counts, and the host's need not be taken.
                if matches!(distorted, Source::Pixels(_)) {
                    losses.extend(read);
                }
            }
            deviations.push(deviation(scale, &losses));
        }
        Ok(scales::score(&deviations))
    }
}

/// Rows of a band at a scale.
fn band_rows(scale: usize, size: Size) -> u32 {
    size.height.min(BAND_ROWS << scale)
}

/// The mean distance of losses from their level.
fn deviation(scale: usize, losses: &[f32]) -> f64 {
    let count = losses.len().max(1) as f64;
    let level = scales::level(scale, rows::sum(losses) / count);
    rows::sum_of_distances(losses, level as f32) / count
}

/// Some rows of a scale.
struct Band {
    scale: usize,
    size: Size,
    rows: Range<u32>,
}

impl Band {
    /// Its rows and this many more on each side, where there are any.
    fn with(&self, beyond: u32) -> Range<u32> {
        self.rows.start.saturating_sub(beyond)..(self.rows.end + beyond).min(self.size.height)
    }

    /// What a kernel needs to know that makes some of its rows from others.
    fn params(&self, from: &Range<u32>, to: &Range<u32>) -> BandParams {
        BandParams {
            width: self.size.width,
            height: self.size.height,
            first_in: from.start,
            rows_in: from.len() as u32,
            first_out: to.start,
            rows_out: to.len() as u32,
            unused: [0; 2],
        }
    }
}

impl StripWork {
    /// The losses of a band.
    fn losses(
        &mut self,
        run: &mut Run<'_>,
        band: &Band,
        reference: &StripReference,
        distorted: Source<'_>,
    ) -> Result<Vec<f32>, Fault> {
        let width = distorted.shape().size.width;
        let (light, lab) = (band.with(2 * HALO), band.with(HALO));
        let params = band.params(&light, &lab);
        self.shrink(run, band, width, |run, rows, to| reference.rows(run, rows, to))?;
        to_lab(run, &params, &self.light, &self.lab[0])?;
        self.shrink(run, band, width, |run, rows, to| self.feed.rows(run, distorted, rows, to.each()))?;
        to_lab(run, &params, &self.light, &self.lab[1])?;
        run.backend.poison(&self.losses)?;
        let [one, other] = &self.lab;
        to_losses(run, &band.params(&lab, &band.rows), [one, other], &self.losses, &self.partials)?;
        read_floats(run.backend, &self.losses, band.size.width as usize * band.rows.len())
    }

    /// Linear light of a band and the rows that it needs beside it. `bring` brings rows of the image at its full size.
    fn shrink(
        &self,
        run: &mut Run<'_>,
        band: &Band,
        width: u32,
        bring: impl Fn(&mut Run<'_>, Range<u32>, &Planes) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let wanted = band.with(2 * HALO);
        if band.scale == 0 {
            return bring(run, wanted, &self.light);
        }
        let side = 1 << band.scale;
        for first in wanted.clone().step_by((SHRUNK_ROWS / side) as usize) {
            let rows = first..wanted.end.min(first + SHRUNK_ROWS / side);
            bring(run, rows.start * side..rows.end * side, &self.shrunk)?;
            let params = ShrinkParams {
                width,
                width_out: band.size.width,
                rows_out: rows.len() as u32,
                first_out: rows.start - wanted.start,
                side,
                unused: [0; 3],
            };
            shrink(run, &params, &self.shrunk, &self.light)?;
        }
        Ok(())
    }
}
