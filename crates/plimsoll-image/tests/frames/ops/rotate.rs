//! `rotate`

use plimsoll_image::frames::{Chain, Format, Sampling};

use super::convert::SITINGS;
use super::flip::slopes_are_kept;
use crate::agree::{SIZES, same};
use crate::bench::{Bench, Way};
use crate::made::{formats, frame, size};

/// Every format but 4:2:2.
fn turnable(width: u32, height: u32) -> Vec<Format> {
    let mut formats = formats(size(width, height));
    formats.remove(1);
    formats
}

#[test]
fn every_way_agrees() {
    let bench = Bench::new();
    for chain in ["rotate=90", "rotate=180", "rotate=270"] {
        let workload = bench.register(chain);
        for (width, height) in SIZES {
            for format in turnable(width, height) {
                let input = frame(format, 7);
                let [cpu, twin, gpu] = [Way::Cpu, Way::Twin, Way::Gpu].map(|way| bench.run(&workload, way, &input));
                same(&format!("{chain} on {format}"), &cpu, &twin, &gpu, 0.0);
                let luma = (width * height) as usize * format.sample_bytes();
                assert_eq!(
                    cpu.bytes()[..luma],
                    gpu.bytes()[..luma],
                    "{chain} on {format}: samples are moved, not computed"
                );
            }
        }
    }
}

#[test]
fn it_is_clockwise() {
    let bench = Bench::new();
    let input = frame(turnable(3, 2)[3], 1);
    let (pixels, _) = input.bytes().as_chunks::<6>();
    let [a, b, c, d, e, f] = *pixels else { panic!("six pixels of two bytes a channel") };
    let of = |chain| bench.run(&bench.register(chain), Way::Gpu, &input);
    let turned = of("rotate=90");
    assert_eq!(turned.format().size(), size(2, 3));
    assert_eq!(turned.bytes(), [d, a, e, b, f, c].as_flattened());
    assert_eq!(of("rotate=180").bytes(), [f, e, d, c, b, a].as_flattened());
    assert_eq!(of("rotate=270").bytes(), [c, f, b, e, a, d].as_flattened());
    assert_eq!(of("rotate=90,rotate=90,rotate=180").bytes(), input.bytes());
}

#[test]
fn chroma_stays_under_its_luma() {
    let bench = Bench::new();
    for sampling in [Sampling::S420, Sampling::S444] {
        for siting in SITINGS {
            for (width, height) in [(40, 36), (41, 36), (40, 35), (41, 35)] {
                let (w, h) = (f64::from(width - 1), f64::from(height - 1));
                let kind = (sampling, siting);
                slopes_are_kept(&bench, "rotate=90", (width, height), kind, |x, y| (y, h - x));
                slopes_are_kept(&bench, "rotate=270", (width, height), kind, |x, y| (w - y, x));
            }
        }
    }
}

#[test]
fn chroma_that_would_lie_as_no_stream_has_it_is_refused() {
    let yuv422 = formats(size(8, 4))[1];
    let output = |chain: &str| chain.parse::<Chain>().expect("a chain").output(yuv422);
    assert!(output("rotate=90").expect_err("4:2:2").to_string().contains("444"));
    assert!(output("rotate=180").is_ok());
    assert!("rotate=45".parse::<Chain>().is_err());
}
