//! What can be typed after `plimsoll frames`.
//! Never opens a device or a file.

use std::fmt::Display;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use plimsoll::Strategy;
use plimsoll::image::encode::JpegQuality;
use plimsoll::image::frames::stream::{Ratio, Selection};
use plimsoll::image::frames::{Chain, Matrix, Range};
use plimsoll::machine::DeviceName;

use super::values::{self, DeviceChoice, RawFrames, RawName};
use crate::stop::Stop;

/// Work on the frames of a video, on every device
///
/// Frames come from a Y4M stream, a raw stream or image files, go through a chain of operations on every device that
/// helps, and leave in order.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct Args {
    /// INPUT OUTPUT: a Y4M file, or - for a pipe, or images as in%04d.png. With --out, any number of inputs
    #[arg(value_name = "FILE", required_unless_present = "list_ops")]
    pub(super) files: Vec<PathBuf>,
    /// What to do, as scale=1280x720:lanczos,denoise=bilateral; given again, it is done after that
    #[arg(long, value_name = "CHAIN", required_unless_present = "list_ops")]
    op: Vec<String>,
    /// Show the operations there are, and end
    #[arg(long)]
    pub(super) list_ops: bool,

    /// Where frames go: a folder for images, or a Y4M or raw file
    #[arg(short, long, value_name = "PATH", help_heading = "Output")]
    pub(super) out: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long, help_heading = "Output")]
    pub(super) overwrite: bool,
    /// Say at the end what each device did; --stats=json for other programs
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table",
        help_heading = "Output"
    )]
    pub(super) stats: Option<StatsFormat>,
    /// The same as --stats=json
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Write what happened when, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) trace: Option<PathBuf>,

    /// The quality of JPEGs, from 1 to 100; 95 if not given
    #[arg(long, value_name = "N", value_parser = values::parse_quality, help_heading = "Output")]
    pub(super) quality: Option<JpegQuality>,
    /// Write raw frames of this format: yuv420p, nv12, rgba, bgra, gbrp and so on, as ffmpeg calls them
    #[arg(long, value_name = "FORMAT", value_parser = values::parse_raw_name, help_heading = "Output")]
    pub(super) raw_out: Option<RawName>,

    /// The input is raw frames of this size: 1920x1080, or 1920x1080:yuv420p; rgb24 if no format is given
    #[arg(long, value_name = "WxH[:FORMAT]", value_parser = values::parse_raw, help_heading = "Frames")]
    pub(super) raw: Option<RawFrames>,
    /// The matrix of the input's colours, which streams do not say: 601, 709 or 2020
    #[arg(long, value_name = "NAME", value_parser = values::parse_matrix, help_heading = "Frames")]
    pub(super) matrix: Option<Matrix>,
    /// The range of the input's codes, if the stream says nothing or lies: limited or full
    #[arg(long, value_name = "NAME", value_parser = values::parse_range, help_heading = "Frames")]
    pub(super) range: Option<Range>,
    /// Frames a second, for an output whose input does not say: 25 or 30000/1001
    #[arg(long, value_name = "RATE", value_parser = values::parse_rate, help_heading = "Frames")]
    pub(super) rate: Option<Ratio>,
    /// Stop after so many frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Frames")]
    pub(super) frames: Option<u64>,

    /// Devices that work on frames: all, cpu, gpu (all of them), gpu:0, gpu:1 and so on
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = values::parse_device, help_heading = "Devices")]
    pub(super) devices: Vec<DeviceChoice>,
    /// How to pick among them: round-robin, least-loaded, weighted, adaptive or earliest-finish
    #[arg(long, value_name = "NAME", value_parser = values::parse_strategy, help_heading = "Devices")]
    strategy: Option<Strategy>,
    /// Shares for --strategy weighted, as gpu0=2,cpu=1
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', value_parser = values::parse_weight, help_heading = "Devices")]
    pub(super) weights: Vec<(DeviceName, f64)>,
    /// Frames on the CPU at once; as many as there are cores if not given
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Devices")]
    pub(super) jobs: Option<u16>,
}

