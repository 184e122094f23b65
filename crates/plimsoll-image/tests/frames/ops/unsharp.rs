//! `unsharp`

use super::blur::blurred;
use super::naive::{near, planes};
use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{formats, frame, size};

/// The blur's bound, and the amount more of it.
const BOUND: f64 = 6e-6;

#[test]
fn every_way_agrees() {
    every_way("unsharp=2:1.5:0.02", &SIZES, BOUND);
    every_way("unsharp=0.6:-0.5:planes=all", &[(33, 17), (1, 1)], BOUND);
}

#[test]
fn it_adds_what_a_blur_takes_above_the_threshold() {
    let bench = Bench::new();
    // 8-bit 4:2:0, and 16-bit RGB.
    for format in [formats(size(43, 29))[0], formats(size(43, 29))[4]] {
        let input = frame(format, 9);
        let deviations = if format.depth() > 8 { 4.0 } else { 3.0 };
        let sharp = |plane: &super::naive::Plane| {
            let blurred = blurred(plane, (1.5, 1.5), deviations);
            plane.map(|x, y| {
                let detail = plane.at(x, y) - blurred.at(x, y);
                plane.at(x, y) + 2.0 * detail.signum() * (detail.abs() - 0.03).max(0.0)
            })
        };
        let mut wanted = planes(&input);
        // Chroma is left as it is; red, green and blue are not.
        let changed = if format.depth() > 8 { 3 } else { 1 };
        wanted[..changed].iter_mut().for_each(|plane| *plane = sharp(plane));
        let output = bench.run(&bench.register("unsharp=1.5:2:0.03"), Way::Cpu, &input);
        near(&format.to_string(), &output, &wanted, BOUND);
    }
}
