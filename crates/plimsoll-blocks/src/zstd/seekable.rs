//! The seek table of the seekable format: a skippable frame at the end that says how large each frame is.
//! Never believed alone: whoever reads by it compares it with what the frames say of themselves.

use super::frame::{self, u32_at};
use crate::error::{DamageError, UnpackError};

/// The skippable kind that seek tables have.
pub(crate) const KIND: u8 = 0xe;
/// The last bytes of a seek table.
pub(crate) const FOOTER_MAGIC: u32 = 0x8f92_eab1;
/// Bytes of the footer: how many frames, a descriptor, its number.
pub(crate) const FOOTER: usize = 9;
/// Frames in one table at the most; the format says so.
pub(crate) const FRAMES_MAX: usize = 0x0800_0000;
/// Bytes of a table that we take into memory: 8 Mi frames.
pub(crate) const TABLE_BYTES_MAX: usize = 64 << 20;

/// How large a frame is, packed and unpacked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameSize {
    pub(crate) packed: u32,
    pub(crate) raw: u32,
}

/// The frame that holds this table.
pub(crate) fn table(frames: &[FrameSize]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(frames.len() * 8 + FOOTER);
    for frame in frames {
        payload.extend(frame.packed.to_le_bytes());
        payload.extend(frame.raw.to_le_bytes());
    }
    payload.extend((frames.len() as u32).to_le_bytes());
    payload.push(0);
    payload.extend(FOOTER_MAGIC.to_le_bytes());
    frame::skippable(KIND, &payload)
}

/// Bytes of a table's frame, from its last [`FOOTER`] bytes; none if they are no footer.
pub(crate) fn bytes_from_footer(footer: &[u8]) -> Option<u64> {
    let (frames, descriptor) = (u32_at(footer, 0)?, *footer.get(4)?);
    if u32_at(footer, 5)? != FOOTER_MAGIC || frames as usize > FRAMES_MAX {
        return None;
    }
    let entry = if descriptor & 0x80 == 0 { 8 } else { 12 };
    Some(u64::from(frames) * entry + (frame::SKIPPABLE_HEADER + FOOTER) as u64)
}

/// Reads what a skippable frame of this kind holds.
pub(crate) fn read(payload: &[u8], at: u64) -> Result<Vec<FrameSize>, UnpackError> {
    let wrong = || UnpackError::damaged(at, DamageError::SeekTable);
    let footer = payload.len().checked_sub(FOOTER).map(|start| &payload[start..]).ok_or_else(wrong)?;
    let said = bytes_from_footer(footer).ok_or_else(wrong)?;
    if said != (payload.len() + frame::SKIPPABLE_HEADER) as u64 || footer[4] & 0x7c != 0 {
        return Err(wrong());
    }
    let entry = if footer[4] & 0x80 == 0 { 8 } else { 12 };
    let entries = payload[..payload.len() - FOOTER].chunks_exact(entry);
    let size = |entry: &[u8]| Some(FrameSize { packed: u32_at(entry, 0)?, raw: u32_at(entry, 4)? });
    entries.map(size).collect::<Option<_>>().ok_or_else(wrong)
}

/// Whether a skippable frame of another kind holds a seek table: then its kind is damaged.
pub(crate) fn looks_like_one(payload: &[u8]) -> bool {
    payload.len() >= FOOTER && u32_at(payload, payload.len() - 4) == Some(FOOTER_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written_and_a_flipped_bit_of_its_footer_is_noticed() {
        let frames = [FrameSize { packed: 10, raw: 100 }, FrameSize { packed: 0xffff, raw: 0 }];
        let written = table(&frames);
        let payload = &written[frame::SKIPPABLE_HEADER..];
        assert_eq!(read(payload, 0).unwrap(), frames);
        assert_eq!(bytes_from_footer(&written[written.len() - FOOTER..]), Some(written.len() as u64));
        for bit in 0..FOOTER * 8 {
            let mut flipped = payload.to_vec();
            let at = flipped.len() - FOOTER + bit / 8;
            flipped[at] ^= 1 << (bit % 8);
            // Two bits of the descriptor are free to be anything.
            let is_free = bit / 8 == 4 && bit % 8 < 2;
            assert_eq!(read(&flipped, 0).is_err(), !is_free, "bit {bit}");
        }
    }
}
