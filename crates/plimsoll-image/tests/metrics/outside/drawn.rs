//! Pictures made by integer arithmetic alone, which another language can make again to the last bit
//! (`values/recompute.py` does), and scores that published tools gave for them.

use plimsoll_image::metrics::Metric;
use plimsoll_image::{Image, Size};

use crate::bench::Bench;
use crate::pairs::{blocky, blurred, noisy, random, size};

/// Compares every rung of a metric with a table of values from outside.
pub(super) fn agrees_with(metric: Metric, table: &str, tolerance: f64) {
    let bench = Bench::new();
    let registered = bench.register(metric);
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("width\theight\tpair\tscore"));
    let mut worst = (0.0, String::from("the table is empty"));
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let [width, height, pair, wanted] = fields[..] else { panic!("four fields, not {line}") };
        let size = size(width.parse().expect("a width"), height.parse().expect("a height"));
        let wanted: f64 = wanted.parse().expect("a score");
        let (reference, distorted) = drawn_pair(size, pair);
        for &rung in metric.about().rungs {
            let score = bench.score(&registered, rung, &reference, &distorted).expect("it runs").output.value;
            let apart = (score - wanted).abs();
            if apart >= worst.0 {
                worst = (apart, format!("{metric} of {pair} at {size} on {rung}: {score}, not {wanted}"));
            }
        }
    }
    let (apart, what) = worst;
    assert!(apart > 0.0 && apart <= tolerance, "{what}");
}

fn drawn_pair(size: Size, pair: &str) -> (Image, Image) {
    let scene = if pair.starts_with("sheet") { sheet(size) } else { drawn(size) };
    let distorted = match pair.trim_start_matches("sheet-") {
        "noise" => noisy(&scene, 12),
        "blur" => blurred(&scene, size),
        "blocks" => blocky(&scene, size),
        "darker" => scene.iter().map(|&sample| (u16::from(sample) * 3 / 4) as u8).collect(),
        "inverted" => scene.iter().map(|sample| 255 - sample).collect(),
        other => panic!("there is no pair '{other}'"),
    };
    let image = |samples: Vec<u8>| Image::rgb8(size, samples).expect("as many samples as it has");
    (image(scene), image(distorted))
}

/// Ink on white: much of it is flat, and the rest is as steep as can be.
fn sheet(Size { width, height }: Size) -> Vec<u8> {
    let inked = |x: u32, y: u32| (x / 7 + y / 11) % 5 < 2 && x % 7 < 3 && y % 11 < 6;
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| if inked(x, y) { 30 } else { 255 }));
    pixels.flat_map(|value| [value; 3]).collect()
}

/// Gradients, a disc, fine lines, a wave and a little noise.
fn drawn(Size { width, height }: Size) -> Vec<u8> {
    let (width, height) = (i64::from(width), i64::from(height));
    let mut dice = 0x2545_f491_u32;
    let mut samples = Vec::new();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let wave = ((5 * x + 3 * y) % 64 - 32).abs() * 2 - 32;
        let disc = (8 * x - 3 * width).pow(2) + (8 * y - 3 * height).pow(2) < (2 * width.min(height)).pow(2);
        let lines = (x / 3 + y / 5) % 4 == 0 && 5 * x > 3 * width;
        let down = 60 * y / height;
        let base = [20 + 200 * x / width, 40 + 180 * y / height, 30 + 150 * (width - x) / width + down];
        for (channel, base) in base.into_iter().enumerate() {
            let painted = match (disc, lines) {
                (true, _) => [220, 90, 60][channel],
                (false, true) => base * 2 / 5,
                (false, false) => base + wave,
            };
            samples.push((painted + i64::from(random(&mut dice) % 9) - 4).clamp(0, 255) as u8);
        }
    }
    samples
}
