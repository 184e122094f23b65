//! MS-SSIM on the CPU: a row goes through the window of its scale and, with the one before it, on to the next scale, so
//! that nothing but the reference is as large as an image.

use plimsoll_core::{Bytes, Fault, Footprint};

use super::{PEAK, score, terms};
use crate::image::{Image, Shape};
use crate::metrics::host_metric::HostMetric;
use crate::metrics::structure::halve::{halve_plane, halve_two};
use crate::metrics::structure::luma::luma_of_row;
use crate::metrics::structure::rows::{Compare, sum_of};
use crate::metrics::structure::scales::extents;
use crate::metrics::structure::still::Still;
use crate::metrics::workload::Score;

#[derive(Copy, Clone)]
pub(super) struct MsSsimHost;

/// One scale of the image that goes through.
pub(super) struct Scale {
    compare: Compare,
    /// Rows so far.
    seen: usize,
    /// The latest row, and the one before it.
    rows: [Vec<f32>; 2],
    sum: f64,
}

impl Scale {
    fn new(width: u32, scale: usize, count: usize) -> Self {
        let width = width as usize;
        let rows = [vec![0.0; width], vec![0.0; width]];
        Self { compare: Compare::new(width, terms(scale, count)), seen: 0, rows, sum: 0.0 }
    }

    fn begin(&mut self) {
        self.compare.begin();
        (self.seen, self.sum) = (0, 0.0);
    }

    /// Takes in what was put into its first row.
    fn take_in(&mut self, reference: &Still) {
        let row = reference.row(self.seen);
        let similarity = self.compare.push(row, &self.rows[0], |place| reference.known(place));
        self.sum += similarity.map_or(0.0, sum_of);
        self.seen += 1;
    }
}

/// Takes in what was put into the first row of the finest of these scales, and passes pairs of rows on.
fn pass_on(scales: &mut [Scale], references: &[Still]) {
    let ([finest, coarser @ ..], [reference, references @ ..]) = (scales, references) else { return };
    finest.take_in(reference);
    if finest.seen.is_multiple_of(2)
        && let Some(next) = coarser.first_mut()
    {
        halve_two(&finest.rows[1], &finest.rows[0], &mut next.rows[0]);
        pass_on(coarser, references);
    }
    finest.rows.swap(0, 1);
}

/// Passes on the last rows of scales with an odd number of them.
fn finish(scales: &mut [Scale], references: &[Still]) {
    let ([finest, coarser @ ..], [_, references @ ..]) = (scales, references) else { return };
    if !finest.seen.is_multiple_of(2)
        && let Some(next) = coarser.first_mut()
    {
        halve_two(&finest.rows[1], &finest.rows[1], &mut next.rows[0]);
        pass_on(coarser, references);
    }
    finish(coarser, references);
}

impl HostMetric for MsSsimHost {
    type Reference = Vec<Still>;
    type Scratch = Vec<Scale>;

    fn footprint(&self, shape: Shape) -> Footprint {
        let extents = extents(shape.size);
        let scale = |&[width, _]: &[u32; 2]| Compare::bytes(width.into()) + 8 * u64::from(width);
        Footprint {
            session: Bytes(extents.iter().map(scale).sum()),
            task: Bytes::ZERO,
            reference: Bytes(extents.iter().map(|&extent| Still::bytes(extent)).sum()),
        }
    }

    fn open(&self, shape: Shape) -> Vec<Scale> {
        let extents = extents(shape.size);
        extents.iter().enumerate().map(|(scale, &[width, _])| Scale::new(width, scale, extents.len())).collect()
    }

    fn prepare(&self, _: &mut Vec<Scale>, reference: &Image) -> Result<Vec<Still>, Fault> {
        let extents = extents(reference.size());
        let middle = terms(0, extents.len()).middle;
        let mut stills = vec![Still::of_image(reference, PEAK, middle)];
        for pair in extents.windows(2) {
            let [finer, coarser] = [pair[0], pair[1]].map(|[width, _]| width as usize);
            let plane = halve_plane(finer, stills[stills.len() - 1].plane());
            stills.push(Still::of_plane(coarser, plane, middle));
        }
        Ok(stills)
    }

    fn score(&self, scales: &mut Vec<Scale>, reference: &Vec<Still>, distorted: &Image) -> Result<Score, Fault> {
        scales.iter_mut().for_each(Scale::begin);
        for y in 0..distorted.size().height as usize {
            luma_of_row(distorted, y, PEAK, &mut scales[0].rows[0]);
            pass_on(scales, reference);
        }
        finish(scales, reference);
        let sums: Vec<f64> = scales.iter().map(|scale| scale.sum).collect();
        Ok(score(&extents(distorted.size()), &sums))
    }
}
