//! How chunks are packed and unpacked: those codecs that every reader of Zarr v3 knows.
//! Never trusts a length in a file: what comes out must be exactly one chunk. Invariant: what is encoded depends on the
//! chunk and the codec alone, not on what a context did before or on where a shuffle was done.
//!
//! | file | what it owns |
//! |---|---|
//! | `text.rs` | how codecs are written |
//! | `zstd.rs`, `gzip.rs` | the libraries' contexts, used again and again |
//! | `blosc` | the container of c-blosc 1: blocks, shuffles, the compressors within |
//! | `error.rs` | what can be wrong |

mod blosc;
mod error;
mod gzip;
mod text;
mod zstd;

pub use blosc::{BLOCK_BYTES, BloscCompressor, Shuffle};
pub use error::CodecError;
pub use text::ParseCodecError;
pub(crate) use text::{BLOSC_LEVELS, GZIP_LEVELS, ZSTD_LEVELS};

use blosc::Blosc;
use plimsoll_blocks::filter::Step;

use crate::data_type::DataType;

/// How chunks are packed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    #[default]
    None,
    /// A zstd frame with its checksum.
    Zstd {
        /// Its level, -131072 to 22.
        level: i32,
    },
    /// A gzip member.
    Gzip {
        /// Its level, 0 to 9.
        level: i32,
    },
    /// A container of c-blosc 1.
    Blosc {
        /// What packs its blocks.
        compressor: BloscCompressor,
        /// Its level, 0 to 9.
        level: i32,
        /// What is done to its blocks before.
        shuffle: Shuffle,
    },
}

/// Contexts and buffers that encoding and decoding use again. One for each thread.
#[derive(Default)]
pub struct Scratch {
    zstd: zstd::Contexts,
    gzip: gzip::Contexts,
    blosc: blosc::Buffers,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// A codec with all that it must know of the chunks: what their elements are and how many bytes they have.
///
/// ```
/// use plimsoll_arrays::DataType;
/// use plimsoll_arrays::codec::{ChunkCodec, Scratch};
///
/// let codec = ChunkCodec::new("blosc:zstd:5:bitshuffle".parse()?, DataType::U16, 4096);
/// let (mut scratch, mut packed, mut chunk) = (Scratch::default(), Vec::new(), Vec::new());
/// codec.encode(&[7; 4096], &mut scratch, &mut packed)?;
/// codec.decode(&packed, &mut scratch, &mut chunk)?;
/// assert!(packed.len() < 100 && chunk == [7; 4096]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ChunkCodec {
    codec: Codec,
    data_type: DataType,
    chunk_bytes: usize,
}

impl ChunkCodec {
    /// A codec for chunks of so many bytes.
    pub const fn new(codec: Codec, data_type: DataType, chunk_bytes: usize) -> Self {
        Self { codec, data_type, chunk_bytes }
    }

    /// The codec.
    pub const fn codec(&self) -> Codec {
        self.codec
    }

    /// What the elements are.
    pub const fn data_type(&self) -> DataType {
        self.data_type
    }

    /// Bytes of a chunk before it is packed.
    pub const fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Bytes of an encoded chunk at the most.
    pub fn encoded_bytes_max(&self) -> usize {
        match self.codec {
            Codec::None => self.chunk_bytes,
            Codec::Zstd { .. } => zstd_safe::compress_bound(self.chunk_bytes),
            Codec::Gzip { .. } => gzip::bound(self.chunk_bytes),
            Codec::Blosc { .. } => blosc::bound(self.chunk_bytes),
        }
    }

    /// Bytes that packing keeps from chunk to chunk.
    pub fn context_bytes(&self) -> u64 {
        match self.codec {
            Codec::None => 0,
            Codec::Zstd { level } => zstd::context_bytes(level, self.chunk_bytes),
            Codec::Gzip { .. } => gzip::CONTEXT_BYTES,
            Codec::Blosc { compressor, level, .. } => blosc::context_bytes(compressor, level, self.chunk_bytes),
        }
    }

