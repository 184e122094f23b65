//! The deflate library's contexts, made when first needed and used again.
//! Never takes memory for more than the packed bytes can hold at the most.

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use super::{CodecError, reserve};

const NAME: &str = "gzip";

/// Bytes that one byte of deflate data gives at the most, about: 258 for a match of two bits.
const RATIO_MAX: usize = 1032;

/// What the library keeps to pack at levels up to 9: tables of where bytes were seen, and matches of a block.
pub(super) const CONTEXT_BYTES: u64 = 1 << 20;

/// One context for each direction.
#[derive(Default)]
pub(super) struct Contexts {
    encoder: Option<(i32, Compressor)>,
    decoder: Option<Decompressor>,
}

/// Bytes of a member at the most: stored blocks, each with five bytes before it, and what is around them.
pub(super) const fn bound(bytes: usize) -> usize {
    // The library's own bound: blocks of at least 5,000 bytes, and a few more bytes around them.
    bytes + 5 * (bytes.div_ceil(5000) + 1) + 64
}

impl Contexts {
    /// Appends a member.
    pub(super) fn encode(&mut self, chunk: &[u8], level: i32, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let refused = |why: &str| CodecError::Refused { codec: NAME, why: why.to_owned() };
        let encoder = match self.encoder.take().filter(|(known, _)| *known == level) {
            Some(encoder) => self.encoder.insert(encoder),
            None => {
                let level_of_library = CompressionLvl::new(level).map_err(|_| refused("there is no such level"))?;
                self.encoder.insert((level, Compressor::new(level_of_library)))
            }
        };
        let most = encoder.1.gzip_compress_bound(chunk.len());
        reserve(out, most, "an encoded chunk")?;
        let end = out.len();
        out.resize(end + most, 0);
        let Ok(bytes) = encoder.1.gzip_compress(chunk, &mut out[end..]) else {
            out.truncate(end);
            return Err(refused("it does not fit into the room that it asked for"));
        };
        out.truncate(end + bytes);
        Ok(())
    }

    /// Appends what a member holds, which must be exactly so many bytes.
    pub(super) fn decode(&mut self, member: &[u8], expected: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        check_trailer(member, expected)?;
        reserve(out, expected, "a chunk")?;
        let end = out.len();
        out.resize(end + expected, 0);
        let decoder = self.decoder.get_or_insert_with(Decompressor::new);
        match decoder.gzip_decompress(member, &mut out[end..]) {
            Ok(got) => CodecError::check_length(expected, got as u64),
            Err(DecompressionError::BadData) => Err(CodecError::damaged(NAME, "its content or its checksum is wrong")),
            Err(DecompressionError::InsufficientSpace) => {
                Err(CodecError::Length { expected, got: expected as u64 + 1 })
            }
        }
    }
}

/// Holds what the member says of its length against what a chunk has, and that against what it can hold.
fn check_trailer(member: &[u8], expected: usize) -> Result<(), CodecError> {
    let trailer = member.last_chunk::<4>().filter(|_| member.len() >= 18);
    let said = u32::from_le_bytes(*trailer.ok_or_else(|| CodecError::damaged(NAME, "it is cut off"))?);
    if u64::from(said) != expected as u64 & u64::from(u32::MAX) || expected / RATIO_MAX > member.len() {
        return Err(CodecError::Length { expected, got: u64::from(said) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_not_below_the_librarys() {
        let mut library = Compressor::new(CompressionLvl::default());
        for bytes in [0, 1, 4999, 5000, 5001, 65_536, 1 << 20, (1 << 31) - 1] {
            assert!(bound(bytes) >= library.gzip_compress_bound(bytes), "{bytes}");
        }
    }
}
