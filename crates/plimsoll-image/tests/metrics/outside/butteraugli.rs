//! Butteraugli beside the crate of that name, called plainly, and beside libjxl's own tool.

use butteraugli::{ButteraugliParams, Img, RGB8};
use plimsoll_image::metrics::{HeatMapError, Metric, Score, SizesDifferError, heat_map};
use plimsoll_image::{Image, Samples};

use crate::bench::{Bench, close};
use crate::pairs::{of_every_kind, size};

/// The kernels compute in floats like the crate, in another order. Flat pictures show it most: their score comes from the
/// small difference of large sums. The largest deviation over these pairs is 2.7e-5 of the score.
const TOLERANCE: f64 = 1e-4;

/// Scores of `butteraugli_main` of libjxl (commit d2c7032e0ddb5e5590852292ed635b9bc7ab1e12, 80 nits), as the crate
/// butteraugli 0.9.3 lists them in `reference_data.rs`: the name of the pair, its size, the score.
const LIBJXL: [(&str, u32, u32, f64); 10] = [
    ("uniform_gray_128_shift_10", 9, 9, 15.767_091_751_1),
    ("uniform_gray_128_shift_10", 47, 33, 21.285_814_285_3),
    ("uniform_blue_shift_20", 64, 64, 12.352_768_898),
    ("gradient_h_shift_15", 128, 96, 30.574_144_363_4),
    ("gradient_v_shift_15", 47, 33, 15.385_998_725_9),
    ("checkerboard_vs_inverse_1px", 47, 33, 8.568_323_135_4),
    ("checkerboard_vs_inverse_2px", 128, 96, 9.884_140_014_6),
    ("checkerboard_vs_inverse_8px", 64, 64, 74.818_046_569_8),
    ("edge_v_shift_10", 128, 96, 16.807_056_427),
    ("edge_v_shift_10", 47, 33, 11.228_735_923_8),
];

/// Libjxl adds in another order still. The largest deviation is 3.1e-5 of the score, and the crate's own is 1.9e-5.
const TOLERANCE_LIBJXL: f64 = 1e-4;

#[test]
fn follows_the_crate() {
    let bench = Bench::new();
    let metric = bench.register(Metric::Butteraugli);
    for (width, height) in [(8, 8), (14, 20), (15, 15), (97, 64), (200, 333)] {
        for pair in of_every_kind(size(width, height)) {
            let wanted = by_the_crate(&pair.reference, &pair.distorted);
            for &rung in Metric::Butteraugli.about().rungs {
                let got = bench.score(&metric, rung, &pair.reference, &pair.distorted).expect("it runs").output;
                let norms = [(got.value, wanted.value), (got.norm3.expect("it has one"), wanted.norm3.unwrap_or(0.0))];
                for (got, wanted) in norms {
                    let name = pair.name;
                    let same = close(got, wanted, TOLERANCE);
                    assert!(same, "{name} at {width}x{height} on {rung}: {got}, not {wanted}");
                }
            }
        }
    }
}

#[test]
fn follows_libjxl() {
    let bench = Bench::new();
    let metric = bench.register(Metric::Butteraugli);
    for (name, width, height, wanted) in LIBJXL {
        let [reference, distorted] = named_pair(name, width, height);
        for &rung in Metric::Butteraugli.about().rungs {
            let got = bench.score(&metric, rung, &reference, &distorted).expect("it runs").output.value;
            let same = close(got, wanted, TOLERANCE_LIBJXL);
            assert!(same, "{name} at {width}x{height} on {rung}: {got}, not {wanted}");
        }
    }
}

#[test]
fn strips_see_every_row_once() {
    let bench = Bench::new();
    let metric = bench.register(Metric::Butteraugli);
    // Three bands of 256 rows and one of 11; a single pixel differs, beside a seam or at an edge.
    let (width, height) = (24, 779);
    let grey = vec![128_u8; (width * height * 3) as usize];
    let reference = Image::rgb8(size(width, height), &grey[..]).expect("as many samples as it has");
    for y in [0, 255, 256, 511, 512, 768, 778] {
        let mut samples = grey.clone();
        samples[((y * width + 11) * 3) as usize] = 255;
        let distorted = Image::rgb8(size(width, height), samples).expect("as many samples as it has");
        let wanted = by_the_crate(&reference, &distorted);
        let got = bench.score(&metric, "cpu-strip", &reference, &distorted).expect("it runs").output;
        assert!(close(got.value, wanted.value, TOLERANCE), "row {y}: {got:?}, not {wanted:?}");
        let [got, wanted] = [got, wanted].map(|score| score.norm3.unwrap_or(0.0));
        assert!(close(got, wanted, TOLERANCE), "row {y}: {got}, not {wanted}");
    }
}

