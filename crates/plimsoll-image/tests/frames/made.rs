//! Frames made up from a seed: gradients, edges and noise, black and white included.

use plimsoll_image::Size;
use plimsoll_image::frames::{Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

/// 8-bit 4:2:0, as most video is.
pub(crate) fn yuv(sampling: Sampling) -> Colour {
    Colour::Yuv(Yuv { matrix: Matrix::Bt709, range: Range::Limited, sampling, siting: Siting::Left })
}

/// One format of each kind that is stored differently.
pub(crate) fn formats(size: Size) -> Vec<Format> {
    let kinds = [
        (8, yuv(Sampling::S420)),
        (10, yuv(Sampling::S422)),
        (16, yuv(Sampling::S444)),
        (8, Colour::Rgb),
        (16, Colour::Rgb),
        (12, Colour::Mono(Range::Full)),
    ];
    kinds.map(|(depth, colour)| Format::new(size, depth, colour).expect("a format")).to_vec()
}

pub(crate) fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

/// A frame of this format; each seed another.
pub(crate) fn frame(format: Format, seed: u64) -> Frame {
    let mut noise = Noise::new(seed);
    let max = f64::from(format.code_max());
    let mut bytes = Vec::with_capacity(format.frame_bytes());
    let planes = match format.colour() {
        Colour::Rgb => vec![Size { width: format.size().width * 3, height: format.size().height }],
        _ => format.plane_sizes(),
    };
    for plane in planes {
        for y in 0..plane.height {
            for x in 0..plane.width {
                let slope = (f64::from(x) * 0.7 + f64::from(y) * 1.3 + seed as f64 * 5.0) / 97.0;
                let step = if (x / 11 + y / 7) % 2 == 0 { 0.15 } else { -0.15 };
                let value = 0.5 + 0.4 * slope.sin() + step + 0.1 * (noise.next() - 0.5);
                let value = if noise.next() < 0.01 { noise.next().round() } else { value };
                let code = (value.clamp(0.0, 1.0) * max).round() as u16;
                bytes.extend_from_slice(&code.to_le_bytes()[..format.sample_bytes()]);
            }
        }
    }
    Frame::new(format, bytes).expect("as many bytes as the format says")
}

/// Numbers from a seed.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From 0 to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// What is drawn from some.
pub(crate) fn one_of<T: Copy>(noise: &mut Noise, all: &[T]) -> T {
    all[((noise.next() * all.len() as f64) as usize).min(all.len() - 1)]
}

/// Every sample of a frame, as codes.
pub(crate) fn codes(frame: &Frame) -> Vec<u16> {
    match frame.format().sample_bytes() {
        1 => frame.bytes().iter().map(|code| u16::from(*code)).collect(),
        _ => frame.bytes().as_chunks().0.iter().map(|code| u16::from_le_bytes(*code)).collect(),
    }
}
