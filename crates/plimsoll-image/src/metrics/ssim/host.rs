//! SSIM on the CPU: rows go through a window of eleven, so that nothing but the reference is as large as an image.

use plimsoll_core::{Bytes, Fault, Footprint};

use super::{PEAK, terms};
use crate::image::{Image, Shape};
use crate::metrics::host_metric::HostMetric;
use crate::metrics::structure::luma::luma_of_row;
use crate::metrics::structure::rows::{Compare, sum_of};
use crate::metrics::structure::still::Still;
use crate::metrics::workload::Score;

#[derive(Copy, Clone)]
pub(super) struct SsimHost;

pub(super) struct Scratch {
    row: Vec<f32>,
    compare: Compare,
}

impl HostMetric for SsimHost {
    type Reference = Still;
    type Scratch = Scratch;

    fn footprint(&self, shape: Shape) -> Footprint {
        let width = u64::from(shape.size.width);
        let session = Bytes(4 * width + Compare::bytes(width));
        let extent = [shape.size.width, shape.size.height];
        Footprint { session, task: Bytes::ZERO, reference: Bytes(Still::bytes(extent)) }
    }

    fn open(&self, shape: Shape) -> Scratch {
        let width = shape.size.width as usize;
        Scratch { row: vec![0.0; width], compare: Compare::new(width, terms()) }
    }

    fn prepare(&self, _: &mut Scratch, reference: &Image) -> Result<Still, Fault> {
        Ok(Still::of_image(reference, PEAK, terms().middle))
    }

    fn score(&self, scratch: &mut Scratch, reference: &Still, distorted: &Image) -> Result<Score, Fault> {
        let Scratch { row, compare } = scratch;
        compare.begin();
        let mut sum = 0.0;
        for y in 0..distorted.size().height as usize {
            luma_of_row(distorted, y, PEAK, row);
            let similarity = compare.push(reference.row(y), row, |place| reference.known(place));
            sum += similarity.map_or(0.0, sum_of);
        }
        Ok(Score::of(sum / reference.places() as f64))
    }
}
