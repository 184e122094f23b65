//! DSSIM on the CPU: one pass over the image's rows that feeds all scales at once, then the pooling of the losses.
//! Of the reference it keeps what the other image has no part in: Lab, its means and its variances.

use plimsoll_core::{Bytes, Fault, Footprint};

use super::rows::{self, BlurredReference, Three};
use super::scales;
use super::stream::{Follower, Stream};
use crate::image::{Image, Samples, Shape, Size};
use crate::metrics::host_metric::HostMetric;
use crate::metrics::workload::Score;
use crate::transfer;

#[derive(Copy, Clone)]
pub(super) struct DssimHost;

/// One scale of a prepared reference.
pub(super) struct Kept {
    width: usize,
    lab: [Vec<f32>; 3],
    means: [Vec<f32>; 3],
    means_squared: Vec<f32>,
    variances: Vec<f32>,
}

/// Planes of a [`Kept`].
const KEPT_PLANES: u64 = 8;

/// What a session works with.
pub(super) struct Scratch {
    light: [Vec<f32>; 3],
    streams: Vec<Stream>,
    losses: Vec<Vec<f32>>,
}

impl HostMetric for DssimHost {
    type Reference = Vec<Kept>;
    type Scratch = Scratch;

    fn footprint(&self, shape: Shape) -> Footprint {
        let floats = |each: fn(&Size) -> u64| scales::sizes(shape.size).iter().map(each).sum::<u64>();
        let light = 3 * u64::from(shape.size.width);
        let session = light + floats(|size| Stream::floats(size.width.into()) + size.pixels());
        let reference = floats(|size| KEPT_PLANES * size.pixels());
        Footprint { session: Bytes(session * 4), task: Bytes::ZERO, reference: Bytes(reference * 4) }
    }

    fn open(&self, shape: Shape) -> Scratch {
        let sizes = scales::sizes(shape.size);
        Scratch {
            light: std::array::from_fn(|_| vec![0.0; shape.size.width as usize]),
            streams: sizes.iter().map(|&size| Stream::new(size)).collect(),
            losses: sizes.iter().map(|size| vec![0.0; size.pixels() as usize]).collect(),
        }
    }

    fn prepare(&self, scratch: &mut Scratch, reference: &Image) -> Result<Vec<Kept>, Fault> {
        let mut kept: Vec<Kept> = scales::sizes(reference.size()).into_iter().map(Kept::new).collect();
        pass_by(&mut scratch.streams, &mut kept, reference, &mut scratch.light);
        Ok(kept)
    }

    fn score(&self, scratch: &mut Scratch, reference: &Vec<Kept>, distorted: &Image) -> Result<Score, Fault> {
        let pairs = reference.iter().zip(&mut scratch.losses);
        let mut scales: Vec<Compared<'_>> = pairs.map(|(reference, losses)| Compared::new(reference, losses)).collect();
        pass_by(&mut scratch.streams, &mut scales, distorted, &mut scratch.light);
        let deviations: Vec<f64> = scales.iter().enumerate().map(|(scale, losses)| losses.deviation(scale)).collect();
        Ok(scales::score(&deviations))
    }
}

/// Lets all rows of an image pass by, at every scale.
fn pass_by<F: Follower>(streams: &mut [Stream], followers: &mut [F], image: &Image, light: &mut [Vec<f32>; 3]) {
    streams.iter_mut().for_each(Stream::restart);
    for y in 0..image.size().height as usize {
        let row = light_of_row(image, y, light);
        take(streams, followers, row);
    }
}

/// Hands a row to a scale, and what comes of it to the next.
fn take<F: Follower>(streams: &mut [Stream], followers: &mut [F], light: Three<'_>) {
    let Some((stream, smaller)) = streams.split_first_mut() else { return };
    let Some((follower, others)) = followers.split_first_mut() else { return };
    stream.take(light, follower);
    if smaller.is_empty() {
        return;
    }
    if let Some(halved) = stream.halve(light) {
        take(smaller, others, halved);
    }
}

