//! Raw frames as other programs lay them out: planes in another order, chroma in pairs, pixels with a fourth sample.
//! Never converts a sample: what comes in and goes out are the same codes in other places.
//! Invariant: what was laid out for a stream and read from it again is the same frame.

use super::pixel_format::{ParsePixelFormatError, pixel_format};
use crate::frames::format::{Colour, Format};
use crate::image::Size;

/// What the samples of raw frames stand for, and where each lies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RawFormat {
    format: Format,
    layout: Layout,
}

/// Where samples lie.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Layout {
    /// As in a [`Frame`](crate::frames::Frame).
    AsFrame,
    /// The luma plane, then pairs of chroma samples: U before V, or after it.
    ChromaPairs { v_first: bool },
    /// Pixel by pixel, `step` samples each: where red, green and blue are among them, and alpha, which frames do not have.
    Pixels { rgb: [usize; 3], step: usize, alpha: Option<usize> },
    /// The planes of green, blue and red.
    PlanesGbr,
}

impl From<Format> for RawFormat {
    fn from(format: Format) -> Self {
        Self { format, layout: Layout::AsFrame }
    }
}

impl RawFormat {
    /// The format that ffmpeg calls by this name: those of [`pixel_format`], and `nv12`, `nv21`, `bgr24`, `rgba`, `bgra`,
    /// `argb`, `abgr`, `rgb0`, `bgr0`, `rgba64le`, `bgra64le`, `gbrp` and `gbrp10le` to `gbrp16le`.
    ///
    /// # Errors
    /// [`ParsePixelFormatError`].
    pub fn named(name: &str, size: Size) -> Result<Self, ParsePixelFormatError> {
        let pixels = |rgb, step, alpha| Layout::Pixels { rgb, step, alpha };
        let (plain, layout) = match name {
            "nv12" => ("yuv420p", Layout::ChromaPairs { v_first: false }),
            "nv21" => ("yuv420p", Layout::ChromaPairs { v_first: true }),
            "bgr24" => ("rgb24", pixels([2, 1, 0], 3, None)),
            "rgba" | "rgb0" => ("rgb24", pixels([0, 1, 2], 4, Some(3))),
            "bgra" | "bgr0" => ("rgb24", pixels([2, 1, 0], 4, Some(3))),
            "argb" | "0rgb" => ("rgb24", pixels([1, 2, 3], 4, Some(0))),
            "abgr" | "0bgr" => ("rgb24", pixels([3, 2, 1], 4, Some(0))),
            "rgba64le" => ("rgb48le", pixels([0, 1, 2], 4, Some(3))),
            "bgra64le" => ("rgb48le", pixels([2, 1, 0], 4, Some(3))),
            "gbrp" => ("rgb24", Layout::PlanesGbr),
            _ => return Self::planes_gbr(name, size).map_or_else(|| Ok(pixel_format(name, size)?.into()), Ok),
        };
        Ok(Self { format: pixel_format(plain, size)?, layout })
    }

    /// `gbrp10le` and the like.
    fn planes_gbr(name: &str, size: Size) -> Option<Self> {
        let depth = (9..=16).find(|depth| name == format!("gbrp{depth}le"))?;
        Some(Self { format: Format::new(size, depth, Colour::Rgb).ok()?, layout: Layout::PlanesGbr })
    }

    /// What the samples stand for.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The same layout of frames of another size, depth and colour, if it holds them.
    pub fn of(self, format: Format) -> Option<Self> {
        let holds = match self.layout {
            Layout::AsFrame => true,
            Layout::ChromaPairs { .. } | Layout::Pixels { .. } | Layout::PlanesGbr => {
                self.format.with_size(format.size()).is_ok_and(|own| {
                    own.depth() == format.depth() && own.frame_bytes() == format.frame_bytes() && own.is_like(&format)
                })
            }
        };
        holds.then_some(Self { format, ..self })
    }

    /// Whether each pixel has a fourth sample, which is passed over when it is read and written as opaque.
    pub fn has_alpha(&self) -> bool {
        matches!(self.layout, Layout::Pixels { alpha: Some(_), .. })
    }

    /// Bytes of a frame in the stream.
    pub fn stream_bytes(&self) -> usize {
        match self.layout {
            Layout::Pixels { step, .. } => self.format.frame_bytes() / 3 * step,
            Layout::AsFrame | Layout::ChromaPairs { .. } | Layout::PlanesGbr => self.format.frame_bytes(),
        }
    }

    /// The bytes of a frame from those of a stream.
    pub(super) fn gathered(&self, bytes: Vec<u8>) -> Vec<u8> {
        if self.layout == Layout::AsFrame {
            return bytes;
        }
        let mut frame = vec![0; self.format.frame_bytes()];
        let same = self.bytes_in_place();
        frame[..same].copy_from_slice(&bytes[..same]);
        match self.format.sample_bytes() {
            1 => self.each_sample(|in_frame, in_stream| move_sample::<1>(&bytes, in_stream, &mut frame, in_frame)),
            _ => self.each_sample(|in_frame, in_stream| move_sample::<2>(&bytes, in_stream, &mut frame, in_frame)),
        }
        frame
    }

