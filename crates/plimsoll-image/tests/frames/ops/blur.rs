//! `blur`

use plimsoll_image::frames::{Colour, Format, Frame, Range, Sampling};

use super::ffmpeg::filtered;
use super::naive::{Plane, near, planes};
use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size, yuv};

/// Sums of up to 513 products of single precision, twice.
const BOUND: f64 = 2e-6;

#[test]
fn every_way_agrees() {
    every_way("blur=2", &SIZES, BOUND);
    every_way("blur=0.1", &[(33, 17), (1, 1)], BOUND);
    every_way("blur=9.7", &[(64, 48), (7, 5)], BOUND);
}

#[test]
fn the_widest_reaches_far_beyond_the_picture() {
    every_way("blur=64", &[(33, 17), (1, 1)], BOUND);
}

/// A blur in two directions at once, with every tap's weight computed anew.
pub(super) fn blurred(plane: &Plane, (across, down): (f64, f64), deviations: f64) -> Plane {
    let taps = |sigma: f64| -> Vec<(i64, f64)> {
        let reach = (deviations * sigma).ceil() as i64;
        (-reach..=reach).map(|away| (away, (-0.5 * (away as f64 / sigma).powi(2)).exp())).collect()
    };
    let (across, down) = (taps(across), taps(down));
    plane.map(|x, y| {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (up, above) in &down {
            for (left, beside) in &across {
                sum += above * beside * plane.at(x + left, y + up);
                weights += above * beside;
            }
        }
        sum / weights
    })
}

#[test]
fn it_is_a_gaussian_of_the_same_width_in_every_plane() {
    let bench = Bench::new();
    for format in formats(size(43, 29)) {
        let input = frame(format, 3);
        let deviations = if format.depth() > 8 { 4.0 } else { 3.0 };
        let wanted: Vec<Plane> = planes(&input)
            .iter()
            .map(|plane| {
                let steps = |whole: u32, part: u32| f64::from(whole.div_ceil(part));
                let steps = (steps(43, plane.size.width), steps(29, plane.size.height));
                blurred(plane, (1.7 / steps.0, 1.7 / steps.1), deviations)
            })
            .collect();
        let output = bench.run(&bench.register("blur=1.7"), Way::Cpu, &input);
        near(&format.to_string(), &output, &wanted, BOUND);
    }
}

/// What is cut off is less than half a code beside the sharpest step there is: no longer reach would change it more.
#[test]
fn no_more_than_rounding_is_cut_off() {
    let bench = Bench::new();
    let format = Format::new(size(64, 1), 8, Colour::Mono(Range::Full)).unwrap();
    let input = Frame::new(format, (0..64).map(|x| if x < 32 { 0 } else { 255 }).collect()).unwrap();
    let output = bench.run(&bench.register("blur=3"), Way::Cpu, &input);
    let whole = blurred(&planes(&input)[0], (3.0, 3.0), 10.0);
    near("a step", &output, &[whole], 0.5 / 255.0);
}

/// ffmpeg's is recursive: the more steps, the more of a Gaussian. It takes the same deviation for chroma samples, so its
/// chroma is blurred twice as wide as its luma; ours is compared in luma.
#[test]
fn luma_is_close_to_that_of_ffmpeg() {
    let bench = Bench::new();
    let input = frame(formats(size(160, 96))[0], 7);
    let theirs = planes(&filtered("gblur=sigma=2:steps=6", &input)).swap_remove(0);
    let apart = |chain: &str| -> Vec<f64> {
        let ours = planes(&bench.run(&bench.register(chain), Way::Cpu, &input)).swap_remove(0);
        ours.samples.iter().zip(&theirs.samples).map(|(a, b)| (a - b).abs() * 255.0).collect()
    };
    let mean = |apart: &[f64]| apart.iter().sum::<f64>() / apart.len() as f64;
    let same = apart("blur=2");
    let furthest = same.iter().copied().fold(0.0, f64::max);
    assert!(furthest < 6.5 && mean(&same) < 0.8, "{furthest} codes at most, {} in the mean", mean(&same));
    for other in ["blur=1.8", "blur=2.2"] {
        assert!(mean(&apart(other)) > mean(&same), "{other} is closer: {}", mean(&apart(other)));
    }
}

#[test]
fn a_flat_picture_stays_flat() {
    let bench = Bench::new();
    let format = Format::new(size(70, 40), 10, yuv(Sampling::S420)).unwrap();
    let flat = Frame::new(format, [77, 3].repeat(format.frame_bytes() / 2)).unwrap();
    let output = bench.run(&bench.register("blur=5"), Way::Cpu, &flat);
    assert_eq!(codes(&output), codes(&flat));
}

#[test]
fn deviations_that_cannot_be_are_refused() {
    for wrong in ["blur", "blur=0", "blur=65", "blur=nan", "blur=2:2"] {
        assert!(wrong.parse::<plimsoll_image::frames::Chain>().is_err(), "{wrong}");
    }
}