/// A row of linear light; `light` holds it where the image does not.
fn light_of_row<'a>(image: &'a Image, y: usize, light: &'a mut [Vec<f32>; 3]) -> Three<'a> {
    let width = image.size().width as usize;
    match image.samples() {
        Samples::Rgb8(samples) => {
            let table = transfer::linear_of_8_bit();
            spread(&samples[3 * y * width..][..3 * width], light, |sample| table[usize::from(sample)]);
        }
        Samples::Rgb16(samples) => {
            let table = transfer::linear_of_16_bit();
            spread(&samples[3 * y * width..][..3 * width], light, |sample| table[usize::from(sample)]);
        }
        Samples::Linear(planes) => {
            return [0, 1, 2].map(|channel| &planes[channel * (planes.len() / 3) + y * width..][..width]);
        }
    }
    light.each_ref().map(Vec::as_slice)
}

fn spread<T: Copy>(samples: &[T], light: &mut [Vec<f32>; 3], value: impl Fn(T) -> f32) {
    let (pixels, _) = samples.as_chunks::<3>();
    let [red, green, blue] = light;
    for (((pixel, red), green), blue) in pixels.iter().zip(red).zip(green).zip(blue) {
        (*red, *green, *blue) = (value(pixel[0]), value(pixel[1]), value(pixel[2]));
    }
}

impl Kept {
    fn new(size: Size) -> Self {
        let plane = || vec![0.0; size.pixels() as usize];
        Self {
            width: size.width as usize,
            lab: [plane(), plane(), plane()],
            means: [plane(), plane(), plane()],
            means_squared: plane(),
            variances: plane(),
        }
    }

    fn row<'a>(&self, plane: &'a [f32], y: usize) -> &'a [f32] {
        &plane[y * self.width..][..self.width]
    }

    fn rows<'a>(&self, planes: &'a [Vec<f32>; 3], y: usize) -> Three<'a> {
        planes.each_ref().map(|plane| self.row(plane, y))
    }
}

impl Follower for Kept {
    const COMPARES: bool = false;

    fn smoothed(&mut self, y: usize, lab: Three<'_>, _: &mut [f32]) {
        for (plane, row) in self.lab.iter_mut().zip(lab) {
            plane[y * self.width..][..self.width].copy_from_slice(row);
        }
    }

    fn blurred(&mut self, y: usize, row: &rows::Blurred<'_>) {
        let range = y * self.width..(y + 1) * self.width;
        for (plane, row) in self.means.iter_mut().zip(row.means) {
            plane[range.clone()].copy_from_slice(row);
        }
        let (means_squared, variances) = (&mut self.means_squared[range.clone()], &mut self.variances[range]);
        rows::variances(row.means, row.squares, means_squared, variances);
    }
}

/// One scale of an image while it is compared.
struct Compared<'a> {
    reference: &'a Kept,
    losses: &'a mut [f32],
    sum: f64,
}

impl<'a> Compared<'a> {
    fn new(reference: &'a Kept, losses: &'a mut [f32]) -> Self {
        Self { reference, losses, sum: 0.0 }
    }

    /// The mean distance of the losses from their level.
    fn deviation(&self, scale: usize) -> f64 {
        let count = self.losses.len() as f64;
        let level = scales::level(scale, self.sum / count);
        rows::sum_of_distances(self.losses, level as f32) / count
    }
}

impl Follower for Compared<'_> {
    const COMPARES: bool = true;

    fn smoothed(&mut self, y: usize, lab: Three<'_>, distances: &mut [f32]) {
        rows::squared_distances(lab, self.reference.rows(&self.reference.lab, y), distances);
    }

    fn blurred(&mut self, y: usize, row: &rows::Blurred<'_>) {
        let kept = self.reference;
        let reference = BlurredReference {
            means: kept.rows(&kept.means, y),
            means_squared: kept.row(&kept.means_squared, y),
            variances: kept.row(&kept.variances, y),
        };
        let losses = &mut self.losses[y * kept.width..][..kept.width];
        rows::losses(row, &reference, losses);
        self.sum += rows::sum(losses);
    }
}
