//! What can be typed after the commands that share the card.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use plimsoll_core::{Bytes, GrantKind, Priority, SharePolicy};
use plimsoll_daemon::engines::config::ShortGate;
use plimsoll_daemon::wire::{Kind, Urgency};

/// Where the daemon is.
#[derive(Clone, Debug, Args)]
pub(crate) struct SocketArgs {
    /// The daemon's socket; without it PLIMSOLL_SOCKET, or the one in the user's runtime folder
    #[arg(long, value_name = "FILE")]
    pub(super) socket: Option<PathBuf>,
}

/// Share this machine's GPU memory among programs: a socket, loopback HTTP and a dashboard
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(super) socket: SocketArgs,
    /// Where HTTP and the dashboard are served, on this machine only; `off` for nowhere
    #[arg(long, value_name = "ADDRESS", value_parser = parse_http)]
    pub(super) http: Option<Http>,
    /// A TOML file with settings; flags win over it
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// A script that says what devices have, instead of their drivers: for machines without a GPU, and to try things out
    #[arg(long, value_name = "FILE")]
    pub(super) truth: Option<PathBuf>,
    /// Memory to leave to the desktop: 1GiB of each GPU, or gpu0=2GiB; may be given several times
    #[arg(long, value_name = "SIZE", value_parser = parse_reserve)]
    pub(super) reserve: Vec<Reserve>,
    /// Who gives way when there is less than all want: fixed, adaptive, llm-first, diffusion-first, balanced
    #[arg(long, value_name = "NAME")]
    pub(super) policy: Option<SharePolicy>,
    /// A port before an engine's that holds requests until there is room: 11435=ollama:11434; may be given several times
    #[arg(long, value_name = "PORT=ENGINE[:PORT]")]
    pub(super) gate: Vec<ShortGate>,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  plimsoll serve                                share every GPU; the dashboard is at http://127.0.0.1:7878
  plimsoll serve --reserve 1GiB                 leave some of each GPU to the desktop
  plimsoll serve --policy llm-first             images and videos give way before language models
  plimsoll serve --truth script.toml            devices that a file describes
  curl -H \"Authorization: Bearer $(cat $XDG_RUNTIME_DIR/plimsoll/token)\" \\
      -d '{\"name\":\"me\",\"ladder\":[{\"bytes\":1073741824}],\"ttl_ms\":60000}' http://127.0.0.1:7878/api/leases";

/// Where HTTP is served.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    Off,
    At(SocketAddr),
}

fn parse_http(text: &str) -> Result<Http, String> {
    match text {
        "off" => Ok(Http::Off),
        _ => text.parse().map(Http::At).map_err(|_| "write an address such as 127.0.0.1:7878, or off".to_owned()),
    }
}

/// What is left to the desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reserve {
    pub(super) device: Option<String>,
    pub(super) bytes: Bytes,
}

fn parse_reserve(text: &str) -> Result<Reserve, String> {
    let (device, size) = match text.split_once('=') {
        Some((device, size)) => (Some(device.to_owned()), size),
        None => (None, text),
    };
    size.parse().map(|bytes| Reserve { device, bytes }).map_err(|error| format!("{error}"))
}

/// Run a command that holds GPU memory: wait until there is room, hold a lease, give it back on any end
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(super) socket: SocketArgs,
    /// Memory that the command uses of each device
    #[arg(long, value_name = "SIZE")]
    pub(super) vram: Bytes,
    /// Memory with which it can still do its work, if --vram is not to be had
    #[arg(long, value_name = "SIZE")]
    pub(super) min: Option<Bytes>,
    /// The device, or several of which all are needed: gpu0,gpu1; without it any one GPU
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(super) device: Vec<String>,
    /// How urgent: background, low, normal, high (a person waits for it), critical
    #[arg(long, value_name = "LEVEL", default_value = "normal", value_parser = parse_priority)]
    pub(super) priority: Urgency,
    /// What for: llm, image, video, batch, other
    #[arg(long, value_name = "KIND", default_value = "other", value_parser = parse_kind)]
    pub(super) kind: Kind,
    /// How long to wait for room: 60s, 5m; without it as is usual for the kind and priority
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(super) timeout: Option<Duration>,
    /// A shell command to run when memory is asked back, or may be had again: PLIMSOLL_ASKED is step-down, leave or rise,
    /// PLIMSOLL_BYTES what may be kept. If it ends well, the step counts as done; one that has left goes on without a lease
    /// until there is room again
    #[arg(long, value_name = "COMMAND")]
    pub(super) on_recall: Option<String>,
    /// It may be stopped if it neither steps down nor leaves in time
    #[arg(long)]
    pub(super) may_be_stopped: bool,
    /// Its memory is never asked back
    #[arg(long)]
    pub(super) pinned: bool,
    /// Items of a batch that are still to come: it is not disturbed between two of them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) batch: u32,
    /// What people read in lists; without it the command's name
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// If no daemon serves, run the command all the same
    #[arg(long)]
    pub(super) without_daemon: bool,
    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

