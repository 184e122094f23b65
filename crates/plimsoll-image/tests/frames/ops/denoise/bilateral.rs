//! `denoise=bilateral`

use plimsoll_image::frames::{Colour, Format, Frame, Range};

use super::super::naive::{Plane, near, planes};
use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{formats, frame, size};

/// The weights are within 3e-6 of themselves, and weigh differences that count only while they are small; the sums are of
/// single precision.
const BOUND: f64 = 2e-6;

#[test]
fn every_way_agrees() {
    every_way("denoise=bilateral", &SIZES, BOUND);
    every_way("denoise=bilateral:3.5:0.2", &[(33, 17), (7, 5)], BOUND);
    every_way("denoise=bilateral:0.5:0.001", &[(33, 17), (1, 1)], BOUND);
}

fn smoothed(plane: &Plane, (across, down): (f64, f64), tone: f64) -> Plane {
    plane.map(|x, y| {
        let (mut sum, mut weights) = (0.0, 0.0);
        for away_down in -7..=7_i64 {
            for away_right in -7..=7_i64 {
                let away = (away_right as f64 / across).powi(2) + (away_down as f64 / down).powi(2);
                let seen = plane.at(x + away_right, y + away_down);
                let apart = (seen - plane.at(x, y)) / tone;
                let weight = if away <= 4.0 { (-away / 2.0).exp() * (-apart * apart / 2.0).exp() } else { 0.0 };
                sum += weight * seen;
                weights += weight;
            }
        }
        sum / weights
    })
}

#[test]
fn it_is_the_mean_of_what_is_near_and_alike() {
    let bench = Bench::new();
    for format in formats(size(37, 23)) {
        let input = frame(format, 8);
        let smoothed = |plane: &Plane| {
            let steps = |whole: u32, part: u32| f64::from(whole.div_ceil(part));
            let steps = (steps(37, plane.size.width), steps(23, plane.size.height));
            smoothed(plane, (2.3 / steps.0, 2.3 / steps.1), 0.07)
        };
        let wanted: Vec<Plane> = planes(&input).iter().map(smoothed).collect();
        let output = bench.run(&bench.register("denoise=bilateral:2.3:0.07"), Way::Cpu, &input);
        near(&format.to_string(), &output, &wanted, BOUND);
    }
}

/// Beside an edge, noise goes and the edge stays.
#[test]
fn noise_goes_and_edges_stay() {
    let bench = Bench::new();
    let format = Format::new(size(64, 64), 8, Colour::Mono(Range::Full)).unwrap();
    let clean = |at: usize| if at % 64 < 32 { 60_i32 } else { 190 };
    // Four codes to either side, as a hash of the place says.
    let noise = |at: usize| ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i32 % 9 - 4;
    let noisy = Frame::new(format, (0..4096).map(|at| (clean(at) + noise(at)) as u8).collect()).unwrap();
    let output = bench.run(&bench.register("denoise=bilateral:2:0.06"), Way::Cpu, &noisy);
    let squares = |frame: &Frame| -> i32 {
        frame.bytes().iter().enumerate().map(|(at, code)| (i32::from(*code) - clean(at)).pow(2)).sum()
    };
    assert!(squares(&output) * 8 < squares(&noisy), "{} of {}", squares(&output), squares(&noisy));
    // A blur as wide would move the pixels beside the edge by more than twenty codes.
    let furthest = output.bytes().iter().enumerate().map(|(at, code)| (i32::from(*code) - clean(at)).abs()).max();
    assert!(furthest <= Some(4), "{furthest:?}");
}
