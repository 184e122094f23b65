//! Reading and writing at a place of a file, whoever else uses it.

use std::fs::File;
use std::hash::Hasher as _;
use std::io;

use plimsoll_runtime::large_pages;
use twox_hash::XxHash3_64;

use crate::digest::{CHUNK, Checksum};

/// Reads so many bytes into new memory, and what they are checked by.
pub(crate) fn read_new(file: &File, bytes: usize, offset: u64) -> io::Result<(Vec<u8>, Checksum)> {
    let mut all = Vec::with_capacity(bytes);
    large_pages::ask_for(&mut all);
    let mut hash = XxHash3_64::new();
    while all.len() < bytes {
        let before = all.len();
        all.resize(bytes.min(before + CHUNK), 0);
        read_at(file, &mut all[before..], offset + before as u64)?;
        hash.write(&all[before..]);
    }
    Ok((all, Checksum(hash.finish())))
}

#[cfg(unix)]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(unix)]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (bytes, offset) = (&mut bytes[count..], offset + count as u64);
    }
    Ok(())
}

#[cfg(windows)]
pub(crate) fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        (bytes, offset) = (&bytes[count..], offset + count as u64);
    }
    Ok(())
}
