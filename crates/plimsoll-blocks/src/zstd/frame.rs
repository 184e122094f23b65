//! The headers of frames and blocks: where a frame ends and how much it can give at the most, without decoding it.
//! Never trusts a length: it only says what the file says. Layouts are those of RFC 8878.

use crate::error::{DamageError, UnpackError};

/// The bytes at the start of a zstd frame, read as little-endian.
pub(crate) const MAGIC: u32 = 0xfd2f_b528;
/// Skippable frames have any of 16 numbers from here on.
pub(crate) const SKIPPABLE: u32 = 0x184d_2a50;
/// Bytes of a skippable frame's header: its number and the size of what follows.
pub(crate) const SKIPPABLE_HEADER: usize = 8;
/// Bytes of the longest frame header.
pub(crate) const HEADER_MAX: usize = 18;
/// Bytes of a block's header.
pub(crate) const BLOCK_HEADER: usize = 3;
/// What a block gives at the most.
pub(crate) const BLOCK_MAX: u64 = 128 << 10;
/// Bytes of the content checksum at the end of a frame.
pub(crate) const CHECKSUM: usize = 4;

/// What kind of frame begins with this number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Zstd,
    /// One of the 16 skippable kinds.
    Skippable(u8),
}

pub(crate) fn kind_of(magic: u32) -> Option<FrameKind> {
    match magic {
        MAGIC => Some(FrameKind::Zstd),
        _ if magic & !0xf == SKIPPABLE => Some(FrameKind::Skippable((magic & 0xf) as u8)),
        _ => None,
    }
}

/// A little-endian number of the first four bytes.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// What a frame says of itself.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Bytes of the header, its number included.
    pub(crate) length: usize,
    /// How much it gives, if it says.
    pub(crate) content: Option<u64>,
    /// How far back it refers at the most.
    pub(crate) window: u64,
    pub(crate) has_checksum: bool,
    pub(crate) dictionary: bool,
}

/// Bytes of the header that begins here, known from its first five.
pub(crate) fn header_length(descriptor: u8) -> usize {
    let single = descriptor >> 5 & 1;
    let content = match descriptor >> 6 {
        0 => usize::from(single),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    4 + 1 + usize::from(1 - single) + dictionary + content
}

/// Reads the header of a zstd frame, which is whole.
pub(crate) fn header(bytes: &[u8], at: u64) -> Result<FrameHeader, UnpackError> {
    let wrong = |what| UnpackError::damaged(at, DamageError::Field(what));
    let descriptor = bytes[4];
    if descriptor & 0b1000 != 0 {
        return Err(wrong("a reserved bit of the frame's header is set"));
    }
    let length = header_length(descriptor);
    let is_single = descriptor >> 5 & 1 == 1;
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let mut next = 5;
    let window_descriptor = (!is_single).then(|| bytes[next]);
    next += usize::from(!is_single);
    let dictionary = bytes[next..next + dictionary_bytes].iter().any(|&byte| byte != 0);
    next += dictionary_bytes;
    let field = &bytes[next..length];
    let little = field.iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
    let content = match field.len() {
        0 => None,
        2 => Some(little + 256),
        _ => Some(little),
    };
    let window = window_descriptor.map_or(content.unwrap_or(0), |descriptor| {
        let base = 1_u64 << (10 + (descriptor >> 3));
        base + base / 8 * u64::from(descriptor & 7)
    });
    Ok(FrameHeader { length, content, window, has_checksum: descriptor & 0b100 != 0, dictionary })
}

/// What a block says of itself.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) is_last: bool,
    /// Bytes that follow the header.
    pub(crate) length: usize,
    /// What it gives at the most.
    pub(crate) gives_max: u64,
}

/// Reads the header of a block.
pub(crate) fn block(bytes: [u8; BLOCK_HEADER], at: u64) -> Result<BlockHeader, UnpackError> {
    let wrong = |what| Err(UnpackError::damaged(at, DamageError::Field(what)));
    let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    let size = word >> 3;
    if u64::from(size) > BLOCK_MAX {
        return wrong("a block is larger than blocks can be");
    }
    let (length, gives_max) = match word >> 1 & 3 {
        0 => (size as usize, u64::from(size)),
        1 => (1, u64::from(size)),
        2 => (size as usize, BLOCK_MAX),
        _ => return wrong("a block is of a kind that there is not"),
    };
    Ok(BlockHeader { is_last: word & 1 == 1, length, gives_max })
}

/// A skippable frame around these bytes.
pub(crate) fn skippable(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(SKIPPABLE_HEADER + payload.len());
    frame.extend((SKIPPABLE | u32::from(kind & 0xf)).to_le_bytes());
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_library_are_read() {
        for size in [0, 1, 255, 256, 70_000, 300_000] {
            let mut packed = Vec::with_capacity(zstd_safe::compress_bound(size));
            zstd_safe::compress(&mut packed, &vec![3; size], 3).unwrap();
            let read = header(&packed, 0).unwrap();
            assert_eq!((read.content, read.dictionary), (Some(size as u64), false), "{size}");
            assert_eq!(read.length, header_length(packed[4]));
        }
    }

    #[test]
    fn a_reserved_bit_and_a_reserved_kind_are_refused_where_they_are() {
        let refused = header(&[0x28, 0xb5, 0x2f, 0xfd, 0b1000, 0, 0], 99).unwrap_err();
        assert!(matches!(refused, UnpackError::Damaged { at: 99, .. }), "{refused}");
        assert!(block([0b111, 0, 0], 5).is_err());
        assert!(block([0b001, 0, 0xff], 5).is_err(), "2 MiB is no block");
        assert_eq!(block([0b011 | 8, 0, 0], 5).unwrap(), BlockHeader { is_last: true, length: 1, gives_max: 1 });
    }
}
