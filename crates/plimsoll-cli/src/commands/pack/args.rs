//! What can be typed after `plimsoll pack` and `plimsoll unpack`.
//! Never opens a device or a file.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use plimsoll::Bytes;
use plimsoll::pack::{Filter, Format, Method, PackOptions, StageChoice, Stages};

use crate::stop::Stop;

/// Pack files into standard zstd or gzip
///
/// What comes out is read by zstd, gunzip, bgzip and everything else that knows the formats. Blocks are packed side by side,
/// are checksummed, and can be unpacked side by side or from the middle.
#[derive(Debug, ClapArgs)]
#[command(after_help = PACK_EXAMPLES)]
pub(crate) struct PackArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// The format
    #[arg(short, long, value_enum, default_value = "zstd", help_heading = "Format")]
    pub(super) format: FormatArg,
    /// How hard to try: zstd 1 to 22, gzip 1 to 12; 3 and 6 if not given
    #[arg(short, long, value_name = "N", help_heading = "Format")]
    pub(super) level: Option<i32>,
    /// The same as --format bgzf, which is gzip in blocks of 64 KiB for programs that want to seek
    #[arg(long, conflicts_with = "format", help_heading = "Format")]
    pub(super) bgzf: bool,
    /// With --bgzf: write the index that bgzip reads beside the output, with .gzi at its end
    #[arg(long, help_heading = "Format")]
    pub(super) index: bool,
    /// Rearrange typed data first: shuffle:f32, bitshuffle:u16, delta:u16,shuffle:u16 and so on; zstd only
    #[arg(long, value_name = "STEP,...", help_heading = "Format")]
    pub(super) filter: Option<Filter>,
    /// Bytes of a block; what suits the level and the input if not given
    #[arg(long, value_name = "SIZE", help_heading = "Format")]
    pub(super) block: Option<Bytes>,
    /// Check that packed files are whole and right, and write nothing
    #[arg(long)]
    pub(super) test: bool,
    /// Who compresses: the format's library on the CPU, or our own stages on every device; the bytes differ
    #[arg(long, value_enum, default_value = "library", help_heading = "Devices")]
    pub(super) method: MethodArg,
    /// Where a stage may run: match=gpu, code=cpu, filter=auto and so on; the bytes are the same
    #[arg(long, value_name = "STAGE=WHERE", value_delimiter = ',', value_parser = parse_stage, help_heading = "Devices")]
    pub(super) stage: Vec<(StageName, StageChoice)>,
}

/// Unpack zstd, gzip and BGZF files
///
/// Frames and members that can be are unpacked side by side. A damaged file is an error that says where, and leaves no
/// output behind. What went into a pipe before it is right, unless it is of a gzip member of another program or a frame of
/// more than 48 MiB: their only checksum stands at their end.
#[derive(Debug, ClapArgs)]
#[command(after_help = UNPACK_EXAMPLES)]
pub(crate) struct UnpackArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// Only these of the unpacked bytes, as 1GiB..1.1GiB; without an end, to the end
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range)]
    pub(super) range: Option<RangeArg>,
    /// Stop with an error when more than this comes out
    #[arg(long, value_name = "SIZE")]
    pub(super) limit: Option<Bytes>,
    /// Check that files are whole and right, and write nothing
    #[arg(long, conflicts_with = "range")]
    pub(super) test: bool,
}

/// What both have.
#[derive(Debug, ClapArgs)]
pub(super) struct Common {
    /// Files; - or none for a pipe
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Where the output goes, instead of beside the input; - for a pipe
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// The same as --output -
    #[arg(short = 'c', long, conflicts_with = "output", help_heading = "Output")]
    pub(super) stdout: bool,
    /// Replace files that are there, and write packed bytes to a terminal
    #[arg(long, help_heading = "Output")]
    pub(super) force: bool,
    /// Keep the input, as is done unless --rm is given
    #[arg(short, long, conflicts_with = "rm", help_heading = "Output")]
    pub(super) keep: bool,
    /// Remove the input once the output is whole
    #[arg(long, help_heading = "Output")]
    pub(super) rm: bool,
    /// Say nothing but errors
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
    /// Say at the end where time went and what each device did
    #[arg(long, help_heading = "Output")]
    pub(super) stats: bool,
    /// The same for other programs
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Write what happened when, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) trace: Option<PathBuf>,
    /// Blocks on the CPU at once; as many as there are cores if not given
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Devices")]
    pub(super) jobs: Option<u16>,
}

