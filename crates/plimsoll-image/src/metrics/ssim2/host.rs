//! SSIMULACRA 2 on the CPU: one pass over the image, all levels at once, every intermediate row still in the cache when
//! it is used. Of a reference its colours, means and variances stay.

use plimsoll_core::{Bytes, Fault, Footprint};

use super::host_pyramid::Pyramid;
use super::host_window::Window;
use super::score::{Level, Sums, Wanted, levels, score};
use super::terms::{Row, Spread, add_all, add_edges};
use crate::image::{Image, Shape, Size};
use crate::metrics::host_metric::HostMetric;
use crate::metrics::workload::Score;

#[derive(Copy, Clone)]
pub(super) struct Ssim2Host;

/// Planes of one channel of one level of a reference; those that have no use are empty.
#[derive(Default)]
pub(super) struct Kept {
    samples: Vec<f32>,
    mean: Vec<f32>,
    variance: Vec<f32>,
}

/// One channel of one level at work.
struct Channel {
    wanted: Wanted,
    width: usize,
    window: Window,
    /// The last rows of differences, not blurred.
    differences: Vec<f32>,
    smooth: [Vec<f32>; PLANES],
    sums: Sums,
}

/// Planes that are blurred: the difference, its square, and the square of the distorted image.
const PLANES: usize = 3;
/// Differences that are kept: those of the rows between one that comes in and one that is completed by it.
const DIFFERENCES: usize = super::filter::REACH + 1;

pub(super) struct Scratch {
    levels: Vec<Level>,
    pyramid: Pyramid,
    channels: Vec<[Channel; 3]>,
}

impl HostMetric for Ssim2Host {
    type Reference = Vec<[Kept; 3]>;
    type Scratch = Scratch;

    fn footprint(&self, shape: Shape) -> Footprint {
        let levels = levels(shape.size);
        let each = |bytes: fn(Size, Wanted) -> u64| {
            let channels = levels.iter().flat_map(|level| level.wanted.map(|wanted| bytes(level.size, wanted)));
            channels.sum::<u64>()
        };
        Footprint {
            session: Bytes(Pyramid::bytes(&levels) + each(Channel::bytes)),
            task: Bytes::ZERO,
            reference: Bytes(each(Kept::bytes)),
        }
    }

    fn open(&self, shape: Shape) -> Scratch {
        let levels = levels(shape.size);
        let channels = levels.iter().map(|level| level.wanted.map(|wanted| Channel::open(level.size, wanted)));
        Scratch { pyramid: Pyramid::open(&levels), channels: channels.collect(), levels }
    }

    fn prepare(&self, scratch: &mut Scratch, reference: &Image) -> Result<Vec<[Kept; 3]>, Fault> {
        let Scratch { levels, pyramid, channels } = scratch;
        let keep = |level: &Level| level.wanted.map(|wanted| Kept::open(level.size, wanted));
        let mut kept: Vec<[Kept; 3]> = levels.iter().map(keep).collect();
        pyramid.rows_of(reference, |level, y, colours| {
            for ((channel, kept), samples) in channels[level].iter_mut().zip(&mut kept[level]).zip(colours) {
                channel.learn(y, samples, kept);
            }
        });
        Ok(kept)
    }

    fn score(&self, scratch: &mut Scratch, reference: &Vec<[Kept; 3]>, distorted: &Image) -> Result<Score, Fault> {
        let sums = scratch.compare(reference, distorted);
        Ok(Score::of(score(&scratch.levels, &sums)))
    }
}

impl Scratch {
    /// The sums of each level's channels.
    fn compare(&mut self, reference: &[[Kept; 3]], distorted: &Image) -> Vec<[Sums; 3]> {
        let Self { pyramid, channels, .. } = self;
        channels.iter_mut().flatten().for_each(|channel| channel.sums = Sums::default());
        pyramid.rows_of(distorted, |level, y, colours| {
            for ((channel, kept), samples) in channels[level].iter_mut().zip(&reference[level]).zip(colours) {
                channel.compare(y, samples, kept);
            }
        });
        channels.iter().map(|channels| channels.each_ref().map(|channel| channel.sums)).collect()
    }
}

impl Kept {
    fn open(size: Size, wanted: Wanted) -> Self {
        let plane = |wanted: bool| if wanted { vec![0.0; size.pixels() as usize] } else { Vec::new() };
        Self { samples: plane(wanted.any), mean: plane(wanted.any), variance: plane(wanted.structure) }
    }

    fn bytes(size: Size, wanted: Wanted) -> u64 {
        4 * size.pixels() * (2 * u64::from(wanted.any) + u64::from(wanted.structure))
    }
}

impl Channel {
    fn open(size: Size, wanted: Wanted) -> Self {
        let planes = Self::planes(wanted);
        let row = || vec![0.0; size.width as usize];
        Self {
            wanted,
            width: size.width as usize,
            window: Window::open(planes, size.width, size.height),
            differences: vec![0.0; DIFFERENCES * size.width as usize],
            smooth: [row(), row(), row()],
            sums: Sums::default(),
        }
    }

    fn planes(wanted: Wanted) -> usize {
        // A reference without structure still has a mean.
        if wanted.structure { PLANES } else { 1 }
    }

