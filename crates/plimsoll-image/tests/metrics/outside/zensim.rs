//! Zensim beside its crate's plain call, which takes both images afresh, and beside the formula its authors publish.

use plimsoll_image::Samples;
use plimsoll_image::metrics::Metric;
use zensim::{RgbSlice, Zensim, ZensimProfile};

use crate::bench::{Bench, close};
use crate::pairs::{Pair, of_every_kind, size};

/// The prepared reference holds the very planes that the plain call makes: nothing may differ but the order of sums.
const TOLERANCE: f64 = 1e-9;

#[test]
fn equals_the_plain_call_of_its_crate() {
    let bench = Bench::new();
    let registered = bench.register(Metric::Zensim);
    for (width, height) in [(8, 8), (67, 130), (301, 256), (640, 517)] {
        for pair in of_every_kind(size(width, height)) {
            let wanted = plain_call(&pair);
            for &rung in Metric::Zensim.about().rungs {
                let score = bench.score(&registered, rung, &pair.reference, &pair.distorted).expect("it runs").output;
                let got = score.value;
                assert!(close(got, wanted, TOLERANCE), "{} at {width}x{height}: {got}, not {wanted}", pair.name);
            }
        }
    }
}

/// The score is 100 - 18 d^0.7, as the crate's documentation says of it.
#[test]
fn maps_distance_as_published() {
    let pair = of_every_kind(size(120, 90)).remove(0);
    let bench = Bench::new();
    let registered = bench.register(Metric::Zensim);
    let score = bench.score(&registered, "cpu", &pair.reference, &pair.distorted).expect("it runs").output.value;
    let distance = result_of(&pair).raw_distance();
    assert!(close(score, 100.0 - 18.0 * distance.powf(0.7), TOLERANCE), "{score} for a distance of {distance}");
}

fn plain_call(pair: &Pair) -> f64 {
    result_of(pair).score()
}

fn result_of(pair: &Pair) -> zensim::ZensimResult {
    let (Samples::Rgb8(reference), Samples::Rgb8(distorted)) = (pair.reference.samples(), pair.distorted.samples())
    else {
        panic!("made pairs are 8-bit");
    };
    let (width, height) = (pair.reference.size().width as usize, pair.reference.size().height as usize);
    let slice = |samples| RgbSlice::new(bytemuck::cast_slice(samples), width, height);
    let zensim = Zensim::new(ZensimProfile::PreviewV0_2).with_parallel(false);
    zensim.compute(&slice(reference), &slice(distorted)).expect("large enough")
}