const PACK_EXAMPLES: &str = "\
Examples:
  plimsoll pack big.tar                         big.tar.zst, seekable, checksummed
  plimsoll pack -f gzip -l 6 big.tar            big.tar.gz
  plimsoll pack --bgzf --index reads.txt        reads.txt.gz and reads.txt.gz.gzi
  tar c folder | plimsoll pack -l 9 > folder.tar.zst
  plimsoll pack --filter shuffle:f32 field.raw  typed data packs better by bytes of one kind
  plimsoll pack --method staged --stage match=gpu big.tar   matches found on a GPU, still a standard .zst
  plimsoll pack --test big.tar.zst              is it whole and right?";

const UNPACK_EXAMPLES: &str = "\
Examples:
  plimsoll unpack big.tar.zst                   big.tar
  plimsoll unpack -c big.tar.zst | tar x
  plimsoll unpack --range 1GiB..1.1GiB -c big.tar.zst
  plimsoll unpack --limit 10GiB -c upload.gz    no more than that, whatever the file holds
  plimsoll unpack --test *.gz";

/// A format as it is typed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatArg {
    /// Zstd frames with checksums and a seek table
    Zstd,
    /// Gzip members of 1 MiB
    Gzip,
    /// Gzip members of 64 KiB, as bgzip writes them
    Bgzf,
}

/// A method as it is typed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MethodArg {
    /// The format's own library
    Library,
    /// Match finding and coding as stages
    Staged,
}

/// A stage as it is typed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum StageName {
    Filter,
    Match,
    Code,
}

/// A range of the unpacked bytes.
#[derive(Clone, Debug)]
pub(super) struct RangeArg(pub(super) Range<u64>);

impl PackArgs {
    /// What the file is to be.
    pub(super) fn options(&self) -> Result<PackOptions, Stop> {
        let format = match (self.bgzf, self.format) {
            (true, _) | (false, FormatArg::Bgzf) => Format::Bgzf,
            (false, FormatArg::Zstd) => Format::Zstd,
            (false, FormatArg::Gzip) => Format::Gzip,
        };
        if self.index && format != Format::Bgzf {
            return Err(Stop::usage("--index is for --bgzf; other formats hold their own"));
        }
        if self.index && (self.common.stdout || self.common.files.is_empty()) && self.common.output.is_none() {
            return Err(Stop::usage("--index goes beside the output; name a file with --output"));
        }
        let method = match self.method {
            MethodArg::Library => Method::Library,
            MethodArg::Staged => Method::Staged,
        };
        let needs_stages = |(name, _): &(StageName, StageChoice)| *name != StageName::Filter;
        if method == Method::Library && self.stage.iter().any(needs_stages) {
            return Err(Stop::usage("the library has no match and code stages; add --method staged"));
        }
        Ok(PackOptions { format, level: self.level, method: Some(method), filter: self.filter, block: self.block })
    }

    pub(super) fn stages(&self) -> Stages {
        let mut stages = Stages::default();
        for (name, choice) in &self.stage {
            match name {
                StageName::Filter => stages.filter = *choice,
                StageName::Match => stages.find = *choice,
                StageName::Code => stages.code = *choice,
            }
        }
        stages
    }
}

fn parse_stage(text: &str) -> Result<(StageName, StageChoice), String> {
    let refused = || "write match, code or filter, and where: match=cpu, match=gpu or match=auto".to_owned();
    let (name, place) = text.split_once('=').ok_or_else(refused)?;
    let name = match name {
        "filter" => StageName::Filter,
        "match" => StageName::Match,
        "code" => StageName::Code,
        _ => return Err(refused()),
    };
    match place {
        "auto" => Ok((name, StageChoice::Auto)),
        "cpu" => Ok((name, StageChoice::Cpu)),
        "gpu" => Ok((name, StageChoice::Gpu)),
        _ => Err(refused()),
    }
}

fn parse_range(text: &str) -> Result<RangeArg, String> {
    let refused = || format!("'{text}' is no range; write FROM..TO, as 1GiB..1.1GiB");
    let (from, to) = text.split_once("..").ok_or_else(refused)?;
    let place = |text: &str, otherwise: u64| match text {
        "" => Ok(otherwise),
        text => text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|_| refused()),
    };
    let range = place(from, 0)?..place(to, u64::MAX)?;
    if range.start > range.end {
        return Err(format!("'{text}' ends before it begins"));
    }
    Ok(RangeArg(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert_eq!(parse_range("1KiB..2KiB").unwrap().0, 1024..2048);
        assert_eq!((parse_range("..5").unwrap().0, parse_range("5..").unwrap().0), (0..5, 5..u64::MAX));
        assert!(parse_range("7").is_err() && parse_range("a..b").is_err() && parse_range("2..1").is_err());
    }
}
