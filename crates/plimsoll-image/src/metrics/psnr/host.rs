//! PSNR on the CPU: one pass over both images, nothing kept but the reference itself.

use plimsoll_core::{Bytes, Fault, Footprint};

use super::score;
use crate::image::{Image, Samples, Shape};
use crate::metrics::host_metric::HostMetric;
use crate::metrics::workload::Score;

#[derive(Copy, Clone)]
pub(super) struct PsnrHost;

impl HostMetric for PsnrHost {
    type Reference = Image;
    type Scratch = ();

    /// Nothing beside the images themselves.
    fn footprint(&self, _: Shape) -> Footprint {
        Footprint::task(Bytes::ZERO)
    }

    fn open(&self, _: Shape) {}

    fn prepare(&self, (): &mut (), reference: &Image) -> Result<Image, Fault> {
        Ok(reference.clone())
    }

    fn score(&self, (): &mut (), reference: &Image, distorted: &Image) -> Result<Score, Fault> {
        let squares = match (reference.samples(), distorted.samples()) {
            (Samples::Rgb8(a), Samples::Rgb8(b)) => squares_of(a, b, 255.0),
            (Samples::Rgb16(a), Samples::Rgb16(b)) => squares_of(a, b, 65535.0),
            _ => squares_of_any(reference, distorted),
        };
        Ok(score(distorted.size(), squares))
    }
}

/// The sum of squared differences of samples from 0 to `peak`, as if they went from 0 to 1.
fn squares_of<T: Copy + Into<f64>>(a: &[T], b: &[T], peak: f64) -> f64 {
    let square = |(&a, &b): (&T, &T)| {
        let difference = a.into() - b.into();
        difference * difference
    };
    a.iter().zip(b).map(square).sum::<f64>() / (peak * peak)
}

/// The same for images whose samples are stored in different ways.
fn squares_of_any(a: &Image, b: &Image) -> f64 {
    let samples = (0..a.size().pixels() as usize).flat_map(|pixel| [0, 1, 2].map(|channel| (pixel, channel)));
    samples.map(|(pixel, channel)| (a.coded_sample(pixel, channel) - b.coded_sample(pixel, channel)).powi(2)).sum()
}
