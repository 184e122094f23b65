//! Bytes of a stream into frames, one after the other. Never looks into frames.
//! Invariants: after an error or the end there is nothing more; no memory is taken for a frame that a header merely
//! promises, beyond [`UNPROVEN_BYTES`].

use std::io::{self, Read};

use super::error::StreamError;
use crate::frames::frame::Frame;

/// Memory taken on the word of a header, before the first frame has come whole. Larger first frames grow as they come;
/// this holds a frame of 3840 x 2160 in 4:2:0 with 16 bits.
const UNPROVEN_BYTES: usize = 32 << 20;

/// A stream, and how far it has been read.
pub(super) struct Source<R> {
    reader: R,
    whole: u64,
    over: bool,
}

impl<R: Read> Source<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, whole: 0, over: false }
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
        let mut bytes = Vec::new();
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
