//! DSSIM beside the crate dssim-core, whose scores are those of the tool.

use dssim_core::Dssim;
use plimsoll_image::metrics::Metric;
use plimsoll_image::{Image, Samples};

use crate::bench::Bench;
use crate::pairs::{of_every_kind, size};

const SIZES: [(u32, u32); 7] = [(1, 1), (1, 9), (5, 3), (8, 8), (67, 130), (257, 65), (301, 256)];

#[test]
fn follows_dssim_core() {
    let bench = Bench::new();
    let dssim = bench.register(Metric::Dssim);
    for (width, height) in SIZES {
        for pair in of_every_kind(size(width, height)) {
            let wanted = score(&pair.reference, &pair.distorted);
            for &rung in Metric::Dssim.about().rungs {
                let got = bench.score(&dssim, rung, &pair.reference, &pair.distorted).expect("it runs").output.value;
                println!(
                    "{width}x{height} {} {rung} {got} {wanted} abs {:e} rel {:e}",
                    pair.name,
                    got - wanted,
                    (got - wanted) / wanted
                );
            }
        }
    }
}

/// The score of dssim-core.
fn score(reference: &Image, distorted: &Image) -> f64 {
    let dssim = Dssim::new();
    let image = |image: &Image| {
        let Samples::Rgb8(samples) = image.samples() else { panic!("the pairs are of 8-bit samples") };
        let (pixels, _) = samples.as_chunks::<3>();
        let pixels: Vec<_> = pixels.iter().map(|&pixel| pixel.into()).collect();
        dssim.create_image_rgb(&pixels, image.size().width as usize, image.size().height as usize).expect("not empty")
    };
    let (score, _) = dssim.compare(&image(reference), image(distorted));
    score.into()
}
