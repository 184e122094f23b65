//! What can be typed after `plimsoll array`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll::Bytes;
use plimsoll::array::{ArraySpec, Axis, Codec, DataType, Fill, Levels, Reduction, StageChoice};

use crate::stop::Stop;

/// Write, look at and check Zarr v3 arrays.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Write a stream of frames as an array, with levels and shards.
    Write(Box<WriteArgs>),
    /// Say what an array is: levels, chunks, what is stored.
    Info(StoreArgs),
    /// Read everything and say what is wrong with it.
    Verify(StoreArgs),
    /// Say how much memory writing will take before anything is written, and advise chunks and shards.
    Plan(Box<PlanArgs>),
}

const EXAMPLES: &str = "\
Examples:
  camera | plimsoll array write --shape 0,2048,2304 --dtype u16 --chunk 1,256,256 --shard 64,2048,2304 out.zarr
  plimsoll array write --shape 0,256,256,256 --dtype u16 --chunk 1,64,64,64 --shard 8,256,256,256 \\
      --codec zstd:3 --levels auto -i frames.raw out.zarr
  plimsoll array write … --resume out.zarr     go on where a killed run ended
  plimsoll array info out.zarr
  plimsoll array verify out.zarr
  plimsoll array plan --shape 0,256,256,256 --dtype u16 --memory 2GiB                        advises chunks
  plimsoll array plan --shape 0,256,256,256 --dtype u16 --chunk 1,64,64,64 --memory 2GiB     does this fit?";

/// The array, as it is described.
#[derive(Debug, Args)]
pub(crate) struct Described {
    /// Elements along each dimension, slowest first; 0 as the first for one that grows
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', required = true)]
    shape: Vec<u64>,
    /// What the elements are: i8 to i64, u8 to u64, f16, f32, f64
    #[arg(long, value_name = "TYPE")]
    dtype: DataType,
    /// Elements of a chunk along each dimension; `plimsoll array plan` advises some
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    pub(super) chunk: Option<Vec<u64>>,
    /// Elements of a shard along each dimension: multiples of the chunk's; a file for each chunk if not given
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    shard: Option<Vec<u64>>,
    /// How chunks are packed: none, zstd:LEVEL, gzip:LEVEL, blosc:lz4|zstd:LEVEL:noshuffle|shuffle|bitshuffle
    #[arg(long, value_name = "CODEC", default_value = "zstd:3")]
    codec: Codec,
    /// Resolutions, the full one included: a number, or auto until everything fits into one chunk
    #[arg(long, value_name = "N", default_value = "1")]
    levels: Levels,
    /// How one resolution is made from the one before it: mean, min, max, median, second-highest
    #[arg(long, value_name = "HOW", default_value = "mean")]
    downsample: Reduction,
    /// Names of the dimensions, with unit and scale if there are any: t,z:micrometer:0.5,y,x. Those of space are halved
    #[arg(long, value_name = "AXIS,…", value_delimiter = ',')]
    axes: Option<Vec<Axis>>,
    /// What elements are that nobody wrote; chunks of nothing else are not stored
    #[arg(long, value_name = "VALUE", default_value = "0", allow_hyphen_values = true)]
    fill: Fill,
    /// The order in which a chunk's dimensions are stored, slowest first: 0,2,1
    #[arg(long, value_name = "D,D,…", value_delimiter = ',')]
    order: Option<Vec<usize>>,
    /// A JSON object to keep with the array
    #[arg(long, value_name = "JSON")]
    attributes: Option<String>,
}

impl Described {
    /// The array; chunks must be given.
    pub(super) fn spec(&self) -> Result<ArraySpec, Stop> {
        let needed = "--chunk says how large chunks are; `plimsoll array plan` with the same options advises some";
        let chunk = self.chunk.clone().ok_or_else(|| Stop::usage(needed))?;
        Ok(ArraySpec { chunk, ..self.spec_without_chunk()? })
    }

