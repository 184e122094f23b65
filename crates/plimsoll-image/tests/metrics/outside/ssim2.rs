//! SSIMULACRA 2 beside scores of the published tool, and beside the crate that reproduces the tool to the last bit.
//!
//! The tool blurs recursively in single precision, and the rounding errors of that recursion never fade: its scores lie
//! below those of its own definition in double precision, the more so the larger or smoother the image (0.09 for the
//! noise of `pairs` at 1031 x 2049 pixels, 1.4 for its flat images). The rungs follow the definition, to 3e-4
//! (`every_term_follows_its_definition`), and are compared with the tool here where its rounding is small.

use fast_ssim2::{PixelDescriptor, PixelSlice, compute_ssimulacra2};
use plimsoll_image::metrics::Metric;
use plimsoll_image::{Image, Samples};

use crate::bench::{Bench, close};
use crate::pairs::{of_every_kind, size};

const SIDE: u32 = 64;
/// How far the tool's rounding takes its score of an image of 64 to 256 pixels a side: 3e-4 of it were seen.
const TOOL_ROUNDING: f64 = 5e-4;
/// The same where most of the image is smooth: 2.6e-3 were seen.
const TOOL_ROUNDING_SMOOTH: f64 = 4e-3;

#[test]
fn follows_the_tool() {
    let bench = Bench::new();
    let ssim2 = bench.register(Metric::Ssim2);
    let (gradient, edge) = (grey(|x| (x * 255 / (SIDE - 1)) as u8), grey(|x| if x < SIDE / 2 { 0 } else { 255 }));
    let (uniform, busy) = (grey(|_| 128), noise(999));
    // The scores that the C++ tool printed, as fast-ssim2 0.9.1 records them.
    let scored = [
        ("gradient and grey", &gradient, &uniform, -64.568_721_48, TOOL_ROUNDING),
        ("noise and grey", &noise(42), &uniform, -47.335_725_58, TOOL_ROUNDING),
        ("noise and it sharpened", &busy, &sharpened(&busy), -5.810_175_56, TOOL_ROUNDING),
        ("gradient and its blur", &gradient, &box_blurred(&gradient), 94.340_903_15, TOOL_ROUNDING_SMOOTH),
        ("edge and its blur", &edge, &box_blurred(&edge), 24.273_335_52, TOOL_ROUNDING_SMOOTH),
    ];
    for (name, reference, distorted, wanted, tolerance) in scored {
        let image = |samples: &[u8]| Image::rgb8(size(SIDE, SIDE), samples).expect("as many samples as it has");
        for &rung in Metric::Ssim2.about().rungs {
            let done = bench.score(&ssim2, rung, &image(reference), &image(distorted));
            let score = done.expect("it runs").output.value;
            assert!(close(score, wanted, tolerance), "{name} on {rung}: {score}, not {wanted}");
        }
    }
}

#[test]
fn follows_the_crate() {
    let bench = Bench::new();
    let ssim2 = bench.register(Metric::Ssim2);
    for (width, height) in [(64, 64), (131, 97), (256, 256)] {
        for pair in of_every_kind(size(width, height)).iter().filter(|pair| pair.name != "flat") {
            let wanted = score_of_the_crate(&pair.reference, &pair.distorted);
            for &rung in Metric::Ssim2.about().rungs {
                let done = bench.score(&ssim2, rung, &pair.reference, &pair.distorted);
                let score = done.expect("it runs").output.value;
                let name = pair.name;
                assert!(
                    close(score, wanted, TOOL_ROUNDING),
                    "{name} at {width}x{height} on {rung}: {score}, not {wanted}"
                );
            }
        }
    }
}

fn score_of_the_crate(reference: &Image, distorted: &Image) -> f64 {
    let (Samples::Rgb8(one), Samples::Rgb8(two)) = (reference.samples(), distorted.samples()) else {
        panic!("pairs are of 8 bits")
    };
    let size = reference.size();
    let slice = |samples| {
        PixelSlice::new(samples, size.width, size.height, size.width as usize * 3, PixelDescriptor::RGB8_SRGB)
    };
    compute_ssimulacra2(&slice(one).expect("an image"), &slice(two).expect("an image")).expect("a score")
}

/// A grey image whose columns are each of one value.
fn grey(value: impl Fn(u32) -> u8) -> Vec<u8> {
    (0..SIDE * SIDE).flat_map(|at| [value(at % SIDE); 3]).collect()
}

/// The generator that the tool's scores were taken with.
fn noise(seed: u64) -> Vec<u8> {
    let step =
        |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    let states = std::iter::successors(step(&seed), step);
    states.take((SIDE * SIDE * 3) as usize).map(|state| (state >> 33) as u8).collect()
}

/// The sample of a pixel that may lie beyond the edge, where the edge repeats.
fn sample(samples: &[u8], x: i64, y: i64, channel: usize) -> i64 {
    let [x, y] = [x, y].map(|at| at.clamp(0, i64::from(SIDE) - 1) as usize);
    i64::from(samples[(y * SIDE as usize + x) * 3 + channel])
}

fn filtered(samples: &[u8], value: impl Fn(i64, i64, usize) -> i64) -> Vec<u8> {
    let at = |at: usize| ((at / 3) as i64 % i64::from(SIDE), (at / 3) as i64 / i64::from(SIDE), at % 3);
    (0..samples.len()).map(at).map(|(x, y, channel)| value(x, y, channel).clamp(0, 255) as u8).collect()
}

/// The mean of 8 x 8, rounded down.
fn box_blurred(samples: &[u8]) -> Vec<u8> {
    let around = |x, y| (-4..4).flat_map(move |down| (-4..4).map(move |across| (x + across, y + down)));
    filtered(samples, |x, y, channel| around(x, y).map(|(x, y)| sample(samples, x, y, channel)).sum::<i64>() / 64)
}

/// Five times the middle less its four neighbours.
fn sharpened(samples: &[u8]) -> Vec<u8> {
    let neighbours = |x, y| [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)];
    filtered(samples, |x, y, channel| {
        let around = neighbours(x, y).map(|(x, y)| sample(samples, x, y, channel));
        5 * sample(samples, x, y, channel) - around.iter().sum::<i64>()
    })
}
