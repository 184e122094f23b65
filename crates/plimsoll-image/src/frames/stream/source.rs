//! Bytes of a stream into frames, one after the other. Never looks into frames.
//! Invariants: after an error or the end there is nothing more; no memory is taken for a frame that a header merely
//! promises, beyond [`UNPROVEN_BYTES`].

use std::io::{self, Read};
use std::sync::Arc;

use super::error::StreamError;
use crate::frames::format::Format;
use crate::frames::frame::Frame;
use crate::frames::spare::Spare;

/// Memory taken on the word of a header, before the first frame has come whole. Larger first frames grow as they come;
/// this holds a frame of 3840 x 2160 in 4:2:0 with 16 bits.
const UNPROVEN_BYTES: usize = 32 << 20;

/// A stream, and how far it has been read.
pub(super) struct Source<R> {
    reader: R,
    whole: u64,
    over: bool,
    /// Memory of frames that were read before and are gone.
    spare: Arc<Spare>,
}

impl<R: Read> Source<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, whole: 0, over: false, spare: Arc::default() }
    }

    /// What `read` makes of the stream: a frame, an error, or the end. The last two are final.
    pub(super) fn advance(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Option<Frame>, StreamError>,
    ) -> Option<Result<Frame, StreamError>> {
        if self.over {
            return None;
        }
        let outcome = read(self).transpose();
        match outcome {
            Some(Ok(_)) => self.whole += 1,
            _ => self.over = true,
        }
        outcome
    }

    /// The frame that is read now, counted from 1.
    pub(super) fn current(&self) -> u64 {
        self.whole + 1
    }

    /// As many bytes as there are, up to the buffer's length.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Adds bytes up to the next newline, which it takes and leaves out. False if the line does not end within `max`
    /// bytes or the stream ends first.
    pub(super) fn line(&mut self, line: &mut Vec<u8>, max: usize) -> io::Result<bool> {
        // One byte at a time: what comes after the line belongs to a frame, and goes straight into its memory.
        let mut byte = [0];
        while line.len() < max && self.fill(&mut byte)? == 1 {
            if byte == *b"\n" {
                return Ok(true);
            }
            line.push(byte[0]);
        }
        Ok(false)
    }

    /// The bytes of a frame that has so many, or `None` if there are none at all.
    pub(super) fn body(&mut self, wanted: usize) -> Result<Option<Vec<u8>>, StreamError> {
        let frame = self.current();
        let mut bytes = self.spare.take(wanted).unwrap_or_default();
        bytes.clear();
        while bytes.len() < wanted {
            let room = self.room(bytes.len(), wanted);
            bytes.try_reserve_exact(room).map_err(|_| StreamError::OutOfMemory { frame, bytes: wanted })?;
            // Straight into the reserved memory, which nothing clears before.
            let came = (&mut self.reader).take(room as u64).read_to_end(&mut bytes);
            if came.map_err(|reason| StreamError::Unreadable { frame, reason })? < room {
                break;
            }
        }
        match bytes.len() {
            0 => Ok(None),
            got if got < wanted => Err(StreamError::FrameTruncated { frame, got, wanted }),
            _ => Ok(Some(bytes)),
        }
    }

    /// A frame of these bytes, as many as the format says.
    pub(super) fn frame(&self, format: Format, bytes: Vec<u8>) -> Frame {
        Frame::of_stream(format, bytes, Some(Arc::clone(&self.spare))).expect("as many bytes as the format says")
    }

    /// How many bytes to make room for at once.
    fn room(&self, there: usize, wanted: usize) -> usize {
        let left = wanted - there;
        if self.whole > 0 { left } else { left.min(UNPROVEN_BYTES.max(there)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_on_trust_only_after_a_whole_frame() {
        let mut source = Source::new(io::empty());
        assert_eq!(source.room(0, 1 << 30), UNPROVEN_BYTES);
        assert_eq!(source.room(3 * UNPROVEN_BYTES, 1 << 30), 3 * UNPROVEN_BYTES);
        assert_eq!(source.room(100, 101), 1);
        source.whole = 1;
        assert_eq!(source.room(0, 1 << 30), 1 << 30);
    }

    /// What no frame holds any more is read into again; what one still holds never is.
    #[test]
    fn memory_of_frames_that_are_gone_is_used_again() {
        let size = crate::image::Size { width: 400, height: 300 };
        let format = Format::new(size, 8, crate::frames::format::Colour::Rgb).unwrap();
        let mut source = Source::new(io::repeat(7));
        let mut next = || {
            let bytes = source.body(format.frame_bytes()).unwrap().unwrap();
            source.frame(format, bytes)
        };
        let first = next();
        let (place, copy) = (first.bytes().as_ptr(), first.clone());
        drop(first);
        let second = next();
        assert_ne!(second.bytes().as_ptr(), place, "somebody holds the first");
        drop(copy);
        assert_eq!(next().bytes().as_ptr(), place);
        drop(second.into_bytes());
    }

    #[test]
    fn lines_end_or_do_not() {
        let mut source = Source::new(&b"one\ntwo"[..]);
        let mut line = Vec::new();
        assert!(source.line(&mut line, 3).is_ok_and(|ended| !ended), "no room for the newline");
        let mut source = Source::new(&b"one\ntwo"[..]);
        line.clear();
        assert!(source.line(&mut line, 4).is_ok_and(|ended| ended));
        assert_eq!(line, b"one");
        assert!(source.line(&mut line, 99).is_ok_and(|ended| !ended), "the stream ends");
        assert_eq!(line, b"onetwo");
    }
}
