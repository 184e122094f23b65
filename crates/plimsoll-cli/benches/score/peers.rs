//! The plain call of each peer crate for one pair: what everybody writes first.

use crate::pictures::SIDE;

/// The crate and the call.
pub(crate) fn name(metric: &str) -> &'static str {
    match metric {
        "ssim2" => "fast-ssim2",
        "butteraugli" => "butteraugli",
        "dssim" => "dssim-core",
        "zensim" => "zensim",
        _ => "no peer",
    }
}

pub(crate) fn score(metric: &str, reference: &[u8], distorted: &[u8]) -> f64 {
    let side = SIDE as usize;
    match metric {
        "ssim2" => ssim2(reference, distorted),
        "butteraugli" => {
            let params = butteraugli::ButteraugliParams::default();
            let [a, b] = [reference, distorted].map(|samples| butteraugli::Img::new(pixels(samples), side, side));
            butteraugli::butteraugli(a.as_ref(), b.as_ref(), &params).expect("it compares").score
        }
        "dssim" => {
            let dssim = dssim_core::Dssim::new();
            let image = |samples| dssim.create_image_rgb(&pixels(samples), side, side).expect("it converts");
            dssim.compare(&image(reference), image(distorted)).0.into()
        }
        "zensim" => zensim(reference, distorted),
        other => panic!("there is no peer for {other}"),
    }
}

fn ssim2(reference: &[u8], distorted: &[u8]) -> f64 {
    let view = |samples| {
        let descriptor = fast_ssim2::PixelDescriptor::RGB8_SRGB;
        fast_ssim2::PixelSlice::new(samples, SIDE, SIDE, SIDE as usize * 3, descriptor).expect("an image")
    };
    fast_ssim2::compute_ssimulacra2(&view(reference), &view(distorted)).expect("it compares")
}

fn zensim(reference: &[u8], distorted: &[u8]) -> f64 {
    let side = SIDE as usize;
    let [a, b] = [reference, distorted].map(|samples| zensim::RgbSlice::new(samples.as_chunks::<3>().0, side, side));
    zensim::Zensim::new(zensim::ZensimProfile::latest()).compute(&a, &b).expect("it compares").score()
}

/// The pixel type that the crates have in common. Copying three megabytes is nothing beside comparing them.
fn pixels(samples: &[u8]) -> Vec<rgb::RGB8> {
    samples.as_chunks::<3>().0.iter().map(|&[r, g, b]| rgb::RGB8 { r, g, b }).collect()
}
