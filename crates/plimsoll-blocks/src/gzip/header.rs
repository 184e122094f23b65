//! The headers of members: ours, BGZF's and anybody's. Layouts are those of RFC 1952 and the SAM specification.
//! Never trusts a length: it only says what the file says.

use crate::error::{DamageError, UnpackError};

/// The first bytes of a member: its number and the only method there is.
pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Bytes of the header that every member has.
pub(crate) const FIXED: usize = 10;
/// Bytes of the trailer: checksum and length.
pub(crate) const TRAILER: usize = 8;
/// How far back a member refers at the most.
pub(crate) const WINDOW: u64 = 32 << 10;
/// Bytes of a header with its names and comments that we read. Who writes more means harm.
pub(crate) const HEADER_MAX: usize = 256 << 10;
/// The subfield in which our members say how large they are.
const OURS: [u8; 2] = *b"PL";
/// What it holds: the member's bytes, the content's, and a check of the header.
const OURS_BYTES: usize = 10;
/// The subfield in which BGZF members say how large they are.
const BGZF: [u8; 2] = *b"BC";
/// Bytes of our members' headers.
pub(crate) const OUR_HEADER: usize = FIXED + 2 + 4 + OURS_BYTES;
/// Bytes of BGZF members' headers.
pub(crate) const BGZF_HEADER: usize = FIXED + 2 + 4 + 2;
/// What a BGZF member gives at the most.
pub(crate) const BGZF_RAW_MAX: usize = 1 << 16;
/// What `bgzip` puts into one.
pub(crate) const BGZF_RAW: usize = 0xff00;
/// The empty member that ends a BGZF file.
pub(crate) const BGZF_END: [u8; 28] =
    [31, 139, 8, 4, 0, 0, 0, 0, 0, 255, 6, 0, b'B', b'C', 2, 0, 27, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

const FLAG_HEADER_CHECK: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;
const FLAGS_RESERVED: u8 = 0xe0;

/// What a member says of its own size.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberSize {
    /// One of ours.
    Ours { packed: u32, raw: u32 },
    /// One of BGZF.
    Bgzf { packed: u32 },
    /// Anybody's: only its end tells.
    Unknown,
}

/// A member's header.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberHeader {
    pub(crate) length: usize,
    pub(crate) sized: MemberSize,
}

/// How far a header could be read.
pub(crate) enum Read {
    Whole(MemberHeader),
    /// It goes on behind what is there.
    NeedsMore,
}

/// Reads the header of a member from what is there of it.
pub(crate) fn read(bytes: &[u8], at: u64) -> Result<Read, UnpackError> {
    let wrong = |what| UnpackError::damaged(at, DamageError::Field(what));
    if bytes.len() < FIXED {
        return Ok(Read::NeedsMore);
    }
    if bytes[..3] != MAGIC {
        return Err(UnpackError::damaged(at, DamageError::NoBeginning("gzip member")));
    }
    let flags = bytes[3];
    if flags & FLAGS_RESERVED != 0 {
        return Err(wrong("a reserved bit of the member's header is set"));
    }
    let mut next = FIXED;
    let mut extra: &[u8] = &[];
    if flags & FLAG_EXTRA != 0 {
        let Some(&[low, high]) = bytes.get(next..next + 2) else { return Ok(Read::NeedsMore) };
        let length = usize::from(u16::from_le_bytes([low, high]));
        let Some(field) = bytes.get(next + 2..next + 2 + length) else { return Ok(Read::NeedsMore) };
        (extra, next) = (field, next + 2 + length);
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            match bytes[next..].iter().position(|&byte| byte == 0) {
                Some(end) => next += end + 1,
                None if bytes.len() > HEADER_MAX => return Err(wrong("a name or comment does not end")),
                None => return Ok(Read::NeedsMore),
            }
        }
    }
    if flags & FLAG_HEADER_CHECK != 0 {
        let Some(&[low, high]) = bytes.get(next..next + 2) else { return Ok(Read::NeedsMore) };
        if u16::from_le_bytes([low, high]) != libdeflater::crc32(&bytes[..next]) as u16 {
            return Err(wrong("the check of the member's header does not match"));
        }
        next += 2;
    }
    Ok(Read::Whole(MemberHeader { length: next, sized: sized(bytes, extra, next, at)? }))
}