const USAGE: &str = "\
plimsoll frames --op <CHAIN> [OPTIONS] <INPUT> <OUTPUT>
       plimsoll frames --op <CHAIN> [OPTIONS] <FILE>... --out <PATH>";

const EXAMPLES: &str = "\
Frames before an error are delivered, and the exit code is 1. A file appears under its name when it is whole. Where the \
output cannot hold what the chain gives, the conversion is added, and said.

Examples:
  ffmpeg -i in.mkv -f yuv4mpegpipe - | plimsoll frames --op scale=50% - - | ffmpeg -i - out.mkv
  plimsoll frames --op fit=1280x720,unsharp=0.7 frames/*.png --out out/
  ffmpeg -i hdr.mkv -f yuv4mpegpipe -strict -1 - | plimsoll frames --matrix 2020 --op tonemap=bt2390:from=pq,depth=8 - sdr.y4m
  plimsoll frames --op scale=1280x720:lanczos,denoise=bilateral in.y4m out.y4m --stats
  plimsoll frames --op scale=50% in.y4m out.y4m --devices gpu:0,gpu:1 --strategy round-robin
  plimsoll frames --op crop=640x360 --raw 1280x720:rgb24 - - <in.rgb >out.rgb
  plimsoll frames --op rotate=90 in.y4m --out frames/
  plimsoll frames --op trim=100:200,fps=12,scale=50% in.y4m --out still%04d.jpg --quality 80
  plimsoll frames --op crop=640x360 --raw 1280x720:nv12 --raw-out bgra - - <in.nv12 >out.bgra
  plimsoll frames --list-ops";

fn with_list(error: impl Display) -> Stop {
    Stop::usage(format_args!("{error}\n  `plimsoll frames --list-ops` shows how each is written"))
}

/// How many frames come in a second is asked for.
pub(super) fn with_rate(error: impl Display) -> Stop {
    Stop::usage(format_args!("{error} with --rate"))
}

/// The operation that looks at other frames, if there is one.
fn looks_around(operations: &[String]) -> Option<&String> {
    operations.iter().find(|text| text.parse::<Chain>().is_ok_and(|chain| chain.frames_around() > 0))
}

/// How figures are shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StatsFormat {
    /// For people.
    Table,
    /// For other programs.
    Json,
}

impl Args {
    /// Everything after --op, one after the other: which frames go on, and what is done to them, if anything is.
    pub(super) fn chain(&self) -> Result<(Selection, Option<Chain>), Stop> {
        let (mut selection, mut operations) = (Selection::default(), Vec::new());
        for text in Chain::pieces(&self.op.join(",")) {
            match Selection::part(&text) {
                None => operations.push(text),
                Some(part) => {
                    if let Some(before) = looks_around(&operations) {
                        return Err(Stop::usage(format_args!(
                            "{text} after {before} would choose among frames that were made of their neighbours; write it \
                             before {before}, or pipe one run into another"
                        )));
                    }
                    selection = part.and_then(|part| selection.then(part)).map_err(with_list)?;
                }
            }
        }
        let chain = match operations.is_empty() && !selection.is_all() {
            true => None,
            false => Some(operations.join(",").parse::<Chain>().map_err(with_list)?),
        };
        Ok((selection, chain))
    }

    /// Who gives weights wants them used.
    pub(super) fn strategy(&self) -> Result<Strategy, Stop> {
        match (self.strategy, self.weights.is_empty()) {
            (None, true) => Ok(Strategy::default()),
            (None, false) => Ok(Strategy::WeightedCapacity),
            (Some(strategy), true) => Ok(strategy),
            (Some(Strategy::WeightedCapacity), false) => Ok(Strategy::WeightedCapacity),
            (Some(other), false) => {
                Err(Stop::usage(format_args!("--weights are for --strategy weighted; {other} does not look at them")))
            }
        }
    }

    pub(super) fn stats_format(&self) -> Option<StatsFormat> {
        if self.json { Some(StatsFormat::Json) } else { self.stats }
    }
}
