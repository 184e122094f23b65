//! Packed bytes that stay in their file until whoever unpacks them reads them: that goes on side by side, in a small buffer
//! that stays in a core's cache, where a reader before all others would fill memory that was never used before.
//! Never believes that a file is as long as it was: what is missing by then is an error with its place.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::error::UnpackError;
use crate::pool::{Pool, PooledBytes};

/// Bytes that are read at once: more than a block of a frame and its header.
const READ: usize = 256 << 10;

/// A file that is read at any place.
#[derive(Clone, Debug)]
pub(crate) struct PlacedFile(Arc<File>);

impl PlacedFile {
    pub(crate) fn new(file: File) -> Self {
        Self(Arc::new(file))
    }

    /// Reads what is there from this place on; none if the file ends before it.
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match read_at(&self.0, into, at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Fills all of it from this place on; `false` if the file ends before.
    pub(crate) fn fill(&self, at: u64, into: &mut [u8]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read(at + filled as u64, &mut into[filled..])? {
                0 => return Ok(false),
                read => filled += read,
            }
        }
        Ok(true)
    }

    /// How long it is now, if it tells.
    pub(crate) fn length(&self) -> Option<u64> {
        self.0.metadata().ok().map(|metadata| metadata.len())
    }

    /// Whether these are its last bytes. One that cannot be read does not tell.
    pub(crate) fn ends_in(&self, end: &[u8; 4]) -> bool {
        let mut last = [0; 4];
        let place = self.length().and_then(|length| length.checked_sub(4));
        place.is_some_and(|place| matches!(self.fill(place, &mut last), Ok(true))) && last == *end
    }
}

#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, at)
}

#[cfg(windows)]
fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, at)
}

/// Bytes of a file.
#[derive(Debug)]
pub(crate) struct Extent {
    pub(crate) file: PlacedFile,
    pub(crate) at: u64,
    pub(crate) length: usize,
}

impl Extent {
    /// All of it.
    pub(crate) fn read(&self, pool: &Pool) -> Result<PooledBytes, UnpackError> {
        let mut bytes = pool.take_filled(self.length);
        self.fill(0, bytes.vec_mut())?;
        Ok(bytes)
    }

    fn fill(&self, from: usize, into: &mut [u8]) -> Result<(), UnpackError> {
        let at = self.at + from as u64;
        match self.file.fill(at, into) {
            Ok(true) => Ok(()),
            Ok(false) => Err(UnpackError::CutOff { at, inside: "a zstd frame" }),
            Err(reason) => Err(UnpackError::Unreadable { at, reason }),
        }
    }
}

/// Packed bytes from their beginning to their end, some at a time.
pub(crate) enum Feed<'a> {
    /// What is left of those in memory.
    Memory(&'a [u8]),
    /// Those in a file, through a buffer.
    File {
        extent: &'a Extent,
        buffer: PooledBytes,
        /// Of whatever value but for this.
        there: std::ops::Range<usize>,
        /// Bytes that were read into the buffer until now.
        read: usize,
    },
}

impl<'a> Feed<'a> {
    pub(crate) fn of_file(extent: &'a Extent, pool: &Pool) -> Self {
        Self::File { extent, buffer: pool.take_filled(READ), there: 0..0, read: 0 }
    }

    /// As many of the next bytes, or all that are left.
    pub(crate) fn peek(&mut self, count: usize) -> Result<&[u8], UnpackError> {
        match self {
            Self::Memory(left) => Ok(&left[..count.min(left.len())]),
            Self::File { extent, buffer, there, read } => {
                let left = extent.length - *read;
                if there.len() < count && left > 0 {
                    let bytes = buffer.vec_mut();
                    if bytes.len() < count {
                        bytes.resize(count, 0);
                    }
                    bytes.copy_within(there.clone(), 0);
                    let new = left.min(bytes.len() - there.len());
                    *there = 0..there.len() + new;
                    extent.fill(*read, &mut bytes[there.end - new..there.end])?;
                    *read += new;
                }
                Ok(&buffer[there.start..there.end.min(there.start + count)])
            }
        }
    }

    /// Goes on behind so many of the bytes that were looked at.
    pub(crate) fn pass(&mut self, count: usize) {
        match self {
            Self::Memory(left) => *left = &left[count..],
            Self::File { there, .. } => there.start += count,
        }
    }

    /// Whether there are no more.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Memory(left) => left.is_empty(),
            Self::File { extent, there, read, .. } => there.is_empty() && *read == extent.length,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn extent(bytes: &[u8], at: u64, length: usize) -> Extent {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Extent { file: PlacedFile::new(file), at, length }
    }

    #[test]
    fn bytes_come_from_a_file_as_from_memory_in_any_steps() {
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
        let (pool, extent) = (Pool::default(), extent(&bytes, 1000, 900_000));
        assert_eq!(extent.read(&pool).unwrap()[..], bytes[1000..901_000]);
        for step in [1000, 131_075, READ, READ + 1, 400_000] {
            let (mut memory, mut file) = (Feed::Memory(&bytes[1000..901_000]), Feed::of_file(&extent, &pool));
            while !memory.is_over() {
                assert!(!file.is_over());
                let passed = memory.peek(step).unwrap().len();
                assert!(memory.peek(step).unwrap() == file.peek(step).unwrap(), "{step}");
                memory.pass(passed);
                file.pass(passed);
            }
            assert!(file.is_over() && file.peek(1).unwrap().is_empty());
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_cut_off() {
        let (pool, extent) = (Pool::default(), extent(&[7; 5000], 1000, 5000));
        assert!(matches!(extent.read(&pool), Err(UnpackError::CutOff { .. })));
        assert!(matches!(Feed::of_file(&extent, &pool).peek(10), Err(UnpackError::CutOff { .. })));
    }
}
