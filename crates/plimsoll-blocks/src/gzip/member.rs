//! Whole members, by libdeflate: ours, and BGZF's.
//! Invariant: what a member gives has its length and its checksum, or it is an error.

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use super::header::{self, BGZF_HEADER, BGZF_RAW, OUR_HEADER, TRAILER};
use crate::error::{DamageError, UnpackError};

/// Packs members.
pub(crate) struct MemberPacker {
    compressor: Compressor,
    /// For BGZF members that did not get smaller.
    stored: Compressor,
}

impl MemberPacker {
    pub(crate) fn new(level: i32) -> Result<Self, String> {
        let level = CompressionLvl::new(level).map_err(|_| format!("there is no gzip level {level}"))?;
        let stored = CompressionLvl::new(0).map_err(|_| "libdeflate cannot store".to_owned())?;
        Ok(Self { compressor: Compressor::new(level), stored: Compressor::new(stored) })
    }

    /// Appends one of our members.
    pub(crate) fn ours(&mut self, raw: &[u8], into: &mut Vec<u8>) -> Result<(), String> {
        let start = into.len();
        let room = OUR_HEADER + self.compressor.deflate_compress_bound(raw.len()) + TRAILER;
        into.resize(start + room, 0);
        let body = &mut into[start + OUR_HEADER..];
        let packed = self.compressor.deflate_compress(raw, body).map_err(|error| error.to_string())?;
        into.truncate(start + OUR_HEADER + packed);
        finish_ours(raw, into, start)
    }

    /// Appends members of BGZF.
    pub(crate) fn bgzf(&mut self, raw: &[u8], into: &mut Vec<u8>, sizes: &mut Vec<(u32, u32)>) -> Result<(), String> {
        for piece in raw.chunks(BGZF_RAW) {
            let start = into.len();
            into.resize(start + (1 << 16), 0);
            let body = &mut into[start + BGZF_HEADER..(start + (1 << 16)) - TRAILER];
            let packed = match self.compressor.deflate_compress(piece, body) {
                Ok(packed) => packed,
                // It did not get smaller: stored, it always fits.
                Err(_) => self.stored.deflate_compress(piece, body).map_err(|error| error.to_string())?,
            };
            into.truncate(start + BGZF_HEADER + packed);
            trailer(piece, into);
            let size = into.len() - start;
            into[start..start + BGZF_HEADER].copy_from_slice(&header::bgzf(size));
            sizes.push((size as u32, piece.len() as u32));
        }
        Ok(())
    }
}

/// Ends one of our members, whose deflated content lies behind the room for its header.
pub(crate) fn finish_ours(raw: &[u8], into: &mut Vec<u8>, start: usize) -> Result<(), String> {
    trailer(raw, into);
    let packed = u32::try_from(into.len() - start).map_err(|_| "a member of more than 4 GiB".to_owned())?;
    into[start..start + OUR_HEADER].copy_from_slice(&header::ours(packed, raw.len() as u32));
    Ok(())
}

fn trailer(raw: &[u8], into: &mut Vec<u8>) {
    into.extend(libdeflater::crc32(raw).to_le_bytes());
    into.extend((raw.len() as u32).to_le_bytes());
}

/// Unpacks members of known size.
pub(crate) struct MemberUnpacker(Decompressor);

impl MemberUnpacker {
    pub(crate) fn new() -> Self {
        Self(Decompressor::new())
    }

    /// Unpacks one whole member whose header has `header` bytes, into a place for what its trailer says it gives.
    pub(crate) fn whole(&mut self, member: &[u8], header: usize, at: u64, into: &mut [u8]) -> Result<(), UnpackError> {
        let (body, trailer) = member[header..].split_at(member.len() - header - TRAILER);
        let got = match self.0.deflate_decompress(body, into) {
            Ok(got) => got,
            Err(DecompressionError::BadData) => {
                return Err(UnpackError::damaged(at, DamageError::Content("not deflated data".to_owned())));
            }
            Err(DecompressionError::InsufficientSpace) => {
                let said = into.len() as u64;
                return Err(UnpackError::damaged(at, DamageError::Length { said, got: said + 1 }));
            }
        };
        let crc = u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]);
        let said = u32::from_le_bytes([trailer[4], trailer[5], trailer[6], trailer[7]]);
        if got != into.len() || said as usize != got {
            return Err(UnpackError::damaged(at, DamageError::Length { said: u64::from(said), got: got as u64 }));
        }
        if libdeflater::crc32(into) != crc {
            return Err(UnpackError::damaged(at, DamageError::Checksum));
        }
        Ok(())
    }
}

/// Looks whether a stream that another device coded gives a block again: what would be found out when it is unpacked is
/// found out before it is written.
pub(crate) struct StreamCheck {
    unpacker: Decompressor,
    room: Vec<u8>,
}

impl StreamCheck {
    pub(crate) fn new() -> Self {
        Self { unpacker: Decompressor::new(), room: Vec::new() }
    }

    pub(crate) fn gives(&mut self, stream: &[u8], raw: &[u8]) -> bool {
        self.room.resize(raw.len(), 0);
        let got = self.unpacker.deflate_decompress(stream, &mut self.room);
        got.is_ok_and(|got| got == raw.len()) && self.room == raw
    }
}

/// What the trailer of a whole member says that it gives.
pub(crate) fn raw_said(member: &[u8]) -> u32 {
    let tail = &member[member.len() - 4..];
    u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]])
}
