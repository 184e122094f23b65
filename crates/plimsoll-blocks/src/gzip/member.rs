//! Whole members, by libdeflate: ours, and BGZF's.
//! Invariant: what a member gives has its length and its checksum, or it is an error.

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use super::header::{self, BGZF_HEADER, BGZF_RAW, OUR_HEADER, TRAILER};
use crate::error::{DamageError, UnpackError};

/// Bytes of a block that is packed in both ways, because that takes a few milliseconds at the most: 4 KiB of text
/// become 1,482 bytes instead of 1,643, and 1,511 by zlib.
const SMALL: usize = 16 << 10;
/// Bytes of a larger block on which both ways are tried.
const SAMPLE: usize = 64 << 10;
/// The library's first level that looks for the best parse.
const BEST_PARSE: i32 = 10;
/// Typed levels below this are for those in a hurry, and taken as they are.
const USUAL: i32 = 4;
/// The library's highest level.
const LEVEL_MAX: i32 = 12;
/// What the best parse must save at level 9, in percent of a sample, to be worth three times the time.
const WORTH_PERCENT: usize = 5;

/// Packs members.
pub(crate) struct MemberPacker {
    compressor: Compressor,
    /// A harder way, where there is one.
    harder: Option<Harder>,
    /// For BGZF members that did not get smaller.
    stored: Compressor,
}

/// The best parse. It is worse for what repeats itself (a log of one line: 85 KB instead of 47), so it has to prove itself
/// on a sample of each block.
struct Harder {
    level: CompressionLvl,
    /// Opened with the first block that wants it.
    opened: Option<Compressor>,
    /// What it must save of a sample, in percent; `None` if it is for small blocks only.
    worth_percent: Option<usize>,
    sampled: Vec<u8>,
}

impl Harder {
    fn new(level: i32, worth_percent: Option<usize>) -> Result<Self, String> {
        Ok(Self { level: library_level(level)?, opened: None, worth_percent, sampled: Vec::new() })
    }

    fn compressor(&mut self) -> &mut Compressor {
        self.opened.get_or_insert_with(|| Compressor::new(self.level))
    }

    /// Whether this block is to be packed by it, instead of by the usual one.
    fn suits(&mut self, raw: &[u8], usual: &mut Compressor) -> bool {
        let Some(worth_percent) = self.worth_percent else { return false };
        let middle = raw.len().saturating_sub(SAMPLE) / 2;
        let sample = &raw[middle..raw.len().min(middle + SAMPLE)];
        let mut sampled = std::mem::take(&mut self.sampled);
        sampled.resize(usual.deflate_compress_bound(SAMPLE).max(self.compressor().deflate_compress_bound(SAMPLE)), 0);
        let usual = usual.deflate_compress(sample, &mut sampled);
        let harder = self.compressor().deflate_compress(sample, &mut sampled);
        self.sampled = sampled;
        matches!((usual, harder), (Ok(usual), Ok(harder)) if harder * 100 < usual * (100 - worth_percent))
    }

    /// Packs a small block in both ways and keeps the better of them, which neither is packed again for.
    fn pack_small(
        &mut self,
        raw: &[u8],
        usual: &mut Compressor,
        into: &mut [u8],
    ) -> Result<usize, libdeflater::CompressionError> {
        let mut sampled = std::mem::take(&mut self.sampled);
        sampled.resize(into.len(), 0);
        let usual = usual.deflate_compress(raw, &mut sampled);
        let harder = self.compressor().deflate_compress(raw, into);
        let packed = match (usual, harder) {
            (Ok(usual), Ok(harder)) if harder < usual => Ok(harder),
            (usual, _) => usual.inspect(|packed| into[..*packed].copy_from_slice(&sampled[..*packed])),
        };
        self.sampled = sampled;
        packed
    }
}

impl MemberPacker {
    /// For BGZF: levels mean what they mean to bgzip, which has the same library.
    pub(crate) fn new(level: i32) -> Result<Self, String> {
        let (level, stored) = (library_level(level)?, library_level(0)?);
        let (compressor, stored) = (Compressor::new(level), Compressor::new(stored));
        Ok(Self { compressor, harder: None, stored })
    }

    /// For members of ours: a level packs about as well as zlib's of that number does, mostly better. From the usual ones
    /// on that is the library's next (2 MiB of text at 6: 593,729 bytes in 101 ms of processor time, pigz 607,176 in 170).
    /// At 9 the library's own 9 has the ratio of zlib's in a third of its time (16 MiB of source code: 0.65 s and 1.95), or
    /// else the best parse is worth its time.
    pub(crate) fn like_zlib(level: i32) -> Result<Self, String> {
        library_level(level)?;
        let (usual, harder) = match level {
            ..USUAL => return Self::new(level),
            USUAL..9 => (level + 1, Harder::new(BEST_PARSE, None)?),
            9 => (9, Harder::new(BEST_PARSE, Some(WORTH_PERCENT))?),
            _ => (9, Harder::new((level + 1).min(LEVEL_MAX), Some(0))?),
        };
        Ok(Self { harder: Some(harder), ..Self::new(usual)? })
    }

