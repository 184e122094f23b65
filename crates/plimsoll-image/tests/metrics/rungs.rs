//! What holds for every metric; above all that a rung never changes the answer.

use plimsoll_core::TaskError;
use plimsoll_image::Image;
use plimsoll_image::metrics::{Display, Metric};

use crate::bench::{Bench, close};
use crate::footprints;
use crate::pairs::{Pair, of_every_kind, of_extremes, size};

/// Sizes for every rung: tiny, odd, and with a remainder for every tile. Lavapipe is slow, so nothing large.
const SIZES: [(u32, u32); 6] = [(1, 1), (5, 3), (8, 8), (67, 130), (257, 65), (301, 256)];
/// The first was where flat red for blue came out differently from rung to rung.
const SIZES_OF_EXTREMES: [(u32, u32); 5] = [(203, 189), (1, 1), (2, 2), (7, 3), (64, 17)];
/// Sizes for the CPU's rungs.
const SIZES_LARGE: [(u32, u32); 2] = [(2049, 1031), (640, 1500)];

macro_rules! for_every_metric {
    ($($name:ident: $metric:expr,)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn rungs_agree() {
                every_rung_agrees($metric);
            }

            #[test]
            fn rungs_agree_where_nothing_varies() {
                extremes_agree($metric);
            }

            #[test]
            fn rungs_of_the_cpu_agree_at_large_sizes() {
                rungs_of_the_cpu_agree($metric);
            }

            #[test]
            fn equal_images_are_perfect() {
                equal_images_score($metric);
            }

            #[test]
            fn every_kind_of_samples_scores_alike() {
                kinds_score_alike($metric);
            }

            #[test]
            fn kernels_hold_what_their_rung_says() {
                footprints::kernels_hold_what_their_rung_says($metric);
            }

            #[test]
            fn strips_of_a_large_image_fit_in_a_small_memory() {
                footprints::strips_of_a_large_image_fit_in_a_small_memory($metric);
            }

            #[test]
            fn a_failing_device_gives_no_score() {
                failing_devices_give_no_score($metric);
            }
        })*

        #[test]
        fn all_metrics_are_here() {
            assert_eq!([$($metric),*], Metric::ALL);
        }
    };
}

for_every_metric! {
    ssim2: Metric::Ssim2,
    butteraugli: Metric::Butteraugli,
    dssim: Metric::Dssim,
    iwssim: Metric::Iwssim,
    cvvdp: Metric::Cvvdp(Display::STANDARD),
    zensim: Metric::Zensim,
    psnr: Metric::Psnr,
    ssim: Metric::Ssim,
    ms_ssim: Metric::MsSsim,
}

fn every_rung_agrees(metric: Metric) {
    let bench = Bench::new();
    for (width, height) in SIZES {
        for pair in of_every_kind(size(width, height)) {
            compare_rungs(&bench, metric, &pair, 1.0, |_| true);
        }
    }
}

fn extremes_agree(metric: Metric) {
    let bench = Bench::new();
    for (width, height) in SIZES_OF_EXTREMES {
        for pair in of_extremes(size(width, height)) {
            compare_rungs(&bench, metric, &pair, looser(metric), |_| true);
        }
    }
}

fn rungs_of_the_cpu_agree(metric: Metric) {
    let bench = Bench::new();
    for (width, height) in SIZES_LARGE {
        for pair in of_every_kind(size(width, height)).into_iter().filter(|pair| ["noise", "blur"].contains(&pair.name))
        {
            compare_rungs(&bench, metric, &pair, 1.0, |rung| rung.starts_with("cpu"));
        }
    }
}

/// How many times its tolerance a metric needs where nothing varies: variances are then differences of large sums, and
/// what is left of them is rounding. CORRECTNESS.md has the figures.
fn looser(metric: Metric) -> f64 {
    match metric {
        Metric::Butteraugli => 10.0,
        Metric::Ssim | Metric::MsSsim | Metric::Dssim => 5.0,
        _ => 1.0,
    }
}

