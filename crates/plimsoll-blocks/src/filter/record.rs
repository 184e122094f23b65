//! The skippable frame that tells `unpack` what was done to the bytes before they were packed.
//! A reader that does not know it gives the filtered bytes, so the record says in words what they are.
//! Invariant: with one flipped bit anywhere in it, it is refused; it is never passed over.

use super::Filter;
use crate::error::{DamageError, UnpackError};
use crate::zstd::frame;

/// The skippable kind of the record.
const KIND: u8 = 0xb;
/// How it begins.
const SIGNATURE: &[u8; 16] = b"plimsoll-filter\0";
/// Bytes of what it says, filled up with blanks.
const TEXT: usize = 160;
/// Bytes of the record: signature, text, checksum.
const BYTES: usize = SIGNATURE.len() + TEXT + 4;
const WORDS: &str = "; the frames that follow hold filtered bytes: plimsoll unpack gives the data\n";

/// The frame for this filter.
pub(crate) fn frame(filter: &Filter) -> Vec<u8> {
    let mut payload = SIGNATURE.to_vec();
    payload.extend(format!("{filter}{WORDS}").bytes());
    payload.resize(SIGNATURE.len() + TEXT, b' ');
    payload.extend(libdeflater::crc32(&payload).to_le_bytes());
    frame::skippable(KIND, &payload)
}

/// The filter that a skippable frame records; none if it is somebody else's.
pub(crate) fn read(kind: u8, payload: &[u8], at: u64) -> Result<Option<Filter>, UnpackError> {
    let is_signed = payload.starts_with(SIGNATURE);
    if !is_signed && (kind != KIND || payload.len() != BYTES) {
        return Ok(None);
    }
    let damaged = || UnpackError::damaged(at, DamageError::FilterRecord);
    if kind != KIND || !is_signed || payload.len() != BYTES {
        return Err(damaged());
    }
    let (said, check) = payload.split_at(BYTES - 4);
    if libdeflater::crc32(said).to_le_bytes() != check {
        return Err(damaged());
    }
    let text = std::str::from_utf8(&said[SIGNATURE.len()..]).ok().and_then(|text| text.split(';').next());
    text.and_then(|text| text.parse().ok()).map(Some).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_filter_fits_and_every_flipped_bit_is_refused() {
        let longest = ["bitshuffle:u64"; super::super::STEPS_MAX].join(",");
        let filter: Filter = longest.parse().unwrap();
        assert!(longest.len() + WORDS.len() <= TEXT);
        let frame = frame(&filter);
        let payload = &frame[frame::SKIPPABLE_HEADER..];
        assert_eq!(read(KIND, payload, 0).unwrap(), Some(filter));
        for bit in 0..payload.len() * 8 {
            let mut flipped = payload.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(KIND, &flipped, 0).is_err(), "bit {bit}");
        }
        for other in (0..16).filter(|kind| *kind != KIND) {
            assert!(read(other, payload, 0).is_err(), "kind {other}");
        }
        assert!(read(KIND, &payload[1..], 0).unwrap().is_none(), "somebody else's");
    }
}
