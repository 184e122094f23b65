//! `hue` and `saturation`, beside ffmpeg's and formulas.

use plimsoll_image::frames::{Chain, Colour, Format};

use super::ffmpeg::filtered;
use super::naive::{near, planes};
use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

#[test]
fn every_way_agrees() {
    every_way("hue=30", &SIZES, 1e-6);
    every_way("hue=-120:1.7", &SIZES[1..], 1e-6);
    every_way("saturation=0.4", &SIZES[1..], 1e-6);
}

#[test]
fn it_is_what_ffmpeg_makes_of_it() {
    let bench = Bench::new();
    let input = frame(formats(size(160, 96))[0], 7);
    for (ours, theirs) in [("hue=90", "hue=h=90"), ("hue=-30:1.5", "hue=h=-30:s=1.5"), ("saturation=0.5", "hue=s=0.5")]
    {
        let ours_out = codes(&bench.run(&bench.register(ours), Way::Cpu, &input));
        let theirs_out = codes(&filtered(theirs, &input));
        let furthest = ours_out.iter().zip(&theirs_out).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(furthest <= Some(1), "{ours}: {furthest:?} codes");
        assert_ne!(ours_out, codes(&input), "{ours}");
    }
}

#[test]
fn luma_stays_and_grey_stays_grey() {
    let bench = Bench::new();
    for format in formats(size(31, 13)) {
        let input = frame(format, 6);
        let grey = bench.run(&bench.register("saturation=0"), Way::Cpu, &input);
        let mut wanted = planes(&input);
        match format.colour() {
            Colour::Mono(_) => {}
            Colour::Yuv(_) => {
                let middle = f64::from(1_u32 << (format.depth() - 1)) / f64::from(format.code_max());
                wanted[1..].iter_mut().for_each(|plane| *plane = plane.map(|_, _| middle));
            }
            Colour::Rgb => {
                let luma = wanted[0].map(|x, y| {
                    0.2126 * wanted[0].at(x, y) + 0.7152 * wanted[1].at(x, y) + 0.0722 * wanted[2].at(x, y)
                });
                wanted = vec![luma; 3];
            }
        }
        near(&format.to_string(), &grey, &wanted, 1e-6);
        let same = bench.run(&bench.register("hue=360:1,saturation=1"), Way::Cpu, &input);
        near(&format.to_string(), &same, &planes(&input), 1e-6);
    }
}

/// A third of a turn three times is where it was, also of red, green and blue.
#[test]
fn turns_add_up() {
    let bench = Bench::new();
    let input = frame(Format::new(size(9, 9), 16, Colour::Rgb).expect("a format"), 1);
    let turned = bench.run(&bench.register("hue=120,hue=120,hue=120"), Way::Gpu, &input);
    near("three thirds", &turned, &planes(&input), 2e-6);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for wrong in ["hue", "hue=red", "hue=10:20", "saturation", "saturation=-1", "saturation=1:2"] {
        assert!(wrong.parse::<Chain>().is_err(), "{wrong}");
    }
}
