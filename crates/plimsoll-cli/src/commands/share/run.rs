//! `plimsoll run`: waits for room, holds a lease while a command runs, and ends as it does.
//! Never keeps the command from running on: a daemon that goes is waited for, and the lease is claimed again.
//! Invariant: the lease is bound to the command's process before it runs (`hold.rs`), so it ends with it, whatever becomes of
//! this program.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use plimsoll::machine::{LEASE, LEASE_BYTES, LEASE_PLACES};
use plimsoll_core::Bytes;
use plimsoll_daemon::client::{Client, ClientError};
use plimsoll_daemon::wire::{Granted, LeaseId, LeaseRequest, Queued, Recall, Request, Rung, Say, Step};

use super::args::RunArgs;
use super::child::{Running, exit_code};
use super::hold::SECRET;
use super::stop;
use crate::output;
use crate::stop::{Ended, Stop, warn};

/// How often the command and its signals are looked at.
const LOOK: Duration = Duration::from_millis(25);
/// How often the place in the queue is asked for.
const PLACE: Duration = Duration::from_secs(1);
/// How often a daemon that has gone is looked for.
const AGAIN: Duration = Duration::from_millis(250);
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

fn request(args: &RunArgs) -> LeaseRequest {
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

fn cannot_start(command: &[String], error: &io::Error) -> Stop {
    Stop::failed(format_args!("cannot run '{}': {error}", command[0]))
}

/// The command as it is started: this program binds the lease to its process and becomes it.
fn holding(socket: &Path, lease: LeaseId, command: &[String]) -> io::Result<Vec<OsString>> {
    let own = std::env::current_exe()?.into_os_string();
    let id = lease.0.to_string();
    let words = ["hold", "--lease", &id, "--socket"].map(OsString::from);
    let command = std::iter::once("--").chain(command.iter().map(String::as_str)).map(OsString::from);
    Ok(std::iter::once(own).chain(words).chain([socket.as_os_str().to_owned()]).chain(command).collect())
}

/// A command that runs on a lease.
struct Holding<'a> {
    args: &'a RunArgs,
    socket: PathBuf,
    /// None while the daemon is gone.
    client: Option<Client>,
    tried: Instant,
    lease: LeaseId,
    secret: String,
    running: Running,
    /// The owner's command, and the rung that is reached when it has ended well.
    stepping: Option<(Child, Option<usize>)>,
    is_over: bool,
}

impl<'a> Holding<'a> {
    fn start(args: &'a RunArgs, socket: PathBuf, mut client: Client, granted: Granted) -> Result<Self, Stop> {
        let lease = granted.lease;
        let mut environment = granted.environment.clone();
        environment.extend([
            (LEASE.to_owned(), lease.0.to_string()),
            (LEASE_BYTES.to_owned(), granted.bytes.to_string()),
            (LEASE_PLACES.to_owned(), granted.places.join("\n")),
            ("PLIMSOLL_LEASE_DEVICES".to_owned(), granted.devices.join(",")),
        ]);
        environment.push((SECRET.to_owned(), granted.secret.clone()));
        let command = match holding(&socket, lease, &args.command) {
            Ok(command) => command,
            Err(error) => {
                let _ = client.give_back(lease);
                return Err(cannot_start(&args.command, &error));
            }
        };
        let running = match Running::start(&command, &environment) {
            Ok(running) => running,
            Err(error) => {
                let _ = client.give_back(lease);
                return Err(cannot_start(&args.command, &error));
            }
        };
        Ok(Self {
            args,
            socket,
            client: Some(client),
            tried: Instant::now(),
            lease,
            secret: granted.secret,
            running,
            stepping: None,
            is_over: false,
        })
    }

    /// Until the command ends; says how.
    fn look_after(mut self) -> Result<i32, Stop> {
        loop {
            if let Some(status) = self.running.look().map_err(Stop::failed)? {
                if let Some(client) = &mut self.client
                    && !self.is_over
                {
                    let _ = client.give_back(self.lease);
                }
                return Ok(exit_code(status));
            }
            self.step_if_done();
            self.hear();
        }
    }