/// Scores a pair on each rung that `which` names; the first is what the others are compared with.
fn compare_rungs(bench: &Bench, metric: Metric, pair: &Pair, looser: f64, which: impl Fn(&str) -> bool) {
    let about = metric.about();
    let registered = bench.register(metric);
    let mut first = None;
    for &rung in about.rungs.iter().rev().filter(|rung| which(rung)) {
        let done = bench.score(&registered, rung, &pair.reference, &pair.distorted);
        let score = done.unwrap_or_else(|error| panic!("{metric} {rung} {}: {error:?}", pair.name)).output;
        let (first_rung, wanted) = *first.get_or_insert((rung, score));
        let values = [(score.value, wanted.value), (score.norm3.unwrap_or(0.0), wanted.norm3.unwrap_or(0.0))];
        for (got, wanted) in values {
            let same = close(got, wanted, looser * about.tolerance);
            let (name, size) = (pair.name, pair.reference.size());
            assert!(same, "{metric} of {name} at {size}: {got} on {rung}, {wanted} on {first_rung}");
        }
    }
}

fn equal_images_score(metric: Metric) {
    let bench = Bench::new();
    let registered = bench.register(metric);
    let about = metric.about();
    let pairs = of_every_kind(size(129, 65));
    for pair in pairs.iter().filter(|pair| ["identical", "flat"].contains(&pair.name)) {
        for &rung in about.rungs {
            let score = bench.score(&registered, rung, &pair.reference, &pair.reference).expect("it runs").output;
            assert!(close(score.value, about.perfect, 1e-6), "{metric} on {rung} gives {score:?} for equal images");
        }
    }
}

/// The same picture in eight bits, sixteen bits and linear light is the same picture.
fn kinds_score_alike(metric: Metric) {
    let bench = Bench::new();
    let registered = bench.register(metric);
    let pair = of_every_kind(size(97, 80)).remove(0);
    let kinds = [pair.distorted.clone(), in_16_bits(&pair.distorted), in_linear_light(&pair.distorted)];
    for &rung in metric.about().rungs {
        let scores = kinds.each_ref().map(|distorted| {
            bench.score(&registered, rung, &in_16_bits(&pair.reference), distorted).expect("it runs").output.value
        });
        for score in &scores {
            let alike = close(*score, scores[0], metric.about().tolerance * 10.0);
            assert!(alike, "{metric} on {rung} gives {scores:?} for 8-bit, 16-bit and linear samples of one picture");
        }
    }
}

fn in_16_bits(image: &Image) -> Image {
    let samples: Vec<u16> = image.coded_planes().iter().map(|coded| (coded * 65535.0).round() as u16).collect();
    let count = samples.len() / 3;
    let pixels: Vec<u16> = (0..count).flat_map(|at| [0, 1, 2].map(|channel| samples[channel * count + at])).collect();
    Image::rgb16(image.size(), pixels).expect("as many samples as it has")
}

fn in_linear_light(image: &Image) -> Image {
    Image::linear(image.size(), image.linear_planes()).expect("as many samples as it has")
}

/// A device that is out of memory gives an error, never a score; one that was lost gives an error or, opened anew, the
/// right score.
fn failing_devices_give_no_score(metric: Metric) {
    let pair = of_every_kind(size(64, 48)).remove(0);
    for &rung in metric.about().rungs.iter().filter(|rung| rung.starts_with("gpu")) {
        let bench = Bench::new();
        let registered = bench.register(metric);
        let right = bench.score(&registered, "cpu", &pair.reference, &pair.distorted).expect("the CPU is well").output;
        bench.gpu.lose();
        if let Ok(done) = bench.score(&registered, rung, &pair.reference, &pair.distorted) {
            assert!(close(done.output.value, right.value, metric.about().tolerance), "{metric} on {rung}: {done:?}");
        }
        // Of another size, so that no session is warm and all is allocated anew.
        let other = of_every_kind(size(80, 60)).remove(0);
        bench.gpu.injection().out_of_memory_in(1);
        let failure = bench.score(&registered, rung, &other.reference, &other.distorted).expect_err("no memory");
        assert!(matches!(failure.error, TaskError::Exhausted { .. }), "{metric} on {rung}: {failure:?}");
    }
}
