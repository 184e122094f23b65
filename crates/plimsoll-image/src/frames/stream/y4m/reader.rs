//! Frames out of a Y4M stream. Never reads further than the frame it gives.

use std::io::Read;

use super::header::{LINE_BYTES_MAX, StreamHeader};
use crate::frames::format::{Colour, Matrix, Yuv};
use crate::frames::frame::Frame;
use crate::frames::stream::error::{HeaderError, StreamError, quoted};
use crate::frames::stream::source::Source;

/// How every frame begins, and most lines before frames end.
const FRAME: &[u8; 6] = b"FRAME\n";

/// Frames of a Y4M stream: all whole ones, then, if there is one, the error.
pub struct Y4mReader<R> {
    header: StreamHeader,
    source: Source<R>,
}

impl<R> std::fmt::Debug for Y4mReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Y4mReader").field("header", &self.header).finish_non_exhaustive()
    }
}

impl<R: Read> Y4mReader<R> {
    /// Reads the stream's first line.
    ///
    /// # Errors
    /// [`StreamError::Header`] if it makes no sense or tells of frames that are not read, [`StreamError::Unreadable`].
    pub fn open(reader: R) -> Result<Self, StreamError> {
        let mut source = Source::new(reader);
        let mut line = Vec::new();
        let ended = source.line(&mut line, LINE_BYTES_MAX);
        match ended.map_err(|reason| StreamError::Unreadable { frame: 0, reason })? {
            true => Ok(Self { header: StreamHeader::read(&line)?, source }),
            false => Err(endless(&line).into()),
        }
    }

    /// What the stream says about its frames.
    pub fn header(&self) -> &StreamHeader {
        &self.header
    }

    /// Takes the colours to be made by this matrix, and not the [likely one](super::likely_matrix): streams do not say.
    #[must_use]
    pub fn with_matrix(mut self, matrix: Matrix) -> Self {
        let format = self.header.format;
        if let Colour::Yuv(yuv) = format.colour() {
            self.header.format = format.with_colour(Colour::Yuv(Yuv { matrix, ..yuv }));
            self.header.guessed.matrix = false;
        }
        self
    }
}

impl<R: Read> Iterator for Y4mReader<R> {
    type Item = Result<Frame, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        let format = self.header.format;
        self.source.advance(|source| {
            if !begin(source)? {
                return Ok(None);
            }
            let (frame, wanted) = (source.current(), format.frame_bytes());
            let body = source.body(wanted)?.ok_or(StreamError::FrameTruncated { frame, got: 0, wanted })?;
            Ok(Some(source.frame(format, body)))
        })
    }
}

/// Why a first line without an end is none.
fn endless(line: &[u8]) -> HeaderError {
    match line.len() {
        0 => HeaderError::Empty,
        // Another kind of file has no reason to have lines.
        _ if !line.starts_with(b"YUV4") => HeaderError::NotY4m { found: quoted(line) },
        LINE_BYTES_MAX => HeaderError::Endless,
        _ => HeaderError::Truncated,
    }
}

/// Reads the line before a frame; what it says about interlacing is passed over. False at the end of the stream.
fn begin<R: Read>(source: &mut Source<R>) -> Result<bool, StreamError> {
    let frame = source.current();
    let unreadable = |reason| StreamError::Unreadable { frame, reason };
    let mut lead = [0; FRAME.len()];
    let filled = source.fill(&mut lead).map_err(unreadable)?;
    let lead = &lead[..filled];
    match lead {
        [] => Ok(false),
        lead if lead == FRAME => Ok(true),
        b"FRAME " => {
            let mut line = lead.to_vec();
            match source.line(&mut line, LINE_BYTES_MAX).map_err(unreadable)? {
                true => Ok(true),
                false if line.len() < LINE_BYTES_MAX => Err(StreamError::FrameHeaderTruncated { frame }),
                false => Err(StreamError::FrameHeader { frame, found: quoted(&line) }),
            }
        }
        lead if FRAME.starts_with(lead) => Err(StreamError::FrameHeaderTruncated { frame }),
        lead => Err(StreamError::FrameHeader { frame, found: quoted(lead) }),
    }
}
