//! ColorVideoVDP beside its authors' tool, on several displays, and beside another's port of it on all of them.

use colorvideovdp::{Color, Cvvdp, DisplayModel, Options};
use plimsoll_image::Image;
use plimsoll_image::metrics::{Display, Metric};

use crate::bench::Bench;
use crate::pairs::{Pair, of_every_kind, size};

/// JOD values of the authors' tool; the file says of which version and call.
const VALUES: &str = include_str!("values/cvvdp.tsv");

/// In JOD. The values have five digits after the point and come from sums in single precision; ours were at most 0.000007
/// from them. A wrong edge, exponent or table shows in the second or third digit.
const TOLERANCE: f64 = 5e-5;

/// Pixels of a pair that every rung computes. Of larger ones GPUs get the noisy only, and none four times as large,
/// because software ones are slow.
const GPU_PIXELS_MAX: u64 = 20_000;

struct Value {
    display: Display,
    width: u32,
    height: u32,
    pair: &'static str,
    jod: f64,
}

fn values() -> impl Iterator<Item = Value> {
    VALUES.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [display, size, pair, jod] = fields[..] else { panic!("four fields in '{line}'") };
        let (width, height) = size.split_once('x').expect("two sides");
        Value {
            display: display.parse().expect("a display"),
            width: width.parse().expect("a number"),
            height: height.parse().expect("a number"),
            pair,
            jod: jod.parse().expect("a number"),
        }
    })
}

#[test]
fn agrees_with_the_authors_tool() {
    let bench = Bench::new();
    let mut worst: f64 = 0.0;
    for Value { display, width, height, pair, jod } in values() {
        let metric = Metric::Cvvdp(display);
        let registered = bench.register(metric);
        let pairs = of_every_kind(size(width, height));
        let found = pairs.iter().find(|made| made.name == pair).expect("a made pair");
        for &rung in metric.about().rungs {
            let most = if pair == "noise" { 4 * GPU_PIXELS_MAX } else { GPU_PIXELS_MAX };
            if rung.starts_with("gpu") && found.reference.size().pixels() > most {
                continue;
            }
            let done = bench.score(&registered, rung, &found.reference, &found.distorted).expect("it runs");
            let score = done.output.value;
            worst = worst.max((score - jod).abs());
            assert!((score - jod).abs() < TOLERANCE, "{display} {pair} {width}x{height} {rung}: {score}, not {jod}");
        }
    }
    println!("at most {worst:.6} JOD apart");
}

/// Linear light above white is brighter on a display of high range, and cut off on others.
#[test]
fn light_above_white_shows_on_displays_of_high_range_only() {
    let bench = Bench::new();
    let size = size(64, 64);
    let bars = |bright: f32| {
        let row = (0..64).map(move |x| if x / 8 % 2 == 0 { 0.2 } else { bright });
        let plane: Vec<f32> = (0..64).flat_map(|_| row.clone()).collect();
        Image::linear(size, plane.repeat(3)).expect("as many samples as it has")
    };
    let score = |display: &str| {
        let registered = bench.register(Metric::Cvvdp(display.parse().expect("a display")));
        bench.score(&registered, "cpu", &bars(1.0), &bars(3.0)).expect("it runs").output.value
    };
    assert_eq!(score("standard_4k"), 10.0);
    assert!(score("standard_hdr_pq") < 9.0);
}

/// Displays, levels and light of the whole list, beside the crate `colorvideovdp`, which has the authors' list inside.
#[test]
fn agrees_with_another_port_on_every_display() {
    let bench = Bench::new();
    let pair = of_every_kind(size(150, 121)).remove(2);
    for display in Display::ALL {
        let registered = bench.register(Metric::Cvvdp(display));
        let score = bench.score(&registered, "cpu", &pair.reference, &pair.distorted).expect("it runs").output.value;
        let wanted = ported(display, &pair);
        assert!((score - wanted).abs() < TOLERANCE, "{display}: {score}, not {wanted}");
    }
}

/// The port's score. On displays of high range it is given the light itself, as such images are meant to be seen there.
fn ported(display: Display, pair: &Pair) -> f64 {
    let mut model = DisplayModel::from_name(display.name()).expect("in its list");
    let white = (model.color_space != "sRGB").then_some(203.0);
    model.color_space = if white.is_some() { "BT.709-linear" } else { "sRGB" }.to_owned();
    let image = |image: &Image| {
        let planes = match white {
            Some(white) => image.linear_planes().iter().map(|light| light * white).collect(),
            None => image.coded_planes(),
        };
        let count = planes.len() / 3;
        let samples = (0..count).flat_map(|at| [0, 1, 2].map(|channel| planes[channel * count + at])).collect();
        let (width, height) = (image.size().width as usize, image.size().height as usize);
        colorvideovdp::Image::new(width, height, 3, samples).expect("large enough")
    };
    let metric = Cvvdp::new(model, Options::default()).expect("a display");
    let prediction = metric.predict_image(&image(&pair.distorted), &image(&pair.reference), Color::Display);
    f64::from(prediction.expect("it runs").jod)
}
