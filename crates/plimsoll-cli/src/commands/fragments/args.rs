//! What can be typed after `plimsoll fragments`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll::Bytes;
use plimsoll::fragments::{Bits, StoreLimits};

/// Pack, fetch, serve and restore models in fragments: few bytes for a low quality, more raise it.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Make fragments of a safetensors file: levels, checksums, an index
    Pack(PackArgs),
    /// Say what a model is made of, and how good each level is
    Info(InfoArgs),
    /// Fetch a model into the store, as much of it as a quality needs; goes on where it was interrupted
    Pull(PullArgs),
    /// Serve files over HTTP, by ranges
    Serve(ServeArgs),
    /// Make a safetensors file of a model again
    Restore(RestoreArgs),
}

const EXAMPLES: &str = "\
Examples:
  plimsoll fragments pack model.safetensors                       model.frags, levels of 2, 3, 4, 6, 8 bits and exact
  plimsoll fragments info model.frags                             bytes and measured error of each level
  plimsoll fragments serve model.frags                            on http://127.0.0.1:8787/model.frags
  plimsoll fragments pull http://127.0.0.1:8787/model.frags --quality 0.9
  plimsoll fragments restore model.frags -o again.safetensors     the very bytes
  plimsoll fragments restore http://127.0.0.1:8787/model.frags --quality 0.9 -o small.safetensors

Quality is 1 less the relative error (root mean square) of each tensor; at 1 the very bytes come back.

Environment:
  PLIMSOLL_FRAGMENTS=DIR  as --store
  SSL_CERT_FILE=FILE      certificates to trust over HTTPS instead of the system's";

/// What can be typed after `plimsoll fragments pack`.
#[derive(Debug, Args)]
pub(crate) struct PackArgs {
    /// The safetensors file
    pub(super) model: PathBuf,
    /// Where the fragments go; beside the input, ending in .frags, if not given
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Bits that each level knows of a weight: up to five rising numbers from 1 to 8
    #[arg(long, value_name = "N,N,…", default_value_t = Bits::default())]
    pub(super) levels: Bits,
    /// Leave out the level that gives back the very bytes
    #[arg(long)]
    pub(super) no_exact: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

/// What all that write a file have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Replace a file that is there
    #[arg(short, long)]
    pub(super) force: bool,
    /// CPU threads
    #[arg(short, long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Say nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// JSON instead of a sentence
    #[arg(long)]
    pub(super) json: bool,
}

/// What can be typed after `plimsoll fragments info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// The file of fragments, or its address
    pub(super) model: String,
    /// A line for each tensor
    #[arg(long)]
    pub(super) tensors: bool,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// JSON instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

/// Where fetched fragments lie.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// The folder of the store, shared by all processes; below the user's cache folder if not given
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Bytes that the store may hold; what was of use longest ago goes
    #[arg(long, value_name = "SIZE")]
    store_limit: Option<Bytes>,
    /// Bytes of the disk to leave free
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    disk_reserve: Bytes,
}

impl StoreArgs {
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let of_environment = || std::env::var_os("PLIMSOLL_FRAGMENTS").filter(|path| !path.is_empty());
        self.store.clone().or_else(|| of_environment().map(PathBuf::from))
    }

    pub(super) fn limits(&self) -> StoreLimits {
        StoreLimits { bytes: self.store_limit.map(|limit| limit.0), reserve: self.disk_reserve.0 }
    }
}

/// What can be typed after `plimsoll fragments pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The address of a file of fragments
    #[arg(value_name = "URL")]
    pub(super) model: String,
    /// How good each tensor has to be at least: 1 less its relative error
    #[arg(long, value_name = "0…1", default_value = "1", value_parser = parse_quality)]
    pub(super) quality: f64,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// Say nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// JSON instead of a sentence
    #[arg(long)]
    pub(super) json: bool,
}

/// What can be typed after `plimsoll fragments serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The files of fragments
    #[arg(required = true)]
    pub(super) models: Vec<PathBuf>,
    /// Where to listen. Whoever can reach it can read the files: name another address than a loopback one only on purpose
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8787")]
    pub(super) listen: SocketAddr,
    /// One line of JSON when it listens
    #[arg(long)]
    pub(super) json: bool,
}

/// What can be typed after `plimsoll fragments restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The file of fragments, or its address
    pub(super) model: String,
    /// The safetensors file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// How good each tensor has to be at least: 1 less its relative error
    #[arg(long, value_name = "0…1", default_value = "1", value_parser = parse_quality)]
    pub(super) quality: f64,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    #[command(flatten)]
    pub(super) common: Common,
}

fn parse_quality(text: &str) -> Result<f64, String> {
    let quality = text.parse().ok().filter(|quality| (0.0..=1.0).contains(quality));
    quality.ok_or_else(|| "write a number from 0 to 1".to_owned())
}
