//! `plimsoll run`: waits for room, runs a command on a lease, and ends as it does.
//! Never looks after the command itself: that is `holding.rs`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_core::Bytes;
use plimsoll_daemon::client::{Client, ClientError};
use plimsoll_daemon::wire::{Granted, LeaseRequest, Queued, Request, Rung, Say};

use super::args::RunArgs;
use super::child::{Running, exit_code};
use super::holding::Holding;
use super::stop;
use crate::output;
use crate::stop::{Ended, Stop, warn};

/// How often the command and its signals are looked at.
pub(super) const LOOK: Duration = Duration::from_millis(25);
/// How often the place in the queue is asked for.
const PLACE: Duration = Duration::from_secs(1);
/// The quality of a lower rung is at least this: that of half the memory is not known to be worse.
const QUALITY_MIN: f64 = 0.4;

/// `plimsoll run`.
pub(crate) fn run(args: &RunArgs) -> Ended {
    if args.min.is_some_and(|min| min > args.vram) {
        return Err(Stop::usage("--min is what the command can do with less than --vram; it is more"));
    }
    let socket = args.socket.path();
    let mut client = match Client::connect(&socket) {
        Ok(client) => client,
        Err(error @ ClientError::NoDaemon { .. }) if args.without_daemon => {
            warn(format_args!("{error}; the command runs without a lease"));
            return end(look_after_alone(&args.command)?);
        }
        Err(error @ ClientError::NoDaemon { .. }) => {
            let next = "plimsoll serve, or plimsoll run --without-daemon …";
            return Err(Stop::failed(format_args!("{error}")).with_next(next));
        }
        Err(error) => return Err(stop(error)),
    };
    let granted = wait_for_room(&mut client, request(args)).map_err(stop)?;
    let code = Holding::start(args, socket, client, granted)?.look_after()?;
    end(code)
}

/// Ends as the command did.
fn end(code: i32) -> Ended {
    match code {
        0 => Ok(()),
        code => std::process::exit(code),
    }
}

pub(super) fn request(args: &RunArgs) -> LeaseRequest {
    let rung = |bytes: Bytes, quality| Rung { bytes: bytes.0, quality, switch_ms: 0 };
    let lower = args.min.filter(|min| *min < args.vram).map(|min| {
        let share = min.0 as f64 / args.vram.0.max(1) as f64;
        rung(min, share.max(QUALITY_MIN))
    });
    let program = PathBuf::from(&args.command[0]);
    let program =
        program.file_name().map_or_else(|| args.command[0].clone(), |name| name.to_string_lossy().into_owned());
    LeaseRequest {
        name: args.name.clone().unwrap_or(program),
        kind: args.kind,
        priority: args.priority,
        ladder: std::iter::once(rung(args.vram, 1.0)).chain(lower).collect(),
        devices: args.device.clone(),
        timeout_ms: args.timeout.map(|timeout| timeout.as_millis() as u64),
        pinned: args.pinned,
        may_be_stopped: args.may_be_stopped,
        batch_items: args.batch,
        pid: None,
        ttl_ms: None,
    }
}

fn wait_for_room(client: &mut Client, request: LeaseRequest) -> Result<Granted, ClientError> {
    let lease = match client.lease(request)? {
        Say::Granted(granted) => return Ok(granted),
        Say::Queued(queued) => {
            show_place(&queued, true);
            queued.lease
        }
        Say::Refused { why, .. } => return Err(ClientError::Refused(why)),
        other => return Err(ClientError::Nonsense(format!("{other:?}"))),
    };
    loop {
        if let Some(granted) = client.wait_for(lease, Some(PLACE))? {
            clear_place();
            return Ok(granted);
        }
        match client.ask(&Request::Heartbeat { lease }) {
            Ok(Say::Queued(queued)) => show_place(&queued, false),
            Ok(Say::Granted(granted)) => {
                clear_place();
                return Ok(granted);
            }
            // It was refused in between: the news say why.
            Ok(_) | Err(ClientError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
}

/// On a terminal one line that changes; elsewhere one line, once.
fn show_place(queued: &Queued, is_first: bool) {
    let place = match queued.before {
        0 => "next".to_owned(),
        before => format!("{before} before it"),
    };
    let estimate = queued.estimate_ms.map_or_else(String::new, |ms| format!(", about {} s", ms.div_ceil(1_000)));
    let text = output::clean_line(format_args!("waiting for room ({place}{estimate}): {}", queued.reason));
    if io::stderr().is_terminal() {
        let width = usize::from(output::width().unwrap_or(80)).saturating_sub(1);
        let text = console::truncate_str(&text, width, "…");
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
    } else if is_first {
        output::aside(text);
    }
}

fn clear_place() {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

fn look_after_alone(command: &[String]) -> Result<i32, Stop> {
    let mut running = Running::start(command, &[]).map_err(|error| cannot_start(command, &error))?;
    loop {
        if let Some(status) = running.look().map_err(Stop::failed)? {
            return Ok(exit_code(status));
        }
        std::thread::sleep(LOOK);
    }
}

pub(super) fn cannot_start(command: &[String], error: &io::Error) -> Stop {
    Stop::failed(format_args!("cannot run '{}': {error}", command[0]))
}