    fn bytes(size: Size, wanted: Wanted) -> u64 {
        let rows = (DIFFERENCES + PLANES) as u64;
        Window::bytes(Self::planes(wanted), size.width) + 4 * u64::from(size.width) * rows
    }

    /// Takes a row of the reference, and works out the rows that it completes.
    fn learn(&mut self, y: u32, samples: &[f32], kept: &mut Kept) {
        if !self.wanted.any {
            return;
        }
        let width = self.width;
        let rows = |y: u32| y as usize * width..(y as usize + 1) * width;
        kept.samples[rows(y)].copy_from_slice(samples);
        self.window.take(0, y, |row| row.copy_from_slice(samples));
        if self.wanted.structure {
            self.window.take(1, y, |row| squared(samples, row));
        }
        for done in self.window.completed_by(y) {
            let mean = &mut kept.mean[rows(done)];
            self.window.blurred(0, done, mean);
            if self.wanted.structure {
                let variance = &mut kept.variance[rows(done)];
                self.window.blurred(1, done, variance);
                variance.iter_mut().zip(mean).for_each(|(variance, mean)| *variance -= *mean * *mean);
            }
        }
    }

    /// Takes a row of the distorted image, and adds the terms of the rows that it completes.
    fn compare(&mut self, y: u32, samples: &[f32], kept: &Kept) {
        if !self.wanted.any {
            return;
        }
        let width = self.width;
        let rows = |y: u32| y as usize * width..(y as usize + 1) * width;
        let kept_differences = |y: u32| rows(y % DIFFERENCES as u32);
        let differences = &mut self.differences[kept_differences(y)];
        subtracted(&kept.samples[rows(y)], samples, differences);
        self.window.take(0, y, |row| row.copy_from_slice(differences));
        if self.wanted.structure {
            self.window.take(1, y, |row| squared(differences, row));
            self.window.take(2, y, |row| squared(samples, row));
        }
        for done in self.window.completed_by(y) {
            for (plane, out) in self.smooth.iter_mut().enumerate().take(Self::planes(self.wanted)) {
                self.window.blurred(plane, done, out);
            }
            let [shift, squares, energy] = &self.smooth;
            let row = Row {
                reference: &kept.samples[rows(done)],
                mean: &kept.mean[rows(done)],
                difference: &self.differences[kept_differences(done)],
                shift,
            };
            if self.wanted.structure {
                add_all(row, Spread { variance: &kept.variance[rows(done)], squares, energy }, &mut self.sums);
            } else {
                add_edges(row, &mut self.sums);
            }
        }
    }
}

fn squared(samples: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(samples).for_each(|(out, sample)| *out = sample * sample);
}

fn subtracted(from: &[f32], samples: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(from).zip(samples).for_each(|((out, from), sample)| *out = from - sample);
}

#[cfg(test)]
mod tests {
    use super::super::definition;
    use super::*;

    const SIZE: Size = Size { width: 150, height: 131 };

    fn image(sample: impl Fn(u32) -> u32) -> Image {
        let samples: Vec<u8> = (0..SIZE.width * SIZE.height * 3).map(|at| sample(at) as u8).collect();
        Image::rgb8(SIZE, samples).expect("as many samples as it has")
    }

    fn busy(at: u32) -> u32 {
        at * 7 % 90 + at.wrapping_mul(2_654_435_761) / (1 << 26)
    }

    /// A mean or a 4-norm, as it is weighed.
    fn pooled(sums: &Sums, pixels: f64) -> [f64; 6] {
        let mean = sums.map(|sum| sum / pixels);
        [mean[0], mean[1], mean[2], mean[3].powf(0.25), mean[4].powf(0.25), mean[5].powf(0.25)]
    }

    /// A busy, a smooth and a flat image beside the definition. Single precision is right to about 1e-7 of a sample,
    /// and the variance of a flat area to about 1e-4 of the constant that is added to it; the first channel is
    /// stretched 14-fold.
    #[test]
    fn every_term_follows_its_definition() {
        let pairs = [
            (image(busy), image(|at| busy(at) + busy(at + 99) / 16)),
            (image(|at| at / 300), image(|at| at / 310)),
            (image(|_| 120), image(|_| 121)),
        ];
        for (reference, distorted) in pairs {
            let mut scratch = Ssim2Host.open(distorted.shape());
            let kept = Ssim2Host.prepare(&mut scratch, &reference).expect("it never fails");
            let sums = scratch.compare(&kept, &distorted);
            let defined = definition::sums(&reference, &distorted);
            for ((level, sums), defined) in scratch.levels.iter().zip(&sums).zip(&defined) {
                for (channel, wanted) in level.wanted.iter().enumerate().filter(|(_, wanted)| wanted.any) {
                    let pixels = level.size.pixels() as f64;
                    let [got, right] = [sums, defined].map(|sums| pooled(&sums[channel], pixels));
                    let near = |at: usize| (got[at] - right[at]).abs() < 1e-3 * right[at] + 1e-6;
                    let weighed = (0..6).filter(|at| wanted.structure || at % 3 != 0);
                    assert!(weighed.clone().all(near), "{channel} of {level:?}: {got:?}, not {right:?}");
                }
            }
            let [got, right] = [sums, defined].map(|sums| score(&scratch.levels, &sums));
            assert!((got - right).abs() < 3e-4, "{got}, not {right}");
        }
    }
}
