//! What a packed file is to be: asked for as options, checked once into a recipe that says how every block is packed.
//! Never looks at devices: the recipe, and so every byte of the file, depends on the options and the input's length alone.

use std::fmt;

use plimsoll_core::Bytes;

use crate::filter::Filter;
use crate::gzip::header::BGZF_RAW;

/// The format of a packed file.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Zstd frames with checksums and a seek table.
    #[default]
    Zstd,
    /// Gzip members that say how large they are.
    Gzip,
    /// What `bgzip` writes: gzip members of at most 64 KiB.
    Bgzf,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Bgzf => "bgzf",
        })
    }
}

impl Format {
    /// The lowest and the highest level.
    pub const fn levels(self) -> (i32, i32) {
        match self {
            Self::Zstd => (1, 22),
            Self::Gzip | Self::Bgzf => (1, 12),
        }
    }

    /// The level if none is asked for: what the stock tools take.
    pub const fn level_default(self) -> i32 {
        match self {
            Self::Zstd => 3,
            Self::Gzip | Self::Bgzf => 6,
        }
    }

    /// What is added to a file's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Zstd => ".zst",
            Self::Gzip | Self::Bgzf => ".gz",
        }
    }
}

/// Who compresses. The two give different bytes, so they are never mixed in one file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// The format's own library, a block in one call, on the CPU.
    Library,
    /// Our stages: match finding on any device, then coding.
    Staged,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Library => "library",
            Self::Staged => "staged",
        })
    }
}

/// What a packed file is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackOptions {
    /// Its format.
    pub format: Format,
    /// How hard to try; the format's usual level if not given.
    pub level: Option<i32>,
    /// Who compresses; whoever is faster at this level if not given.
    pub method: Option<Method>,
    /// What is done to the bytes before. Only zstd has a place to record it.
    pub filter: Option<Filter>,
    /// Bytes of a block, which can be unpacked by itself; what suits the level and the input if not given.
    pub block: Option<Bytes>,
}

/// Why a file cannot be packed like that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// There is no such level.
    #[error("{format} has levels from {lowest} to {highest}, and no {asked}", lowest = .format.levels().0, highest = .format.levels().1)]
    Level {
        /// The format.
        format: Format,
        /// What was asked for.
        asked: i32,
    },
    /// Blocks of this size are no use.
    #[error("blocks of {format} have from {least} to {most} by this method", least = Bytes(BLOCK_MIN as u64))]
    Block {
        /// The format.
        format: Format,
        /// The largest.
        most: Bytes,
    },
    /// BGZF decides its blocks itself.
    #[error("blocks of BGZF are 64 KiB; leave the block size out")]
    BgzfBlock,
    /// Only zstd records filters.
    #[error("a filter is recorded in a zstd file, and {format} has no place for it; leave one of them out")]
    Filter {
        /// The format.
        format: Format,
    },
    /// The stages do not write BGZF.
    #[error("BGZF is written by the library only; choose that method, or write plain gzip")]
    StagedBgzf,
}

/// The smallest block: less is all header.
const BLOCK_MIN: usize = 64 << 10;
/// The largest block: four of them for each core still fit in small machines, and `unpack` takes it as a whole.
const BLOCK_MAX: usize = 32 << 20;
/// Input is cut in two from here on, so that two cores have something to do.
const HALVED_MIN: u64 = 2 << 20;
/// Bytes of a gzip member: many times the window of 32 KiB, so that little is lost where one begins.
const MEMBER: usize = 1 << 20;
/// Bytes of a staged block: a match finder's tables and its window.
const STAGED_BLOCK: usize = 1 << 20;
/// Members of BGZF that one task packs.
const BGZF_MEMBERS: usize = 16;

/// How every block of a file is packed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The format.
    pub format: Format,
    /// The level.
    pub level: i32,
    /// Who compresses.
    pub method: Method,
    /// What is done to the bytes before.
    pub filter: Option<Filter>,
    /// Bytes of every block but the last.
    pub block: usize,
}

