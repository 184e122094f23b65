//! The calls of each peer crate: for one pair, which is what everybody writes first, and for many variants of one reference,
//! which the crate prepares once as we do.

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

/// Compares a variant with the reference that it holds.
pub(crate) type Compare = Box<dyn Fn(&[u8]) -> f64 + Sync>;

/// What compares variants with this reference, which its crate has prepared.
pub(crate) fn prepared(metric: &str, reference: &[u8]) -> Compare {
    let side = SIDE as usize;
    match metric {
        "ssim2" => {
            let reference = fast_ssim2::Ssimulacra2Reference::new(&slice(reference)).expect("it prepares");
            Box::new(move |distorted| reference.compare(&slice(distorted)).expect("it compares"))
        }
        "butteraugli" => {
            let params = butteraugli::ButteraugliParams::default();
            let reference = butteraugli::ButteraugliReference::new(reference, side, side, params).expect("it prepares");
            Box::new(move |distorted| reference.compare(distorted).expect("it compares").score)
        }
        "dssim" => {
            let dssim = dssim_core::Dssim::new();
            let reference = dssim.create_image_rgb(&pixels(reference), side, side).expect("it converts");
            Box::new(move |distorted| {
                let distorted = dssim.create_image_rgb(&pixels(distorted), side, side).expect("it converts");
                dssim.compare(&reference, distorted).0.into()
            })
        }
        "zensim" => {
            let zensim = zensim::Zensim::new(zensim::ZensimProfile::latest());
            let reference = zensim.precompute_reference(&rows(reference)).expect("it prepares");
            Box::new(move |distorted| {
                zensim.compute_with_ref(&reference, &rows(distorted)).expect("it compares").score()
            })
        }
        other => panic!("there is no peer for {other}"),
    }
}

fn ssim2(reference: &[u8], distorted: &[u8]) -> f64 {
    fast_ssim2::compute_ssimulacra2(&slice(reference), &slice(distorted)).expect("it compares")
}

fn zensim(reference: &[u8], distorted: &[u8]) -> f64 {
    let zensim = zensim::Zensim::new(zensim::ZensimProfile::latest());
    zensim.compute(&rows(reference), &rows(distorted)).expect("it compares").score()
}

fn slice(samples: &[u8]) -> fast_ssim2::PixelSlice<'_> {
    let descriptor = fast_ssim2::PixelDescriptor::RGB8_SRGB;
    fast_ssim2::PixelSlice::new(samples, SIDE, SIDE, SIDE as usize * 3, descriptor).expect("an image")
}

fn rows(samples: &[u8]) -> zensim::RgbSlice<'_> {
    zensim::RgbSlice::new(samples.as_chunks::<3>().0, SIDE as usize, SIDE as usize)
}

/// The pixel type that the crates have in common. Copying three megabytes is nothing beside comparing them.
fn pixels(samples: &[u8]) -> Vec<rgb::RGB8> {
    samples.as_chunks::<3>().0.iter().map(|&[r, g, b]| rgb::RGB8 { r, g, b }).collect()
}