fn sized(bytes: &[u8], extra: &[u8], length: usize, at: u64) -> Result<MemberSize, UnpackError> {
    let wrong = |what| Err(UnpackError::damaged(at, DamageError::Field(what)));
    let mut rest = extra;
    while let [one, other, low, high, after @ ..] = rest {
        let bytes_of = usize::from(u16::from_le_bytes([*low, *high]));
        // A field that is too long for its place is nobody's we know.
        let Some(field) = after.get(..bytes_of) else { break };
        match ([*one, *other], field) {
            (OURS, [p0, p1, p2, p3, r0, r1, r2, r3, c0, c1]) if extra.len() == 4 + OURS_BYTES => {
                let packed = u32::from_le_bytes([*p0, *p1, *p2, *p3]);
                let raw = u32::from_le_bytes([*r0, *r1, *r2, *r3]);
                if u16::from_le_bytes([*c0, *c1]) != header_check(&bytes[..length - 2]) {
                    return wrong("the check of the member's header does not match");
                }
                if (packed as usize) < length + TRAILER {
                    return wrong("a member is smaller than its header");
                }
                return Ok(MemberSize::Ours { packed, raw });
            }
            (BGZF, [low, high]) => {
                let packed = u32::from(u16::from_le_bytes([*low, *high])) + 1;
                if (packed as usize) < length + TRAILER {
                    return wrong("a BGZF member is smaller than its header");
                }
                return Ok(MemberSize::Bgzf { packed });
            }
            _ => rest = &after[bytes_of..],
        }
    }
    Ok(MemberSize::Unknown)
}

fn header_check(before: &[u8]) -> u16 {
    libdeflater::crc32(before) as u16
}

/// The header of one of our members.
pub(crate) fn ours(packed: u32, raw: u32) -> [u8; OUR_HEADER] {
    let mut header = [0; OUR_HEADER];
    header[..FIXED].copy_from_slice(&[MAGIC[0], MAGIC[1], MAGIC[2], FLAG_EXTRA, 0, 0, 0, 0, 0, 255]);
    header[10..12].copy_from_slice(&((4 + OURS_BYTES) as u16).to_le_bytes());
    header[12..14].copy_from_slice(&OURS);
    header[14..16].copy_from_slice(&(OURS_BYTES as u16).to_le_bytes());
    header[16..20].copy_from_slice(&packed.to_le_bytes());
    header[20..24].copy_from_slice(&raw.to_le_bytes());
    let check = header_check(&header[..24]);
    header[24..].copy_from_slice(&check.to_le_bytes());
    header
}

/// The header of a BGZF member of so many bytes.
pub(crate) fn bgzf(packed: usize) -> [u8; BGZF_HEADER] {
    let mut header = [0; BGZF_HEADER];
    header.copy_from_slice(&BGZF_END[..BGZF_HEADER]);
    header[16..].copy_from_slice(&((packed - 1) as u16).to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> MemberHeader {
        match read(bytes, 0).unwrap() {
            Read::Whole(header) => header,
            Read::NeedsMore => panic!("it is whole"),
        }
    }

    #[test]
    fn our_header_is_read_as_it_was_written_and_every_flipped_bit_is_noticed_or_harmless() {
        let written = ours(1_000, 5_000);
        let expected = MemberHeader { length: OUR_HEADER, sized: MemberSize::Ours { packed: 1_000, raw: 5_000 } };
        assert_eq!(whole(&written), expected);
        for bit in 0..written.len() * 8 {
            let mut flipped = [written.as_slice(), &[0; 600]].concat();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Either refused, or it is no member of ours any more: then its own checksum holds it to account.
            let seen = read(&flipped, 0);
            assert!(
                !matches!(&seen, Ok(Read::Whole(MemberHeader { sized: MemberSize::Ours { .. }, .. }))),
                "bit {bit} of our header can be flipped"
            );
        }
    }

    #[test]
    fn the_end_of_bgzf_is_a_member_of_bgzf() {
        let header = whole(&BGZF_END);
        assert_eq!(header, MemberHeader { length: BGZF_HEADER, sized: MemberSize::Bgzf { packed: 28 } });
        assert_eq!(bgzf(28), BGZF_END[..BGZF_HEADER]);
    }

    #[test]
    fn names_and_comments_are_passed_over() {
        let mut bytes = vec![0x1f, 0x8b, 8, FLAG_NAME | FLAG_COMMENT, 0, 0, 0, 0, 0, 3];
        bytes.extend(b"name\0comment");
        assert!(matches!(read(&bytes, 0), Ok(Read::NeedsMore)));
        bytes.push(0);
        assert_eq!(whole(&bytes), MemberHeader { length: bytes.len(), sized: MemberSize::Unknown });
        bytes.pop();
        bytes.resize(HEADER_MAX + 1, b'x');
        assert!(read(&bytes, 0).is_err(), "a comment without end");
    }
}
