//! `sobel`

use plimsoll_image::frames::{Colour, Format, Frame, Range, Sampling};

use super::naive::{Plane, near, planes};
use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size, yuv};

/// Sums of a few numbers of single precision and a root.
const BOUND: f64 = 2e-6;

#[test]
fn every_way_agrees() {
    every_way("sobel", &SIZES, BOUND);
}

#[test]
fn it_is_the_length_of_both_operators() {
    let bench = Bench::new();
    for format in formats(size(33, 17)) {
        let input = frame(format, 4);
        let max = f64::from(format.code_max());
        let steps = f64::from(1_u16 << (format.depth() - 8));
        let is_yuv = matches!(format.colour(), Colour::Yuv(_));
        let (black, white) = if is_yuv { (16.0 * steps / max, 235.0 * steps / max) } else { (0.0, 1.0) };
        let mut wanted: Vec<Plane> = planes(&input).iter().map(|plane| steepness(plane, black, white)).collect();
        if is_yuv {
            wanted[1..].iter_mut().for_each(|plane| *plane = plane.map(|_, _| 128.0 * steps / max));
        }
        near(&format.to_string(), &bench.run(&bench.register("sobel"), Way::Cpu, &input), &wanted, BOUND);
    }
}

fn steepness(plane: &Plane, black: f64, white: f64) -> Plane {
    const ACROSS: [[f64; 3]; 3] = [[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]];
    plane.map(|x, y| {
        let (mut across, mut down) = (0.0, 0.0);
        for (row, away_down) in (-1..=1).enumerate() {
            for (column, away_right) in (-1..=1).enumerate() {
                across += ACROSS[row][column] * plane.at(x + away_right, y + away_down);
                down += ACROSS[column][row] * plane.at(x + away_right, y + away_down);
            }
        }
        (black + across.hypot(down) / 4.0).min(white)
    })
}

#[test]
fn a_step_from_black_to_white_is_white_and_the_rest_black() {
    let bench = Bench::new();
    let chain = bench.register("sobel");
    let format = Format::new(size(6, 2), 8, yuv(Sampling::S444)).unwrap();
    let luma = [16, 16, 16, 235, 235, 235].repeat(2);
    let output = bench.run(&chain, Way::Cpu, &Frame::new(format, [luma, vec![77; 24]].concat()).unwrap());
    let edges = [16, 16, 235, 235, 16, 16].repeat(2);
    assert_eq!(codes(&output), [edges, vec![128; 24]].concat());
    let format = Format::new(size(1, 4), 8, Colour::Mono(Range::Full)).unwrap();
    let output = bench.run(&chain, Way::Cpu, &Frame::new(format, vec![255, 255, 0, 0]).unwrap());
    assert_eq!(codes(&output), [0, 255, 255, 0]);
}