impl PackOptions {
    /// Checks the options. `length` is the input's, if it is known.
    ///
    /// # Errors
    /// [`OptionsError`] if they cannot be meant.
    pub fn recipe(&self, length: Option<u64>) -> Result<Recipe, OptionsError> {
        let format = self.format;
        let level = self.level.unwrap_or(format.level_default());
        let (lowest, highest) = format.levels();
        if !(lowest..=highest).contains(&level) {
            return Err(OptionsError::Level { format, asked: level });
        }
        if self.filter.is_some() && format != Format::Zstd {
            return Err(OptionsError::Filter { format });
        }
        let method = self.method.unwrap_or(Method::Library);
        if method == Method::Staged && format == Format::Bgzf {
            return Err(OptionsError::StagedBgzf);
        }
        let block = self.block(method, level, length)?;
        Ok(Recipe { format, level, method, filter: self.filter, block })
    }

    fn block(&self, method: Method, level: i32, length: Option<u64>) -> Result<usize, OptionsError> {
        let format = self.format;
        let granule = self.filter.map_or(1, |filter| filter.granule());
        match self.block {
            Some(_) if format == Format::Bgzf => Err(OptionsError::BgzfBlock),
            Some(asked) => {
                let most = if method == Method::Staged { STAGED_BLOCK } else { BLOCK_MAX };
                let asked = usize::try_from(asked.0).ok().filter(|asked| (BLOCK_MIN..=most).contains(asked));
                asked
                    .map(|asked| asked / granule * granule)
                    .ok_or(OptionsError::Block { format, most: Bytes(most as u64) })
            }
            None => Ok(match (format, method) {
                (Format::Bgzf, _) => BGZF_RAW * BGZF_MEMBERS,
                (Format::Gzip, _) => MEMBER,
                (Format::Zstd, Method::Staged) => STAGED_BLOCK,
                (Format::Zstd, Method::Library) => frame_bytes(level, length).next_multiple_of(granule),
            }),
        }
    }
}

/// Bytes of a zstd frame. Its window reaches back to its beginning, further than the library's own at most levels, which
/// makes up for frames that know nothing of each other: with these, the ratio is within 1 % of one frame for the whole
/// file, or better (text and binary, levels 1 to 9).
fn frame_bytes(level: i32, length: Option<u64>) -> usize {
    let most: usize = if level < 9 { 8 << 20 } else { 16 << 20 };
    match length {
        Some(length) if length < HALVED_MIN => HALVED_MIN as usize,
        Some(length) => (length.div_ceil(2).next_multiple_of(64 << 10) as usize).min(most),
        None => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(level: i32, length: Option<u64>) -> usize {
        PackOptions { level: Some(level), ..PackOptions::default() }.recipe(length).unwrap().block
    }

    #[test]
    fn two_cores_have_something_to_do_from_2_mib_on() {
        assert_eq!(block(3, Some(1 << 20)), 2 << 20, "one block");
        assert_eq!(block(3, Some(2 << 20)), 1 << 20);
        assert_eq!(block(3, Some(5_000_000)), 2_555_904);
        assert_eq!([block(3, Some(1 << 40)), block(3, None), block(9, None)], [8 << 20, 8 << 20, 16 << 20]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let refused = |options: PackOptions| options.recipe(None).unwrap_err().to_string();
        let gzip = PackOptions { format: Format::Gzip, ..PackOptions::default() };
        assert_eq!(refused(PackOptions { level: Some(13), ..gzip.clone() }), "gzip has levels from 1 to 12, and no 13");
        let filter = "shuffle:f32".parse().ok();
        assert!(refused(PackOptions { filter, ..gzip.clone() }).contains("no place for it"));
        let block = Some(Bytes(10));
        assert_eq!(
            refused(PackOptions { block, ..gzip }),
            "blocks of gzip have from 64.0 KiB to 32.0 MiB by this method"
        );
        let bgzf = PackOptions { format: Format::Bgzf, ..PackOptions::default() };
        assert!(refused(PackOptions { block, ..bgzf.clone() }).contains("64 KiB"));
        assert!(refused(PackOptions { method: Some(Method::Staged), ..bgzf }).contains("library only"));
    }
}
