//! An image made smaller, for a glance: each new pixel is the mean light of the area that it covers.
//! Never enlarges.

use crate::image::{Image, Samples, Size};
use crate::transfer;

impl Image {
    /// The same picture with neither side longer than this, as 8-bit sRGB; itself, if it is small enough.
    #[must_use]
    pub fn shrunk(&self, side_max: u32) -> Self {
        let size = self.size();
        let longest = size.width.max(size.height);
        if longest <= side_max.max(1) {
            return self.clone();
        }
        let scaled = |side: u32| (u64::from(side) * u64::from(side_max.max(1)) / u64::from(longest)).max(1) as u32;
        let small = Size { width: scaled(size.width), height: scaled(size.height) };
        let (of_8, of_16) = (transfer::linear_of_8_bit(), transfer::linear_of_16_bit());
        let samples = match self.samples() {
            Samples::Rgb8(samples) => means(size, small, |at| of_8[usize::from(samples[at])]),
            Samples::Rgb16(samples) => means(size, small, |at| of_16[usize::from(samples[at])]),
            // Planes, one after the other.
            Samples::Linear(planes) => means(size, small, |at| planes[at / 3 + at % 3 * size.pixels() as usize]),
        };
        Self::rgb8(small, samples).expect("as many samples as its size says")
    }
}

/// The codes of the mean light of each area.
fn means(size: Size, small: Size, light: impl Fn(usize) -> f32) -> Vec<u8> {
    let mut samples = Vec::with_capacity(small.pixels() as usize * 3);
    for y in 0..small.height {
        let rows = span(y, size.height, small.height);
        for x in 0..small.width {
            let columns = span(x, size.width, small.width);
            let mut sum = [0.0_f32; 3];
            for row in rows.clone() {
                let start = row as usize * size.width as usize;
                for column in columns.clone() {
                    let at = (start + column as usize) * 3;
                    (0..3).for_each(|channel| sum[channel] += light(at + channel));
                }
            }
            let count = (rows.len() * columns.len()) as f32;
            samples.extend(sum.map(|sum| (transfer::coded(sum / count) * 255.0).round() as u8));
        }
    }
    samples
}

/// The pixels that one of the smaller image covers: whole ones, at least one.
fn span(at: u32, from: u32, to: u32) -> std::ops::Range<u32> {
    let edge = |at: u32| (u64::from(at) * u64::from(from) / u64::from(to)) as u32;
    edge(at)..edge(at + 1).max(edge(at) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(width: u32, height: u32, value: impl Fn(u32, u32) -> u8) -> Image {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let samples: Vec<u8> = places.flat_map(|(x, y)| [value(x, y); 3]).collect();
        Image::rgb8(Size { width, height }, samples).unwrap()
    }

    #[test]
    fn light_is_averaged_and_flat_stays_flat() {
        let chequered = grey(64, 32, |x, y| if (x + y) % 2 == 0 { 255 } else { 0 }).shrunk(16);
        assert_eq!(chequered.size(), Size { width: 16, height: 8 });
        assert!(chequered.to_rgb8().iter().all(|&code| code == 188), "half of the light of white");
        for side in [1, 7, 31, 100] {
            assert!(grey(101, 37, |_, _| 77).shrunk(side).to_rgb8().iter().all(|&code| code == 77), "{side}");
        }
    }

    #[test]
    fn what_is_small_enough_stays_as_it_is_and_a_thin_one_keeps_a_row() {
        let small = grey(20, 10, |x, y| (x * y) as u8);
        assert_eq!(small.shrunk(20), small);
        assert_eq!(grey(5000, 2, |_, _| 9).shrunk(320).size(), Size { width: 320, height: 1 });
    }
}