#[test]
fn a_heat_map_shows_what_the_score_sees() {
    let bench = Bench::new();
    let metric = bench.register(Metric::Butteraugli);
    for (width, height) in [(3, 5), (40, 30), (97, 64)] {
        let pair = of_every_kind(size(width, height)).remove(0);
        let map = heat_map(&pair.reference, &pair.distorted).expect("of one size");
        assert_eq!((map.width, map.height, map.distances.len()), (width, height, (width * height) as usize));
        // What lies beyond a small image's edges counts for its score, and is not shown.
        if width >= 8 {
            let score = bench.score(&metric, "cpu", &pair.reference, &pair.distorted).expect("it runs").output.value;
            let largest = map.distances.iter().copied().fold(0.0, f32::max);
            assert!(close(f64::from(largest), score, 1e-6), "{width}x{height}: {largest} shown, {score} scored");
        }
        let same = heat_map(&pair.reference, &pair.reference).expect("of one size");
        assert!(same.distances.iter().all(|&distance| distance == 0.0));
    }
    let [a, b] = [size(9, 9), size(9, 10)].map(|size| of_every_kind(size).remove(0).reference);
    let differ = SizesDifferError { reference: size(9, 9), distorted: size(9, 10) };
    assert_eq!(heat_map(&a, &b), Err(HeatMapError::SizesDiffer(differ)));
}

fn by_the_crate(reference: &Image, distorted: &Image) -> Score {
    let [a, b] = [reference, distorted].map(|image| {
        let Samples::Rgb8(samples) = image.samples() else { panic!("pairs have eight bits") };
        let pixels: Vec<RGB8> = samples.chunks_exact(3).map(|pixel| RGB8::new(pixel[0], pixel[1], pixel[2])).collect();
        Img::new(pixels, image.size().width as usize, image.size().height as usize)
    });
    let result = butteraugli::butteraugli(a.as_ref(), b.as_ref(), &ButteraugliParams::default()).expect("large enough");
    Score { value: result.score, norm3: Some(result.pnorm_3) }
}

/// The pairs of the crate's list, made anew from what their names say.
fn named_pair(name: &str, width: u32, height: u32) -> [Image; 2] {
    let image = |pixel: &dyn Fn(u32, u32) -> [u8; 3]| {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let samples: Vec<u8> = pixels.flat_map(|(x, y)| pixel(x, y)).collect();
        Image::rgb8(size(width, height), samples).expect("as many samples as it has")
    };
    let both = |value: &dyn Fn(u32, u32) -> u8, shift: u8| {
        [image(&|x, y| [value(x, y); 3]), image(&|x, y| [value(x, y).saturating_add(shift); 3])]
    };
    let board = |square: u32, odd: u32| image(&|x, y| [if (x / square + y / square) % 2 == odd { 200 } else { 50 }; 3]);
    match name {
        "uniform_gray_128_shift_10" => both(&|_, _| 128, 10),
        "uniform_blue_shift_20" => [image(&|_, _| [64, 64, 128]), image(&|_, _| [64, 64, 148])],
        "gradient_h_shift_15" => both(&|x, _| (x * 255 / (width - 1)) as u8, 15),
        "gradient_v_shift_15" => both(&|_, y| (y * 255 / (height - 1)) as u8, 15),
        "checkerboard_vs_inverse_1px" => [board(1, 0), board(1, 1)],
        "checkerboard_vs_inverse_2px" => [board(2, 0), board(2, 1)],
        "checkerboard_vs_inverse_8px" => [board(8, 0), board(8, 1)],
        "edge_v_shift_10" => both(&|x, _| if x < width / 2 { 50 } else { 200 }, 10),
        _ => panic!("no pair is called {name}"),
    }
}
