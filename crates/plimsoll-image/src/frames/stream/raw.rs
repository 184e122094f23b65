//! Frames one after the other with nothing between them, as `ffmpeg -f rawvideo` reads and writes them.
//! Never guesses a format: callers tell it. Invariant: a stream ends between frames, or in an error.

use std::io::{Read, Write};

use super::error::{StreamError, WriteError};
use super::raw_format::RawFormat;
use super::source::Source;
use crate::frames::format::Format;
use crate::frames::frame::Frame;

/// Frames of a raw stream.
///
/// ```
/// use plimsoll_image::Size;
/// use plimsoll_image::frames::stream::{RawReader, pixel_format};
/// let format = pixel_format("rgb24", Size { width: 2, height: 1 })?;
/// let mut frames = RawReader::new(&b"RGBRGBrgbrgbRG"[..], format);
/// assert_eq!(frames.next().unwrap()?.bytes(), b"RGBRGB");
/// assert_eq!(frames.next().unwrap()?.bytes(), b"rgbrgb");
/// let truncated = frames.next().unwrap().unwrap_err().to_string();
/// assert_eq!(
///     truncated,
///     "the stream ends in the middle of frame 3 (2 of 6 bytes); the frames before it are whole"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RawReader<R> {
    format: RawFormat,
    source: Source<R>,
}

impl<R> std::fmt::Debug for RawReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawReader").field("format", &self.format).finish_non_exhaustive()
    }
}

impl<R: Read> RawReader<R> {
    /// Reads frames of this format.
    pub fn new(reader: R, format: impl Into<RawFormat>) -> Self {
        Self { format: format.into(), source: Source::new(reader) }
    }

    /// What the samples stand for.
    pub fn format(&self) -> Format {
        self.format.format()
    }
}

impl<R: Read> Iterator for RawReader<R> {
    type Item = Result<Frame, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        let raw = self.format;
        self.source.advance(|source| {
            let Some(bytes) = source.body(raw.stream_bytes())? else { return Ok(None) };
            Ok(Some(source.frame(raw.format(), raw.gathered(bytes))))
        })
    }
}

/// Writes frames of one format, one after the other.
pub struct RawWriter<W> {
    writer: W,
    format: RawFormat,
    whole: u64,
}

impl<W> std::fmt::Debug for RawWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawWriter").field("format", &self.format).field("frames", &self.whole).finish_non_exhaustive()
    }
}

impl<W: Write> RawWriter<W> {
    /// Writes frames of this format.
    pub fn new(writer: W, format: impl Into<RawFormat>) -> Self {
        Self { writer, format: format.into(), whole: 0 }
    }

    /// Writes a frame.
    ///
    /// # Errors
    /// [`WriteError::OtherFormat`], before anything is written; [`WriteError::Unwritable`].
    pub fn write(&mut self, frame: &Frame) -> Result<(), WriteError> {
        self.write_after(b"", frame)
    }

    /// Writes a frame with something before it.
    pub(super) fn write_after(&mut self, lead: &[u8], frame: &Frame) -> Result<(), WriteError> {
        let number = self.whole + 1;
        let wanted = self.format.format();
        if frame.format() != wanted {
            return Err(WriteError::OtherFormat { frame: number, wanted, got: frame.format() });
        }
        let laid_out = self.format.laid_out(frame.bytes());
        let bytes = laid_out.as_deref().unwrap_or(frame.bytes());
        let written = self.writer.write_all(lead).and_then(|()| self.writer.write_all(bytes));
        written.map_err(|reason| WriteError::Unwritable { frame: number, reason })?;
        self.whole = number;
        Ok(())
    }

    /// Makes sure that all went on its way, and gives the writer back.
    ///
    /// # Errors
    /// [`WriteError::Unwritable`].
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.writer.flush().map_err(|reason| WriteError::Unwritable { frame: self.whole, reason })?;
        Ok(self.writer)
    }
}