    /// The shuffle that comes first, and the bytes of the blocks to each of which it is done by itself; the last block is
    /// what is left. See [`ChunkCodec::shuffle_step`].
    pub fn shuffle(&self) -> Option<(Shuffle, usize)> {
        match self.codec {
            Codec::Blosc { shuffle, .. } if shuffle.does_something(self.data_type) => {
                Some((shuffle, blosc::block_bytes(self.chunk_bytes)))
            }
            _ => None,
        }
    }

    /// What is done to a block of so many bytes before it is packed; none for a block that stays as it is, as the last
    /// one does where its elements do not come in eights for a bit shuffle.
    pub fn shuffle_step(&self, block: usize) -> Option<Step> {
        match self.codec {
            Codec::Blosc { shuffle, .. } => shuffle.step(self.data_type.filter_element(), block),
            _ => None,
        }
    }

    /// Appends an encoded chunk.
    pub fn encode(&self, chunk: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.check(chunk)?;
        match self.codec {
            Codec::None => {
                out.extend_from_slice(chunk);
                Ok(())
            }
            Codec::Zstd { level } => scratch.zstd.encode(chunk, level, true, out),
            Codec::Gzip { level } => scratch.gzip.encode(chunk, level, out),
            Codec::Blosc { compressor, level, shuffle } => {
                self.blosc(compressor, level, shuffle).encode(chunk, false, scratch, out)
            }
        }
    }

    /// Appends an encoded chunk whose blocks were already shuffled, elsewhere, as [`ChunkCodec::shuffle_step`] says; gives
    /// the same bytes as encoding the chunk itself.
    pub fn encode_shuffled(&self, chunk: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.check(chunk)?;
        match self.codec {
            Codec::Blosc { compressor, level, shuffle } => {
                self.blosc(compressor, level, shuffle).encode(chunk, true, scratch, out)
            }
            _ => self.encode(chunk, scratch, out),
        }
    }

    /// Puts a decoded chunk in place of what `out` holds.
    pub fn decode(&self, encoded: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.clear();
        match self.codec {
            Codec::None => {
                CodecError::check_length(self.chunk_bytes, encoded.len() as u64)?;
                out.extend_from_slice(encoded);
                Ok(())
            }
            Codec::Zstd { .. } => scratch.zstd.decode(encoded, self.chunk_bytes, out),
            Codec::Gzip { .. } => scratch.gzip.decode(encoded, self.chunk_bytes, out),
            Codec::Blosc { .. } => blosc::decode(encoded, self.data_type, self.chunk_bytes, scratch, out),
        }
    }

    fn blosc(&self, compressor: BloscCompressor, level: i32, shuffle: Shuffle) -> Blosc {
        Blosc { compressor, level, shuffle, data_type: self.data_type }
    }

    fn check(&self, chunk: &[u8]) -> Result<(), CodecError> {
        let (expected, got) = (self.chunk_bytes, chunk.len());
        if got == expected { Ok(()) } else { Err(CodecError::ChunkLength { expected, got }) }
    }
}

