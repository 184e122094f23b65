//! Frames made up from a seed, and formats of every kind.

use plimsoll_image::Size;
use plimsoll_image::frames::stream::{StreamHeader, Y4mReader, Y4mWriter};
use plimsoll_image::frames::{Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

/// Nothing divides by two.
pub(crate) const ODD: Size = Size { width: 7, height: 5 };

/// xorshift64*: the same on every machine.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }
}

pub(crate) fn yuv(sampling: Sampling, siting: Siting, range: Range) -> Colour {
    Colour::Yuv(Yuv { matrix: Matrix::Bt601, range, sampling, siting })
}

pub(crate) fn format(depth: u8, colour: Colour) -> Format {
    Format::new(ODD, depth, colour).expect("a format")
}

/// Codes of the format's depth, evenly spread.
pub(crate) fn frame(format: Format, seed: u64) -> Frame {
    let mut dice = Dice::new(seed);
    let samples = format.frame_bytes() / format.sample_bytes();
    let codes = (0..samples).map(|_| dice.below(usize::from(format.code_max()) + 1) as u16);
    let bytes = codes.flat_map(|code| code.to_le_bytes().into_iter().take(format.sample_bytes())).collect();
    Frame::new(format, bytes).expect("as many bytes as the format says")
}

pub(crate) fn frames(format: Format, count: u64) -> Vec<Frame> {
    (0..count).map(|seed| frame(format, seed)).collect()
}

/// A stream of these frames.
pub(crate) fn y4m(header: StreamHeader, frames: &[Frame]) -> Vec<u8> {
    let mut writer = Y4mWriter::new(Vec::new(), header).expect("a header");
    frames.iter().for_each(|frame| writer.write(frame).expect("room"));
    writer.finish().expect("room")
}

/// The header and all frames of a stream without fault.
pub(crate) fn read(stream: &[u8]) -> (StreamHeader, Vec<Frame>) {
    let reader = Y4mReader::open(stream).expect("a header");
    (*reader.header(), reader.map(|frame| frame.expect("a frame")).collect())
}
