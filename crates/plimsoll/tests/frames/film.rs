//! Small films, and telling them apart.

use std::convert::Infallible;

use plimsoll::image::Size;
use plimsoll::image::frames::{Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

/// Frames of noise that no two films or frames share, 4:2:0 with odd sides.
pub(crate) fn film(count: u64) -> Vec<Frame> {
    (0..count).map(frame).collect()
}

pub(crate) fn format() -> Format {
    let yuv = Yuv { matrix: Matrix::Bt709, range: Range::Limited, sampling: Sampling::S420, siting: Siting::Left };
    Format::new(Size { width: 61, height: 45 }, 8, Colour::Yuv(yuv)).expect("a format like any other")
}

pub(crate) fn frame(number: u64) -> Frame {
    let mut rng = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let bytes = (0..format().frame_bytes()).map(|_| {
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        (rng >> 32) as u8
    });
    Frame::new(format(), bytes.collect()).expect("as many bytes as the format says")
}

/// The frames as an input that never fails.
pub(crate) fn endless_luck(frames: Vec<Frame>) -> impl Iterator<Item = Result<Frame, Infallible>> + Send + 'static {
    frames.into_iter().map(Ok)
}

/// The largest difference of two frames' codes.
pub(crate) fn difference(a: &Frame, b: &Frame) -> u8 {
    assert_eq!(a.format(), b.format());
    a.bytes().iter().zip(b.bytes()).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
}