/// Makes room for what is to be appended; an error instead of an abort where there is none.
pub(crate) fn reserve(out: &mut Vec<u8>, bytes: usize, what: &'static str) -> Result<(), CodecError> {
    out.try_reserve(bytes).map_err(|_| CodecError::NoMemory { what })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CODECS: [&str; 12] = [
        "none",
        "zstd:1",
        "zstd:-3",
        "gzip:1",
        "gzip:9",
        "blosc:lz4:5:noshuffle",
        "blosc:lz4:5:shuffle",
        "blosc:lz4:1:bitshuffle",
        "blosc:zstd:1:noshuffle",
        "blosc:zstd:5:shuffle",
        "blosc:zstd:3:bitshuffle",
        "blosc:lz4:0:shuffle",
    ];

    /// Data with long runs, short repeats and noise, by a plain generator.
    fn data(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        (0..bytes)
            .map(|at| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                match (at / 97 + seed as usize) % 3 {
                    0 => 7,
                    1 => (at % 5) as u8,
                    _ => (state >> 56) as u8,
                }
            })
            .collect()
    }

    fn round_trip(codec: &ChunkCodec, chunk: &[u8]) -> Vec<u8> {
        let (mut scratch, mut packed, mut back) = (Scratch::default(), b"before".to_vec(), b"before".to_vec());
        codec.encode(chunk, &mut scratch, &mut packed).unwrap();
        assert_eq!(&packed[..6], b"before", "what is there stays there");
        let packed = packed.split_off(6);
        assert!(packed.len() <= codec.encoded_bytes_max(), "{codec:?}");
        codec.decode(&packed, &mut scratch, &mut back).unwrap();
        assert!(back == chunk, "{codec:?}");
        packed
    }

    #[test]
    fn chunks_larger_than_a_block_come_back() {
        for codec in CODECS {
            for data_type in [DataType::U8, DataType::U16, DataType::F32, DataType::F64] {
                let bytes = 2 * BLOCK_BYTES + 24 * data_type.bytes();
                let codec = ChunkCodec::new(codec.parse().unwrap(), data_type, bytes);
                round_trip(&codec, &data(bytes, 3));
            }
        }
    }

    #[test]
    fn contexts_that_were_used_give_the_same_bytes() {
        let mut scratch = Scratch::default();
        for codec in CODECS.into_iter().chain(CODECS) {
            let codec = ChunkCodec::new(codec.parse().unwrap(), DataType::U16, 10_000);
            let mut again = Vec::new();
            codec.encode(&data(10_000, 5), &mut scratch, &mut again).unwrap();
            assert!(again == round_trip(&codec, &data(10_000, 5)), "{codec:?}");
        }
    }

    #[test]
    fn a_chunk_of_another_length_is_refused_both_ways() {
        for codec in CODECS {
            let codec: Codec = codec.parse().unwrap();
            let (mut scratch, mut packed, mut back) = (Scratch::default(), Vec::new(), Vec::new());
            let of = |bytes| ChunkCodec::new(codec, DataType::U16, bytes);
            assert!(of(100).encode(&[0; 98], &mut scratch, &mut packed).is_err());
            of(1000).encode(&data(1000, 1), &mut scratch, &mut packed).unwrap();
            for other in [2, 998, 1002, 4000] {
                assert!(of(other).decode(&packed, &mut scratch, &mut back).is_err(), "{codec} as {other}");
            }
            assert!(of(1000).decode(&packed[..packed.len() - 1], &mut scratch, &mut back).is_err(), "{codec} cut");
            assert!(of(1000).decode(&[], &mut scratch, &mut back).is_err(), "{codec} empty");
        }
    }

    proptest! {
        #[test]
        fn every_chunk_comes_back(elements in 1_usize..3000, seed: u64, codec in 0..CODECS.len(), data_type in 0..11_usize) {
            let data_type = DataType::ALL[data_type];
            let bytes = elements * data_type.bytes();
            round_trip(&ChunkCodec::new(CODECS[codec].parse().unwrap(), data_type, bytes), &data(bytes, seed));
        }

        #[test]
        fn damage_is_an_error_or_a_chunk_of_the_right_length(
            codec in 0..CODECS.len(), seed: u64, at in 0_usize..2000, flip in 1_u8.., cut: bool,
        ) {
            let codec = ChunkCodec::new(CODECS[codec].parse().unwrap(), DataType::U16, 2000);
            let (mut scratch, mut packed, mut back) = (Scratch::default(), Vec::new(), Vec::new());
            codec.encode(&data(2000, seed), &mut scratch, &mut packed).unwrap();
            let at = at % packed.len();
            if cut { packed.truncate(at) } else { packed[at] ^= flip }
            if codec.decode(&packed, &mut scratch, &mut back).is_ok() {
                prop_assert_eq!(back.len(), 2000);
            }
        }
    }
}
