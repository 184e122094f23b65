//! `convolve`

use plimsoll_image::frames::{Chain, Format, Frame, Sampling};

use super::ffmpeg::filtered;
use super::naive::{Plane, near, planes};
use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size, yuv};

/// Sums of up to 49 products of single precision.
const BOUND: f64 = 2e-6;

const SHARPEN: &str = "convolve=0 -1 0/-1 5 -1/0 -1 0";
const UNEVEN: &str = "convolve=1 2 3 4 5/0 1 0 -1 0/2 0 7.5 0 2/0 0 0 0 0/5 4 3 2 1";
const WIDE: &str =
    "convolve=1 1 1 1 1 1 1/1 2 2 2 2 2 1/1 2 3 3 3 2 1/1 2 3 4 3 2 1/1 2 3 3 3 2 1/1 2 2 2 2 2 1/1 1 1 1 1 1 1";

#[test]
fn every_way_agrees() {
    every_way(SHARPEN, &SIZES, BOUND);
    every_way(&format!("{UNEVEN}:planes=all"), &[(64, 48), (7, 5), (1, 1)], BOUND);
    every_way(&format!("{WIDE}:gain=0.02:bias=-0.1"), &[(33, 17)], BOUND);
}

/// Values count from black to white, whose numbers these are.
fn convolved(plane: &Plane, weights: &[f64], gain: f64, bias: f64, (black, white): (f64, f64)) -> Plane {
    let side = weights.len().isqrt() as i64;
    let value = |x: i64, y: i64| (plane.at(x, y) - black) / (white - black);
    plane.map(|x, y| {
        let taps =
            (0..).zip(weights).map(|(at, weight)| weight * value(x + at % side - side / 2, y + at / side - side / 2));
        black + (white - black) * (gain * taps.sum::<f64>() + bias)
    })
}

fn black_and_white(format: Format) -> (f64, f64) {
    let unit = f64::from(1_u32 << (format.depth() - 8)) / f64::from(format.code_max());
    if is_yuv(format) { (16.0 * unit, 235.0 * unit) } else { (0.0, 1.0) }
}

#[test]
fn it_is_the_sum_of_what_lies_around() {
    let bench = Bench::new();
    let uneven = [
        1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0, 0.0, -1.0, 0.0, 2.0, 0.0, 7.5, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 4.0,
        3.0, 2.0, 1.0,
    ];
    for format in formats(size(31, 13)) {
        let input = frame(format, 6);
        let output = bench.run(&bench.register(&format!("{UNEVEN}:bias=0.1")), Way::Cpu, &input);
        let mut wanted = planes(&input);
        let changed = if is_yuv(format) { 1 } else { wanted.len() };
        let (sum, ends): (f64, _) = (uneven.iter().sum(), black_and_white(format));
        wanted[..changed].iter_mut().for_each(|plane| *plane = convolved(plane, &uneven, 1.0 / sum, 0.1, ends));
        near(&format.to_string(), &output, &wanted, BOUND);
    }
}

fn is_yuv(format: Format) -> bool {
    matches!(format.colour(), plimsoll_image::frames::Colour::Yuv(_))
}

/// Rounding may tip over; and ffmpeg mirrors edges, so the outermost pixels are left out.
#[test]
fn it_is_what_ffmpeg_makes_of_it() {
    let bench = Bench::new();
    let input = frame(formats(size(160, 96))[0], 7);
    let ours = &planes(&bench.run(&bench.register("convolve=1 2 1/2 4 2/1 2 1"), Way::Cpu, &input))[0];
    let theirs = &planes(&filtered("convolution='1 2 1 2 4 2 1 2 1':0rdiv=1/16", &input))[0];
    let inside = (1..95).flat_map(|y| (1..159).map(move |x| (x, y)));
    let furthest = inside.map(|(x, y)| (ours.at(x, y) - theirs.at(x, y)).abs() * 255.0).fold(0.0, f64::max);
    assert!(furthest < 1.5, "{furthest} codes");
}

/// Weights that add up to nothing leave black and no colour, rather than green.
#[test]
fn chroma_is_weighed_about_its_middle() {
    let bench = Bench::new();
    let format = Format::new(size(9, 7), 8, yuv(Sampling::S444)).unwrap();
    let flat = Frame::new(format, [vec![100; 63], vec![30; 63], vec![200; 63]].concat()).unwrap();
    let edges = bench.register("convolve=0 -1 0/-1 4 -1/0 -1 0:planes=all");
    let output = bench.run(&edges, Way::Cpu, &flat);
    assert_eq!(codes(&output), [vec![16; 63], vec![128; 126]].concat());
    // A bias is a share of the way from black to white, and twice black is black.
    let black = Frame::new(format, [vec![16; 63], vec![128; 126]].concat()).unwrap();
    for (chain, luma) in [("gain=2", 16), ("gain=1:bias=0.5", 126), ("bias=1", 235)] {
        let chain = bench.register(&format!("convolve=0 0 0/0 1 0/0 0 0:{chain}"));
        [Way::Cpu, Way::Gpu].into_iter().for_each(|way| assert_eq!(codes(&bench.run(&chain, way, &black))[0], luma));
    }
}

#[test]
fn a_weight_on_one_neighbour_moves_the_picture() {
    let bench = Bench::new();
    let format = formats(size(11, 5))[0];
    let input = frame(format, 2);
    let output = bench.run(&bench.register("convolve=0 0 0/0 0 1/0 0 0"), Way::Cpu, &input);
    let (moved, own) = (&planes(&output)[0], &planes(&input)[0]);
    assert!(moved.samples == own.map(|x, y| own.at(x + 1, y)).samples);
}

#[test]
fn matrices_that_cannot_be_are_refused() {
    for wrong in ["convolve", "convolve=1 2/3 4", "convolve=1 1 1/1 1 1", "convolve=0 0 0/0 1 0/0 0 0:gain=x"] {
        assert!(wrong.parse::<Chain>().is_err(), "{wrong}");
    }
}