    fn hear(&mut self) {
        let Some(client) = &mut self.client else { return self.find_daemon() };
        match client.hear(Some(LOOK)) {
            Ok(Some(say)) => self.heard(say),
            Ok(None) => {}
            Err(error) => {
                warn(format_args!("{error}; the command goes on, and its lease with the next daemon"));
                self.client = None;
            }
        }
    }

    fn heard(&mut self, say: Say) {
        match say {
            Say::Recall(recall) if recall.lease == self.lease => self.recalled(&recall),
            Say::MayRise { lease, rung } if lease == self.lease => self.may_rise(rung),
            Say::Over { promised, used, device, .. } => warn(format_args!(
                "the command uses {} of {device} and was promised {}; ask for more with --vram",
                Bytes(used),
                Bytes(promised)
            )),
            Say::Ended { lease, why } if lease == self.lease => {
                warn(format_args!("the lease is over, and the command goes on without: {why}"));
                self.is_over = true;
            }
            _ => {}
        }
    }

    fn recalled(&mut self, recall: &Recall) {
        let (asked, keeps) = match recall.step {
            Step::StepDown => ("step-down", format!("step down to {}", Bytes(recall.bytes))),
            Step::Leave => ("leave", "leave".to_owned()),
            Step::Stop => ("stop", "end: it is being stopped".to_owned()),
        };
        warn(format_args!(
            "the command is asked to {keeps} within {} s: {}",
            recall.within_ms.div_ceil(1_000),
            recall.because
        ));
        if recall.step != Step::Stop {
            self.start_step(asked, recall.bytes, recall.rung);
        }
    }

    fn may_rise(&mut self, rung: usize) {
        let (Some(client), Some(_)) = (&mut self.client, &self.args.on_recall) else { return };
        if client.ask(&Request::Rise { lease: self.lease, rung }).is_ok() {
            self.start_step("rise", self.args.vram.0, Some(rung));
        }
    }

    fn start_step(&mut self, asked: &str, bytes: u64, rung: Option<usize>) {
        let Some(command) = &self.args.on_recall else { return };
        let started = Command::new("sh")
            .args(["-c", command])
            .env("PLIMSOLL_ASKED", asked)
            .env("PLIMSOLL_BYTES", bytes.to_string())
            .env("PLIMSOLL_LEASE", self.lease.0.to_string())
            .env("PLIMSOLL_PID", self.running.pid().to_string())
            .spawn();
        match started {
            Ok(child) => self.stepping = Some((child, rung)),
            Err(error) => warn(format_args!("--on-recall could not be run: {error}")),
        }
    }

    /// The owner's command has ended: if well, the step is done.
    fn step_if_done(&mut self) {
        let Some((child, rung)) = &mut self.stepping else { return };
        let ended = match child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) => status.success(),
            Err(_) => false,
        };
        let rung = *rung;
        self.stepping = None;
        match (ended, rung, &mut self.client) {
            (false, ..) => warn("--on-recall failed: the step does not count as done"),
            (true, Some(rung), Some(client)) => {
                if let Err(error) = client.ask(&Request::Stepped { lease: self.lease, rung }) {
                    warn(format_args!("the step was not taken: {error}"));
                }
            }
            (true, ..) => {}
        }
    }

    /// The daemon has gone: the next one knows the lease.
    fn find_daemon(&mut self) {
        std::thread::sleep(LOOK);
        if self.is_over || self.tried.elapsed() < AGAIN {
            return;
        }
        self.tried = Instant::now();
        let Ok(mut client) = Client::connect(&self.socket) else { return };
        match client.ask(&Request::Claim { lease: self.lease, secret: self.secret.clone() }) {
            Ok(_) => {
                // The last daemon may have gone before it was bound to the command.
                let pid = self.running.pid();
                let _ = client.ask(&Request::Attach { lease: self.lease, pid, secret: None });
                self.client = Some(client);
            }
            Err(ClientError::Refused(why)) => {
                warn(format_args!("the lease is over, and the command goes on without: {why}"));
                self.is_over = true;
            }
            Err(_) => {}
        }
    }
}
