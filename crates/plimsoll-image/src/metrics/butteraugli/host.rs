//! Butteraugli on the CPU: the crate of that name, with the reference prepared.

use butteraugli::{ButteraugliParams, ButteraugliReference};
use plimsoll_core::{Bytes, Fault, Footprint};

use super::half_size;
use crate::image::{Image, Samples, Shape, Size};
use crate::metrics::host_metric::HostMetric;
use crate::metrics::workload::Score;
use crate::transfer;

#[derive(Copy, Clone)]
pub(super) struct ButteraugliHost;

/// Memory that is filled anew for each image.
pub(super) struct HostScratch {
    /// Linear light: red, green and blue, one after the other.
    light: Vec<f32>,
    /// Where the crate leaves its map of distances. It makes one in any case, and takes a fresh one each time unless it
    /// is given one.
    map: Vec<f32>,
}

impl HostMetric for ButteraugliHost {
    type Reference = ButteraugliReference;
    type Scratch = HostScratch;

    /// The crate holds twelve planes of a reference at each resolution. A comparison takes twenty-one more, and leaves
    /// them with the reference for the next; but those that served at half the resolution no longer serve at the full
    /// one, so as many again come before it grows no more.
    fn footprint(&self, shape: Shape) -> Footprint {
        let size = shape.size;
        let half = half_size(size).map_or(0, |half| crate_plane(half, 0));
        let comparison = 21 * crate_plane(size, MARGIN);
        Footprint {
            session: Bytes(4 * 4 * size.pixels()),
            task: Bytes(comparison),
            reference: Bytes(12 * (crate_plane(size, 0) + half) + comparison),
        }
    }

    fn open(&self, shape: Shape) -> HostScratch {
        let pixels = shape.size.pixels() as usize;
        HostScratch { light: vec![0.0; 3 * pixels], map: vec![0.0; pixels] }
    }

    fn prepare(&self, scratch: &mut HostScratch, reference: &Image) -> Result<ButteraugliReference, Fault> {
        fill(&mut scratch.light, reference);
        let (width, height) = (reference.size().width as usize, reference.size().height as usize);
        let [red, green, blue] = planes(&scratch.light);
        let params = ButteraugliParams::default();
        ButteraugliReference::new_linear_planar(red, green, blue, width, height, width, params).map_err(Fault::work)
    }

    fn score(
        &self,
        scratch: &mut HostScratch,
        reference: &ButteraugliReference,
        distorted: &Image,
    ) -> Result<Score, Fault> {
        fill(&mut scratch.light, distorted);
        let [red, green, blue] = planes(&scratch.light);
        let stride = distorted.size().width as usize;
        let (max, norm3) =
            reference.compare_linear_planar_into(red, green, blue, stride, &mut scratch.map).map_err(Fault::work)?;
        Ok(Score { value: max, norm3: Some(norm3) })
    }
}

/// Pixels around a plane that the crate's largest buffers have.
const MARGIN: u64 = 4;

/// Bytes of one of the crate's planes, whose rows it fills up to sixteen pixels.
fn crate_plane(size: Size, margin: u64) -> u64 {
    let row = (u64::from(size.width) + 2 * margin).next_multiple_of(16);
    4 * row * (u64::from(size.height) + 2 * margin)
}

/// Red, green and blue of light that lies one plane after the other.
pub(super) fn planes(light: &[f32]) -> [&[f32]; 3] {
    let (red, rest) = light.split_at(light.len() / 3);
    let (green, blue) = rest.split_at(red.len());
    [red, green, blue]
}

/// Fills three planes with an image's light.
fn fill(light: &mut [f32], image: &Image) {
    match image.samples() {
        Samples::Rgb8(samples) => {
            let table = transfer::linear_of_8_bit();
            spread(light, samples, |sample| table[usize::from(sample)]);
        }
        Samples::Rgb16(samples) => {
            let table = transfer::linear_of_16_bit();
            spread(light, samples, |sample| table[usize::from(sample)]);
        }
        Samples::Linear(planes) => light.copy_from_slice(planes),
    }
}

fn spread<T: Copy>(light: &mut [f32], samples: &[T], value: impl Fn(T) -> f32) {
    let (red, rest) = light.split_at_mut(samples.len() / 3);
    let (green, blue) = rest.split_at_mut(red.len());
    let (pixels, _) = samples.as_chunks::<3>();
    for (((pixel, red), green), blue) in pixels.iter().zip(red).zip(green).zip(blue) {
        [*red, *green, *blue] = pixel.map(&value);
    }
}
