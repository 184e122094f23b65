//! `fit`, and the sums in sizes and places.

use plimsoll_image::frames::{Chain, Colour, Format, Frame, Sampling};

use crate::agree::every_way;
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size, yuv};

#[test]
fn every_way_agrees() {
    every_way("fit=40x30", &[(64, 48), (33, 17), (7, 5), (1, 1)], 2e-6);
    every_way("fit=31:47:cover:lanczos", &[(64, 48), (33, 17), (7, 5)], 2e-6);
    every_way("fit=40x30:ff8000", &[(33, 17)], 2e-6);
}

fn after(chain: &str, (width, height): (u32, u32), colour: Colour) -> Result<(u32, u32), String> {
    let format = Format::new(size(width, height), 8, colour).expect("a format");
    let chain: Chain = chain.parse().map_err(|error: plimsoll_image::frames::ChainError| error.to_string())?;
    let size = chain.output(format).map_err(|error| error.to_string())?.size();
    Ok((size.width, size.height))
}

#[test]
fn shapes_are_kept() {
    let of = |chain: &str, sides| after(chain, sides, yuv(Sampling::S420)).expect("it can be done");
    assert_eq!(of("fit=1280x720", (1440, 1080)), (1280, 720));
    assert_eq!(of("fit=1280x720:inside", (1440, 1080)), (960, 720));
    assert_eq!(of("fit=1280x720:inside", (1920, 800)), (1280, 534));
    assert_eq!(of("fit=1280:720:cover", (1440, 1080)), (1280, 720));
    assert_eq!(of("fit=iw/2:iw/2:inside", (1920, 1080)), (960, 540));
    assert_eq!(after("fit=100x100:inside", (3, 2), Colour::Rgb), Ok((100, 67)));
    assert!(after("fit=100x100+1+1", (3, 2), Colour::Rgb).is_err());
    assert!(after("fit=100x100:inside:black", (3, 2), Colour::Rgb).is_err());
    assert!(after("fit=100x100:sideways", (3, 2), Colour::Rgb).is_err());
}

/// Bars above and below, or left and right, and the picture between them as `scale` makes it.
#[test]
fn a_letterbox_is_a_scaled_picture_between_bars() {
    let bench = Bench::new();
    for format in formats(size(40, 20)) {
        let input = frame(format, 3);
        for (fit, by_hand) in [
            ("fit=60x60:grey", "scale=60x30,pad=60x60+0+14:grey"),
            ("fit=100x20:bilinear", "pad=100x20+30+0:black"),
            ("fit=20x20:cover:area", "crop=20x20+10+0"),
        ] {
            let [fit, by_hand] = [fit, by_hand].map(|chain| bench.run(&bench.register(chain), Way::Cpu, &input));
            assert!(fit == by_hand, "{format}");
        }
    }
}

#[test]
fn sums_say_what_they_say() {
    let bench = Bench::new();
    let input = frame(Format::new(size(41, 31), 8, Colour::Rgb).expect("a format"), 5);
    for (sums, numbers) in [
        ("crop=iw/2:ih-10", "crop=20x21"),
        ("crop=w=10:h=8:x=iw-ow:y=oh", "crop=10x8+31+8"),
        ("pad=iw*2:max(ih,iw):(ow-iw)/2:(oh-ih)/2:white", "pad=82x41+20+5:white"),
        ("scale=iw/2:-2:flags=lanczos", "scale=20x16:lanczos"),
        ("scale=min(30,iw):ih", "scale=30x31"),
    ] {
        let [sums, numbers] = [sums, numbers].map(|chain| bench.run(&bench.register(chain), Way::Cpu, &input));
        assert!(sums == numbers, "{}", numbers.format());
    }
    // Worked out, a place suits the chroma samples; written, it is meant.
    let coarse = yuv(Sampling::S420);
    assert_eq!(after("crop=10:10:iw/2:0", (42, 30), coarse), Ok((10, 10)));
    assert!(after("crop=10:10:21:0", (42, 30), coarse).is_err_and(|error| error.contains("chroma")));
    assert!(after("crop=10:10:-1:0", (42, 30), coarse).is_err());
    assert!(after("crop=iw/0:10", (42, 30), coarse).is_err());
}

/// A slope keeps its mean where codes are too few for it, and what is a code stays.
#[test]
fn dithering_keeps_the_mean() {
    let bench = Bench::new();
    let format = Format::new(size(64, 64), 16, Colour::Rgb).expect("a format");
    for level in [30_000_u16, 30_050, 30_100, 30_199, 257 * 7] {
        let bytes = std::iter::repeat_n(level, 64 * 64 * 3).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let flat = Frame::new(format, bytes).expect("a frame");
        for way in [Way::Cpu, Way::Gpu] {
            let out = codes(&bench.run(&bench.register("depth=8:dither"), way, &flat));
            let mean = out.iter().map(|code| f64::from(*code)).sum::<f64>() / out.len() as f64;
            let wanted = f64::from(level) / 257.0;
            assert!((mean - wanted).abs() < 1.0 / 64.0, "{level}: {mean}, not {wanted}");
            assert!(out.iter().all(|code| (f64::from(*code) - wanted).abs() < 1.0), "{level}: codes beside it only");
            let plain = codes(&bench.run(&bench.register("depth=8"), way, &flat));
            assert!(plain.iter().all(|code| f64::from(*code) == wanted.round()), "{level}");
        }
    }
    // Codes stay codes, however often.
    for format in formats(size(17, 9)) {
        let input = frame(format, 2);
        let chain = format!("depth={0}:dither,depth={0}:dither", format.depth());
        assert!(bench.run(&bench.register(&chain), Way::Cpu, &input) == input, "{format}");
    }
    every_way("depth=8:dither", &[(64, 48), (33, 17), (7, 5), (1, 1)], 0.0);
    every_way("depth=10:dither", &[(33, 17)], 0.0);
    assert!("depth=8:noise".parse::<Chain>().is_err());
}
