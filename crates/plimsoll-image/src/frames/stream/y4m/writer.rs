//! Frames into a Y4M stream. Never converts: a frame unlike the stream is refused before a byte of it is written.

use std::io::Write;

use super::header::StreamHeader;
use crate::frames::frame::Frame;
use crate::frames::stream::error::WriteError;
use crate::frames::stream::raw::RawWriter;

/// Writes a Y4M stream.
pub struct Y4mWriter<W> {
    frames: RawWriter<W>,
}

impl<W> std::fmt::Debug for Y4mWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Y4mWriter").field("frames", &self.frames).finish_non_exhaustive()
    }
}

impl<W: Write> Y4mWriter<W> {
    /// Writes the stream's first line.
    ///
    /// # Errors
    /// [`WriteError::NotYuv`] and [`WriteError::Depth`] for what Y4M does not hold, [`WriteError::Unwritable`].
    pub fn new(mut writer: W, header: StreamHeader) -> Result<Self, WriteError> {
        let line = header.line()? + "\n";
        writer.write_all(line.as_bytes()).map_err(|reason| WriteError::Unwritable { frame: 0, reason })?;
        Ok(Self { frames: RawWriter::new(writer, header.format) })
    }

    /// Writes a frame.
    ///
    /// # Errors
    /// [`WriteError::OtherFormat`], before anything is written; [`WriteError::Unwritable`].
    pub fn write(&mut self, frame: &Frame) -> Result<(), WriteError> {
        self.frames.write_after(b"FRAME\n", frame)
    }

    /// Makes sure that all went on its way, and gives the writer back.
    ///
    /// # Errors
    /// [`WriteError::Unwritable`].
    pub fn finish(self) -> Result<W, WriteError> {
        self.frames.finish()
    }
}
