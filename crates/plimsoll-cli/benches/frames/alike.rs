//! How alike two streams are. Two programs with two bicubic kernels and two ways to blur never agree to the bit.

use plimsoll::image::frames::Frame;
use plimsoll::image::frames::stream::Y4mReader;

/// Below this they do not do the same.
const PSNR_MIN: f64 = 34.0;

/// Compares the first frames of two streams.
pub(crate) fn compare(ours: &[u8], theirs: &[u8]) -> String {
    let pairs: Vec<(Frame, Frame)> = frames(ours).zip(frames(theirs)).collect();
    assert!(pairs.len() >= 3, "there is something to compare");
    let worst = pairs.iter().map(|(a, b)| psnr(a.bytes(), b.bytes())).fold(f64::INFINITY, f64::min);
    assert!(worst >= PSNR_MIN, "the sides make different frames: {worst:.1} dB apart");
    format!("the frames of both are alike: at least {worst:.1} dB PSNR over {} frames", pairs.len())
}

fn frames(stream: &[u8]) -> impl Iterator<Item = Frame> {
    // The last frame kept is cut off.
    Y4mReader::open(stream).expect("a stream").map_while(Result::ok)
}

fn psnr(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len(), "frames of one size");
    let squares: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2)).sum();
    10.0 * (255.0_f64.powi(2) / (squares / a.len() as f64).max(1e-9)).log10()
}