    /// The bytes for a stream from those of a frame; `None` if they are the same.
    pub(super) fn laid_out(&self, frame: &[u8]) -> Option<Vec<u8>> {
        if self.layout == Layout::AsFrame {
            return None;
        }
        // Whatever is not written below is alpha: opaque.
        let mut bytes = vec![0xff; self.stream_bytes()];
        let same = self.bytes_in_place();
        bytes[..same].copy_from_slice(&frame[..same]);
        match self.format.sample_bytes() {
            1 => self.each_sample(|in_frame, in_stream| move_sample::<1>(frame, in_frame, &mut bytes, in_stream)),
            _ => self.each_sample(|in_frame, in_stream| move_sample::<2>(frame, in_frame, &mut bytes, in_stream)),
        }
        Some(bytes)
    }

    /// Bytes at the start that lie in the same place.
    fn bytes_in_place(&self) -> usize {
        match self.layout {
            Layout::AsFrame => self.format.frame_bytes(),
            Layout::ChromaPairs { .. } => self.luma_samples() * self.format.sample_bytes(),
            Layout::Pixels { .. } | Layout::PlanesGbr => 0,
        }
    }

    fn luma_samples(&self) -> usize {
        self.format.size().pixels() as usize
    }

    /// Calls with the place of every other sample, in the frame and in the stream.
    fn each_sample(&self, mut sample: impl FnMut(usize, usize)) {
        let pixels = self.luma_samples();
        match self.layout {
            Layout::AsFrame => {}
            Layout::ChromaPairs { v_first } => {
                let chroma = (self.format.frame_bytes() / self.format.sample_bytes() - pixels) / 2;
                let (u, v) = if v_first { (1, 0) } else { (0, 1) };
                for at in 0..chroma {
                    sample(pixels + at, pixels + 2 * at + u);
                    sample(pixels + chroma + at, pixels + 2 * at + v);
                }
            }
            Layout::Pixels { rgb: [red, green, blue], step, .. } => {
                for at in 0..pixels {
                    sample(3 * at, step * at + red);
                    sample(3 * at + 1, step * at + green);
                    sample(3 * at + 2, step * at + blue);
                }
            }
            Layout::PlanesGbr => {
                for at in 0..pixels {
                    sample(3 * at, 2 * pixels + at);
                    sample(3 * at + 1, at);
                    sample(3 * at + 2, pixels + at);
                }
            }
        }
    }
}

/// Moves a sample of so many bytes from its place to another.
fn move_sample<const BYTES: usize>(from: &[u8], place: usize, to: &mut [u8], other: usize) {
    to[other * BYTES..][..BYTES].copy_from_slice(&from[place * BYTES..][..BYTES]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 3, height: 3 };
    const NAMES: [&str; 12] =
        ["yuv420p", "nv12", "nv21", "rgb24", "bgr24", "rgba", "bgra", "argb", "abgr", "gbrp", "gbrp10le", "rgba64le"];

    #[test]
    fn what_is_laid_out_is_gathered_again() {
        for name in NAMES {
            let raw = RawFormat::named(name, SIZE).expect(name);
            let frame: Vec<u8> = (0..raw.format().frame_bytes()).map(|at| (at * 7 % 251) as u8).collect();
            let laid_out = raw.laid_out(&frame).unwrap_or_else(|| frame.clone());
            assert_eq!(laid_out.len(), raw.stream_bytes(), "{name}");
            assert_eq!(raw.gathered(laid_out), frame, "{name}");
        }
    }

    #[test]
    fn samples_lie_where_the_name_says() {
        let of = |name, size, frame: &[u8]| RawFormat::named(name, size).expect(name).laid_out(frame).expect(name);
        let one = Size { width: 1, height: 1 };
        assert_eq!(of("bgra", one, &[1, 2, 3]), [3, 2, 1, 255]);
        assert_eq!(of("argb", one, &[1, 2, 3]), [255, 1, 2, 3]);
        let two = Size { width: 2, height: 1 };
        assert_eq!(of("gbrp", two, &[1, 2, 3, 4, 5, 6]), [2, 5, 3, 6, 1, 4]);
        let four = Size { width: 4, height: 2 };
        assert_eq!(of("nv12", four, &[0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 20, 21])[8..], [10, 20, 11, 21]);
        assert_eq!(of("nv21", four, &[0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 20, 21])[8..], [20, 10, 21, 11]);
    }

    #[test]
    fn a_layout_holds_only_frames_like_its_own() {
        let nv12 = RawFormat::named("nv12", SIZE).expect("known");
        let other = |name| RawFormat::named(name, Size { width: 9, height: 5 }).expect("known").format();
        assert_eq!(nv12.of(other("yuv420p")).map(|raw| raw.stream_bytes()), Some(45 + 2 * 15));
        assert_eq!([nv12.of(other("yuv422p")), nv12.of(other("rgb24")), nv12.of(other("yuv420p10le"))], [None; 3]);
        assert!(RawFormat::named("rgba", SIZE).expect("known").has_alpha() && !nv12.has_alpha());
    }

    #[test]
    fn other_names_are_refused_with_those_there_are() {
        let said = RawFormat::named("nv16", SIZE).unwrap_err().to_string();
        assert!(said.contains("nv12") && said.contains("gbrp"), "{said}");
    }
}
