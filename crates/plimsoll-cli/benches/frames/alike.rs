//! How alike two streams are. Two programs with two bicubic kernels and two ways to blur never agree to the bit.

use plimsoll::image::frames::Frame;
use plimsoll::image::frames::stream::Y4mReader;

/// Frames that must be there to be compared: what is kept of a stream holds so many of the largest.
const FRAMES_MIN: usize = 2;
/// What equal frames have.
const PSNR_MAX: f64 = 100.0;

/// The PSNR of the worst of the first frames of two streams; of their luma alone, if asked.
pub(crate) fn worst_psnr(ours: &[u8], theirs: &[u8], luma_only: bool) -> f64 {
    let pairs: Vec<(Frame, Frame)> = frames(ours).zip(frames(theirs)).collect();
    assert!(pairs.len() >= FRAMES_MIN, "there is something to compare");
    pairs.iter().map(|(a, b)| psnr(a, b, luma_only)).fold(PSNR_MAX, f64::min)
}

fn frames(stream: &[u8]) -> impl Iterator<Item = Frame> {
    // The last frame kept is cut off.
    Y4mReader::open(stream).expect("a stream").map_while(Result::ok)
}

fn psnr(a: &Frame, b: &Frame, luma_only: bool) -> f64 {
    assert_eq!((a.format().size(), a.format().depth()), (b.format().size(), b.format().depth()), "frames of one kind");
    let luma = a.format().size().pixels() as usize;
    let count = if luma_only { luma } else { usize::MAX };
    let squares: Vec<f64> = codes(a).zip(codes(b)).take(count).map(|(a, b)| f64::from(a.abs_diff(b)).powi(2)).collect();
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    (10.0 * (f64::from(a.format().code_max()).powi(2) / mean).log10()).min(PSNR_MAX)
}

fn codes(frame: &Frame) -> impl Iterator<Item = u16> {
    let step = frame.format().sample_bytes();
    frame.bytes().chunks_exact(step).map(|code| u16::from(code[0]) | u16::from(*code.get(1).unwrap_or(&0)) << 8)
}
