//! Planes of `f64`, for what the tests compute plainly: no tricks, one sample after the other.

use plimsoll_image::Size;
use plimsoll_image::frames::{Colour, Frame};

use crate::made::codes;

/// A plane of numbers from 0 to 1.
#[derive(Clone)]
pub(super) struct Plane {
    pub(super) size: Size,
    pub(super) samples: Vec<f64>,
}

impl Plane {
    /// What lies there; beyond an edge, the last row or column again.
    pub(super) fn at(&self, x: i64, y: i64) -> f64 {
        let clamp = |at: i64, count: u32| at.clamp(0, i64::from(count) - 1) as usize;
        self.samples[clamp(y, self.size.height) * self.size.width as usize + clamp(x, self.size.width)]
    }

    /// A plane of the same size, sample by sample.
    pub(super) fn map(&self, mut of: impl FnMut(i64, i64) -> f64) -> Self {
        let (width, height) = (i64::from(self.size.width), i64::from(self.size.height));
        let samples = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| of(x, y)).collect();
        Self { size: self.size, samples }
    }
}

/// The planes of a frame; red, green and blue apart.
pub(super) fn planes(frame: &Frame) -> Vec<Plane> {
    let (format, max) = (frame.format(), f64::from(frame.format().code_max()));
    let mut numbers: Vec<f64> = codes(frame).into_iter().map(|code| f64::from(code) / max).collect();
    if format.colour() == Colour::Rgb {
        numbers = (0..3).flat_map(|channel| numbers.iter().skip(channel).step_by(3).copied()).collect();
    }
    let mut numbers = numbers.into_iter();
    let plane = |size: Size| Plane { size, samples: numbers.by_ref().take(size.pixels() as usize).collect() };
    format.plane_sizes().into_iter().map(plane).collect()
}

/// Holds a frame against planes: no code may be further from them than rounding and `bound`, a share of the whole range.
pub(super) fn near(what: &str, frame: &Frame, wanted: &[Plane], bound: f64) {
    let allowed = bound + 0.5 / f64::from(frame.format().code_max());
    let got = planes(frame);
    assert_eq!(got.len(), wanted.len(), "{what}");
    for (number, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        assert_eq!(got.size, wanted.size, "{what}: plane {number}");
        for (at, (got, wanted)) in got.samples.iter().zip(&wanted.samples).enumerate() {
            let apart = (got - wanted.clamp(0.0, 1.0)).abs();
            assert!(apart <= allowed, "{what}: sample {at} of plane {number} is {got}, not {wanted}");
        }
    }
}
