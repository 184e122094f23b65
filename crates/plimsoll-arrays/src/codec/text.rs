//! How codecs are written: `none`, `zstd:3`, `gzip:6`, `blosc:lz4:5:shuffle`. What is left out has its usual value.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{BloscCompressor, Codec, Shuffle};

/// Levels that zstd has.
pub(crate) const ZSTD_LEVELS: RangeInclusive<i32> = -131_072..=22;
/// Levels that gzip has in Zarr.
pub(crate) const GZIP_LEVELS: RangeInclusive<i32> = 0..=9;
/// Levels that Blosc has; 0 only puts its header before the chunk.
pub(crate) const BLOSC_LEVELS: RangeInclusive<i32> = 0..=9;

const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: i32 = 6;
const BLOSC_LEVEL: i32 = 5;

/// A codec that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is no codec; write none, zstd:3, gzip:6, or blosc with a compressor (lz4, zstd), a level (0 to 9) and a \
     shuffle (noshuffle, shuffle, bitshuffle), as blosc:lz4:5:shuffle"
)]
pub struct ParseCodecError {
    text: String,
}

impl FromStr for Codec {
    type Err = ParseCodecError;

    fn from_str(text: &str) -> Result<Self, ParseCodecError> {
        let parts: Vec<&str> = text.split(':').collect();
        codec(&parts).ok_or_else(|| ParseCodecError { text: text.to_owned() })
    }
}

fn codec(parts: &[&str]) -> Option<Codec> {
    match *parts {
        ["none"] => Some(Codec::None),
        ["zstd"] => Some(Codec::Zstd { level: ZSTD_LEVEL }),
        ["zstd", level] => Some(Codec::Zstd { level: within(level, ZSTD_LEVELS)? }),
        ["gzip"] => Some(Codec::Gzip { level: GZIP_LEVEL }),
        ["gzip", level] => Some(Codec::Gzip { level: within(level, GZIP_LEVELS)? }),
        ["blosc", ref rest @ ..] if rest.len() <= 3 => Some(Codec::Blosc {
            compressor: rest.first().map_or(Some(BloscCompressor::Lz4), |name| BloscCompressor::named(name))?,
            level: rest.get(1).map_or(Some(BLOSC_LEVEL), |level| within(level, BLOSC_LEVELS))?,
            shuffle: rest.get(2).map_or(Some(Shuffle::Byte), |name| Shuffle::named(name))?,
        }),
        _ => None,
    }
}

fn within(level: &str, levels: RangeInclusive<i32>) -> Option<i32> {
    level.parse().ok().filter(|level| levels.contains(level))
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::Zstd { level } => write!(f, "zstd:{level}"),
            Self::Gzip { level } => write!(f, "gzip:{level}"),
            Self::Blosc { compressor, level, shuffle } => {
                write!(f, "blosc:{}:{level}:{}", compressor.name(), shuffle.name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_read_and_written() {
        for text in ["none", "zstd:-5", "zstd:3", "gzip:0", "blosc:lz4:5:shuffle", "blosc:zstd:9:bitshuffle"] {
            assert_eq!(text.parse::<Codec>().unwrap().to_string(), text);
        }
        assert_eq!("zstd".parse::<Codec>().unwrap().to_string(), "zstd:3");
        assert_eq!("blosc:zstd".parse::<Codec>().unwrap().to_string(), "blosc:zstd:5:shuffle");
        for wrong in ["", "none:1", "zstd:23", "gzip:10", "lz4", "blosc:snappy", "blosc:lz4:5:shuffle:1", "zstd:"] {
            assert!(wrong.parse::<Codec>().is_err(), "{wrong}");
        }
    }
}