    /// The array with chunks of one element.
    pub(super) fn spec_without_chunk(&self) -> Result<ArraySpec, Stop> {
        let attributes = match self.attributes.as_deref().map(serde_json::from_str) {
            None => serde_json::Map::new(),
            Some(Ok(serde_json::Value::Object(attributes))) => attributes,
            Some(Ok(_)) => return Err(Stop::usage("--attributes takes a JSON object, such as {\"sample\": \"A3\"}")),
            Some(Err(error)) => return Err(Stop::usage(format_args!("--attributes is no JSON: {error}"))),
        };
        Ok(ArraySpec {
            shard: self.shard.clone(),
            codec: self.codec,
            fill: self.fill,
            levels: self.levels,
            reduction: self.downsample,
            axes: self.axes.clone(),
            order: self.order.clone(),
            attributes,
            ..ArraySpec::new(self.shape.clone(), self.dtype, vec![1; self.shape.len()])
        })
    }
}

/// What can be typed after `plimsoll array write`.
#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    pub(super) array: Described,
    /// Where the array goes: a folder, by custom called something.zarr, or s3://bucket/folder (in programs built with buckets)
    pub(super) store: PathBuf,
    /// The elements, little-endian and row-major; stdin if not given
    #[arg(short, long, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Replace an array that is there
    #[arg(long, conflicts_with = "resume")]
    pub(super) overwrite: bool,
    /// Go on where an earlier run ended; give the input from its beginning again
    #[arg(long)]
    pub(super) resume: bool,
    /// CPU threads
    #[arg(short, long, value_name = "N")]
    pub(super) jobs: Option<std::num::NonZeroUsize>,
    /// Where a stage may run: levels, scatter (into chunks) and shuffle, each =cpu, =gpu or =auto; the bytes are the same
    #[arg(long, value_name = "STAGE=WHERE", value_delimiter = ',', value_parser = parse_stage, help_heading = "Devices")]
    stage: Vec<(usize, StageChoice)>,
    /// Say which stages run on a GPU, in which schedule, and why
    #[arg(long)]
    pub(super) explain: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// JSON instead of a sentence
    #[arg(long)]
    pub(super) json: bool,
}

/// The stages, in the order in which a slab passes through them.
const STAGES: [&str; 3] = ["levels", "scatter", "shuffle"];

impl WriteArgs {
    /// Where each stage may run; what was typed last counts.
    pub(super) fn stages(&self) -> [StageChoice; 3] {
        let mut all = [StageChoice::Auto; 3];
        self.stage.iter().for_each(|(stage, on)| all[*stage] = *on);
        all
    }
}

fn parse_stage(text: &str) -> Result<(usize, StageChoice), String> {
    let parts = text.split_once('=');
    let stage = parts.and_then(|(name, _)| STAGES.iter().position(|known| *known == name));
    let on = parts.and_then(|(_, on)| match on {
        "auto" => Some(StageChoice::Auto),
        "cpu" => Some(StageChoice::Cpu),
        "gpu" => Some(StageChoice::Gpu),
        _ => None,
    });
    let wrong = || "write a stage and where: levels, scatter or shuffle, =cpu, =gpu or =auto".to_owned();
    stage.zip(on).ok_or_else(wrong)
}

/// What can be typed after `plimsoll array info` and `verify`.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The folder of the array, or s3://bucket/folder
    pub(super) store: PathBuf,
    /// JSON instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

/// What can be typed after `plimsoll array plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(super) array: Described,
    /// What it may take: fails if it takes more, and says which chunks and shards would not; half of what is free now if not given
    #[arg(long, value_name = "SIZE")]
    pub(super) memory: Option<Bytes>,
    /// CPU threads
    #[arg(short, long, value_name = "N")]
    pub(super) jobs: Option<std::num::NonZeroUsize>,
    /// JSON instead of a table
    #[arg(long)]
    pub(super) json: bool,
}