    fn pack(&mut self, raw: &[u8], into: &mut [u8]) -> Result<usize, libdeflater::CompressionError> {
        let usual = &mut self.compressor;
        let Some(harder) = &mut self.harder else { return usual.deflate_compress(raw, into) };
        if raw.len() <= SMALL {
            return harder.pack_small(raw, usual, into);
        }
        let compressor = if harder.suits(raw, usual) { harder.compressor() } else { usual };
        compressor.deflate_compress(raw, into)
    }

    /// Appends one of our members.
    pub(crate) fn ours(&mut self, raw: &[u8], into: &mut Vec<u8>) -> Result<(), String> {
        let start = into.len();
        // The library has one bound for all levels.
        let room = OUR_HEADER + self.compressor.deflate_compress_bound(raw.len()) + TRAILER;
        into.resize(start + room, 0);
        let packed = self.pack(raw, &mut into[start + OUR_HEADER..]).map_err(|error| error.to_string())?;
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

fn library_level(level: i32) -> Result<CompressionLvl, String> {
    CompressionLvl::new(level).map_err(|_| format!("there is no gzip level {level}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(mut packer: MemberPacker, raw: &[u8]) -> usize {
        let mut member = Vec::new();
        packer.ours(raw, &mut member).expect("it can be packed");
        let mut back = vec![0; raw.len()];
        MemberUnpacker::new().whole(&member, OUR_HEADER, 0, &mut back).expect("it can be unpacked");
        assert!(back == raw);
        member.len()
    }

    fn text() -> Vec<u8> {
        (0..60_000_u32).flat_map(|n| format!("{} sheep, ", n * n % 10_007).into_bytes()).collect()
    }

    #[test]
    fn usual_levels_pack_as_well_as_the_next_and_small_blocks_better() {
        let text = text();
        let (plain, ours) = (MemberPacker::new, MemberPacker::like_zlib);
        for level in 4..9 {
            let next = packed(plain(level + 1).unwrap(), &text);
            assert_eq!(packed(ours(level).unwrap(), &text), next, "level {level}");
            for small in [&text[..SMALL], &text[..100], &[]] {
                let both = [level + 1, 10].map(|level| packed(plain(level).unwrap(), small));
                assert_eq!(packed(ours(level).unwrap(), small), both[0].min(both[1]), "level {level}");
            }
        }
        for level in 1..4 {
            assert_eq!(packed(ours(level).unwrap(), &text), packed(plain(level).unwrap(), &text), "level {level}");
        }
        assert!(ours(12).is_ok() && ours(13).is_err());
    }

    fn dice() -> impl FnMut(u64) -> u64 {
        let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
        move |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice ^ dice >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) % sides
        }
    }

    /// Words of a few syllables, most of them rare.
    fn words() -> Vec<u8> {
        const SYLLABLES: [&str; 8] = ["an ", "ber", "col. ", "dra", "el ", "fin", "gar", "hul "];
        let (mut roll, mut text) = (dice(), Vec::new());
        while text.len() < 300_000 {
            let rank = roll(4_000) * roll(4_000) / 4_000;
            (0..4).for_each(|at| text.extend(SYLLABLES[(rank >> (3 * at) & 7) as usize].bytes()));
        }
        text
    }

    /// The best parse is taken where it gains, and never where it loses.
    #[test]
    fn high_levels_take_the_better_way_for_each_block() {
        let (plain, ours) = (MemberPacker::new, MemberPacker::like_zlib);
        let words = words();
        assert_eq!(packed(ours(9).unwrap(), &words), packed(plain(10).unwrap(), &words), "it gains much");
        let mut roll = dice();
        let line = |_| format!("{{\"sensor\":17,\"status\":\"ok\",\"value\":{}}}\n", roll(3)).into_bytes();
        let log: Vec<u8> = (0..8_000).flat_map(line).collect();
        let of = |level| packed(plain(level).unwrap(), &log);
        assert!(of(9) < of(10), "what this is about: {} and {}", of(9), of(10));
        for level in 9..=12 {
            assert!(packed(ours(level).unwrap(), &log) <= of(9), "level {level}");
            assert!(packed(ours(level).unwrap(), &log[..SMALL]) <= packed(plain(9).unwrap(), &log[..SMALL]));
        }
    }
}