/// Becomes a command once a lease is bound to its process; `plimsoll run` starts it
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    pub(super) socket: SocketArgs,
    /// The lease; its secret is in the environment
    #[arg(long, value_name = "NUMBER")]
    pub(super) lease: u64,
    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll run --vram 10GiB -- python infer.py
  plimsoll run --vram 10GiB --min 6GiB --priority high --kind llm -- ./server
  plimsoll run --vram 20GiB --device gpu0,gpu1 --timeout 10m -- torchrun train.py
  plimsoll run --vram 8GiB --on-recall 'curl -X POST localhost:8188/free' -- python main.py

The command sees only the devices that it was given (CUDA_VISIBLE_DEVICES and its like), and PLIMSOLL_LEASE. If this program
is killed, the command runs on and its lease stays with it until it ends. If the daemon ends, the next one takes the lease
over.";

/// Show who holds how much of which device, who waits, and what programs without a lease use
#[derive(Debug, Args)]
pub(crate) struct WhoArgs {
    #[command(flatten)]
    pub(super) socket: SocketArgs,
    /// For other programs
    #[arg(long)]
    pub(super) json: bool,
}

/// Show who holds what, live: devices, holders, who waits, what happened
///
/// q quits; ↑ ↓ and the page keys scroll the holders.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(super) socket: SocketArgs,
}

/// Say why a lease waits, or has what it has
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(super) socket: SocketArgs,
    /// The lease's number, or its name
    #[arg(value_name = "JOB")]
    pub(super) job: String,
}

/// Show what happened
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(super) socket: SocketArgs,
    /// Go on as things happen
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Only what came after this event
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) since: u64,
    /// One JSON object a line
    #[arg(long)]
    pub(super) json: bool,
}

/// Leases by hand: list, release, pin, set how urgent they are
#[derive(Debug, Subcommand)]
#[command(after_help = LEASE_EXAMPLES)]
pub(crate) enum LeaseCommand {
    /// List leases that are held, and that wait.
    List(WhoArgs),
    /// End a lease: its owner is told. What it still uses counts as a stranger's.
    Release(LeaseArgs),
    /// Never ask a lease's memory back.
    Pin(LeaseArgs),
    /// Ask it back again when it is needed.
    Unpin(LeaseArgs),
    /// Set how urgent a lease is.
    Priority(PriorityArgs),
}

const LEASE_EXAMPLES: &str = "\
Examples:
  plimsoll lease list
  plimsoll lease priority 12 high
  plimsoll lease pin 12
  plimsoll lease release 12";

#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    #[command(flatten)]
    pub(super) socket: SocketArgs,
    /// The lease's number, or its name
    #[arg(value_name = "JOB")]
    pub(super) job: String,
}

#[derive(Debug, Args)]
pub(crate) struct PriorityArgs {
    #[command(flatten)]
    pub(super) lease: LeaseArgs,
    /// background, low, normal, high, critical
    #[arg(value_name = "LEVEL", value_parser = parse_priority)]
    pub(super) priority: Urgency,
}

fn parse_priority(text: &str) -> Result<Urgency, String> {
    let priority: Priority = text.parse().map_err(|error| format!("{error}"))?;
    Ok(match priority {
        Priority::Background => Urgency::Background,
        Priority::Low => Urgency::Low,
        Priority::Normal => Urgency::Normal,
        Priority::High => Urgency::High,
        Priority::Critical => Urgency::Critical,
    })
}

fn parse_kind(text: &str) -> Result<Kind, String> {
    let kind: GrantKind = text.parse().map_err(|error| format!("{error}"))?;
    Ok(match kind {
        GrantKind::Llm => Kind::Llm,
        GrantKind::Image => Kind::Image,
        GrantKind::Video => Kind::Video,
        GrantKind::Batch => Kind::Batch,
        GrantKind::Other => Kind::Other,
    })
}

/// `500ms`, `60s`, `60`, `5m`, `2h`.
fn parse_time(text: &str) -> Result<Duration, String> {
    let refuse = || format!("'{text}' is no time; write 500ms, 60s, 5m or 2h");
    let digits = text.find(|each: char| !each.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| refuse())?;
    let millis = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(refuse()),
    };
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(parse_time("60"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("5m"), Ok(Duration::from_secs(300)));
        for wrong in ["", "s", "5 m", "-1s", "99999999999999999999s", "9999999999999999h"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn reserves_are_for_each_device_or_for_one() {
        assert_eq!(parse_reserve("1GiB"), Ok(Reserve { device: None, bytes: Bytes::gib(1) }));
        assert_eq!(parse_reserve("gpu0=2GiB"), Ok(Reserve { device: Some("gpu0".to_owned()), bytes: Bytes::gib(2) }));
        assert!(parse_reserve("gpu0=").is_err());
    }
}
