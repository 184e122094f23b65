//! How a frame lies on a device: as in a stream, but each piece starts at a word, so that no two share one.
//! Invariant: a frame is brought back only if every word of it was packed, from samples that were all computed.

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::Buffer;

use super::format::{Colour, Format};
use super::samples::{PACK_PLANE, PACK_RGB, Pack, UNPACK_SAMPLES, Unpack, WORDS_ACROSS};
use crate::image::Size;
use crate::run::Run;

/// A frame's bytes on a device.
pub(super) struct Packed {
    format: Format,
    pieces: Vec<Piece>,
    /// Words of all pieces. One more tells of samples that were never computed, and then one for each piece that it
    /// was packed.
    words: u64,
    buffer: Buffer,
}

/// Samples that lie together: a plane, or all of an interleaved frame.
struct Piece {
    samples: u64,
    first_byte: usize,
    first_word: u64,
}

impl Piece {
    fn bytes(&self, format: Format) -> usize {
        self.samples as usize * format.sample_bytes()
    }
}

fn pieces(format: Format) -> (Vec<Piece>, u64) {
    let counts: Vec<u64> = match format.colour() {
        Colour::Rgb => vec![format.size().pixels() * 3],
        _ => format.plane_sizes().iter().map(|size| size.pixels()).collect(),
    };
    let (mut pieces, mut first_byte, mut first_word) = (Vec::new(), 0, 0);
    for samples in counts {
        let piece = Piece { samples, first_byte, first_word };
        first_byte += piece.bytes(format);
        first_word += (piece.bytes(format) as u64).div_ceil(4);
        pieces.push(piece);
    }
    (pieces, first_word)
}

impl Packed {
    /// Room for a frame, and for what tells whether it is all there.
    pub(super) fn open(run: &mut Run<'_>, format: Format) -> Result<Self, Fault> {
        let (pieces, words) = pieces(format);
        let buffer = run.allocate(words + 1 + pieces.len() as u64)?;
        Ok(Self { format, pieces, words, buffer })
    }

    /// Brings a frame's bytes to the device. `None` brings nothing: what counts then is the memory.
    pub(super) fn upload(&self, run: &mut Run<'_>, bytes: Option<&[u8]>) -> Result<(), Fault> {
        let Some(bytes) = bytes else { return Ok(()) };
        for piece in &self.pieces {
            let piece_bytes = &bytes[piece.first_byte..][..piece.bytes(self.format)];
            let (whole, rest) = piece_bytes.split_at(piece_bytes.len() / 4 * 4);
            let first = piece.first_word * 4;
            run.backend.write(&self.buffer, Bytes(first), whole)?;
            if !rest.is_empty() {
                let mut last = [0; 4];
                last[..rest.len()].copy_from_slice(rest);
                run.backend.write(&self.buffer, Bytes(first + whole.len() as u64), &last)?;
            }
        }
        Ok(())
    }

    /// Spreads one plane of the frame.
    pub(super) fn unpack(&self, run: &mut Run<'_>, plane: usize, to: &Buffer) -> Result<(), Fault> {
        let Size { width, height } = self.format.plane_sizes()[plane];
        let sample_bytes = self.format.sample_bytes();
        let (first, step) = match self.format.colour() {
            Colour::Rgb => (plane as u32, 3),
            _ => ((self.pieces[plane].first_word as usize * 4 / sample_bytes) as u32, 1),
        };
        let scale = 1.0 / f32::from(self.format.code_max());
        let params = Unpack {
            width,
            height,
            first,
            step,
            sample_bytes: sample_bytes as u32,
            scale,
            padding: Default::default(),
        };
        run.over(&UNPACK_SAMPLES, &[&self.buffer, to], &params, width, height)
    }

    /// Packs planes into the frame.
    pub(super) fn pack(&self, run: &mut Run<'_>, planes: &[&Buffer]) -> Result<(), Fault> {
        let unpacked = vec![0; (1 + self.pieces.len()) * 4];
        run.backend.write(&self.buffer, Bytes(self.words * 4), &unpacked)?;
        match (self.format.colour(), planes) {
            (Colour::Rgb, [red, green, blue]) => self.pack_piece(run, &PACK_RGB, 0, &[red, green, blue, &self.buffer]),
            _ => (0..)
                .zip(planes)
                .try_for_each(|(at, plane)| self.pack_piece(run, &PACK_PLANE, at, &[plane, &self.buffer])),
        }
    }

    fn pack_piece(
        &self,
        run: &mut Run<'_>,
        kernel: &'static plimsoll_runtime::Kernel,
        at: usize,
        buffers: &[&Buffer],
    ) -> Result<(), Fault> {
        let piece = &self.pieces[at];
        let params = Pack {
            samples: piece.samples as u32,
            first_word: piece.first_word as u32,
            sample_bytes: self.format.sample_bytes() as u32,
            scale: f32::from(self.format.code_max()),
            flag: self.words as u32,
            done: self.words as u32 + 1 + at as u32,
            padding: Default::default(),
        };
        let words = (piece.bytes(self.format) as u64).div_ceil(4) as u32;
        run.over(kernel, buffers, &params, WORDS_ACROSS.min(words), words.div_ceil(WORDS_ACROSS))
    }

    /// Brings the frame's bytes back.
    ///
    /// # Errors
    /// [`Fault::WrongAnswer`] if a sample was never computed, or never packed.
    pub(super) fn download(&self, run: &mut Run<'_>) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; self.buffer.bytes().0 as usize];
        run.backend.read(&self.buffer, Bytes::ZERO, &mut bytes)?;
        let told = bytes.split_off(self.words as usize * 4);
        let told: Vec<u32> = told.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
        if told[0] != 0 || told[1..].iter().any(|packed| *packed != 1) {
            return Err(Fault::WrongAnswer { detail: "the device left samples of a frame uncomputed".to_owned() });
        }
        for piece in &self.pieces {
            let from = piece.first_word as usize * 4;
            bytes.copy_within(from..from + piece.bytes(self.format), piece.first_byte);
        }
        bytes.truncate(self.format.frame_bytes());
        Ok(bytes)
    }
}
