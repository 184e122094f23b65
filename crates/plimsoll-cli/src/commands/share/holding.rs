//! A command that runs on a lease: it hears what is asked of it, steps down, leaves, comes back, and is looked after to its end.
//! Never keeps the command from running on: a daemon that goes is waited for, and the lease is claimed again.
//! Invariant: the lease is bound to the command's process before it runs (`hold.rs`), so it ends with it, whatever becomes of
//! this program.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use plimsoll::machine::{LEASE, LEASE_BYTES, LEASE_PLACES};
use plimsoll_core::Bytes;
use plimsoll_daemon::client::{Client, ClientError};
use plimsoll_daemon::wire::{Granted, LeaseId, LeaseRequest, Recall, Request, Say, Step};

use super::args::RunArgs;
use super::child::{Running, exit_code};
use super::hold::SECRET;
use super::run::{LOOK, cannot_start, request};
use crate::stop::{Stop, warn};

/// How often a daemon that has gone is looked for.
const AGAIN: Duration = Duration::from_millis(250);
/// How long after a refusal a command that has left asks for its memory again.
const BACK: Duration = Duration::from_secs(5);

/// What the owner's command is run for.
#[derive(Copy, Clone)]
enum Wanted {
    /// To be on this rung of its ladder.
    Rung(usize),
    /// To use nothing.
    Leave,
    /// To use again what it has been given anew.
    Return,
}

/// How a command stands with its lease.
enum Standing {
    Holds,
    /// It has given its memory back, as asked, and runs on; its next lease if it waits for one, and when it asks for one.
    Away {
        waits: Option<LeaseId>,
        asks_at: Instant,
    },
    /// It runs on without.
    Over,
}

/// A command that runs on a lease.
pub(super) struct Holding<'a> {
    args: &'a RunArgs,
    socket: PathBuf,
    /// None while the daemon is gone.
    client: Option<Client>,
    tried: Instant,
    lease: LeaseId,
    secret: String,
    /// The command knows no others.
    devices: Vec<String>,
    running: Running,
    /// The owner's command, and what is done when it has ended well.
    stepping: Option<(Child, Wanted)>,
    standing: Standing,
}

impl<'a> Holding<'a> {
    pub(super) fn start(
        args: &'a RunArgs,
        socket: PathBuf,
        mut client: Client,
        granted: Granted,
    ) -> Result<Self, Stop> {
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
            devices: granted.devices,
            running,
            stepping: None,
            standing: Standing::Holds,
        })
    }

    /// Until the command ends; says how.
    pub(super) fn look_after(mut self) -> Result<i32, Stop> {
        loop {
            if let Some(status) = self.running.look().map_err(Stop::failed)? {
                if let Some(client) = &mut self.client
                    && matches!(self.standing, Standing::Holds)
                {
                    let _ = client.give_back(self.lease);
                }
                return Ok(exit_code(status));
            }
            self.step_if_done();
            self.ask_to_return();
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
            Say::Ended { lease, why } if lease == self.lease && matches!(self.standing, Standing::Holds) => {
                self.is_over(&why);
            }
            Say::Granted(granted) if self.waits_for(granted.lease) => self.returned(granted),
            Say::Refused { lease: Some(lease), .. } | Say::Ended { lease, .. } if self.waits_for(lease) => {
                self.standing = Standing::Away { waits: None, asks_at: Instant::now() + BACK };
            }
            _ => {}
        }
    }

    /// A lease ends with its command too: nothing goes on then.
    fn is_over(&mut self, why: &str) {
        self.standing = Standing::Over;
        if matches!(self.running.look(), Ok(None)) {
            warn(format_args!("the lease is over, and the command goes on without: {why}"));
        }
    }

    fn waits_for(&self, lease: LeaseId) -> bool {
        matches!(self.standing, Standing::Away { waits: Some(waits), .. } if waits == lease)
    }

    /// The command uses nothing any more: others may, as soon as the driver says the same.
    fn left(&mut self) {
        let (Some(client), Standing::Holds) = (&mut self.client, &self.standing) else { return };
        if let Err(error) = client.give_back(self.lease) {
            return warn(format_args!("the lease was not taken back: {error}"));
        }
        warn("the command has left its memory to others, and goes on; it is told when there is room again");
        self.standing = Standing::Away { waits: None, asks_at: Instant::now() };
    }

    /// Asks for the same memory once more, of the same devices.
    fn ask_to_return(&mut self) {
        let (Some(client), Standing::Away { waits: None, asks_at }) = (&mut self.client, &self.standing) else {
            return;
        };
        if Instant::now() < *asks_at {
            return;
        }
        let answer = client.lease(LeaseRequest { devices: self.devices.clone(), ..request(self.args) });
        let waits = match answer {
            Ok(Say::Granted(granted)) => return self.returned(granted),
            Ok(Say::Queued(queued)) => Some(queued.lease),
            // It never fits now, or the daemon goes: whoever hears next sees that.
            _ => None,
        };
        self.standing = Standing::Away { waits, asks_at: Instant::now() + BACK };
    }

    fn returned(&mut self, granted: Granted) {
        let Some(client) = &mut self.client else { return };
        let attached = client.ask(&Request::Attach { lease: granted.lease, pid: self.running.pid(), secret: None });
        if attached.is_err() {
            // The command has just ended, or the daemon has.
            let _ = client.give_back(granted.lease);
            self.standing = Standing::Away { waits: None, asks_at: Instant::now() + BACK };
            return;
        }
        (self.lease, self.secret, self.standing) = (granted.lease, granted.secret, Standing::Holds);
        self.start_step("rise", granted.bytes, Wanted::Return);
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
        match (recall.step, recall.rung) {
            (Step::Leave, _) => self.start_step(asked, 0, Wanted::Leave),
            (Step::StepDown, Some(rung)) => self.start_step(asked, recall.bytes, Wanted::Rung(rung)),
            (Step::StepDown, None) | (Step::Stop, _) => {}
        }
    }

    fn may_rise(&mut self, rung: usize) {
        let (Some(client), Some(_)) = (&mut self.client, &self.args.on_recall) else { return };
        if client.ask(&Request::Rise { lease: self.lease, rung }).is_ok() {
            self.start_step("rise", self.args.vram.0, Wanted::Rung(rung));
        }
    }

    fn start_step(&mut self, asked: &str, bytes: u64, wanted: Wanted) {
        let Some(command) = &self.args.on_recall else { return };
        let started = Command::new("sh")
            .args(["-c", command])
            .env("PLIMSOLL_ASKED", asked)
            .env("PLIMSOLL_BYTES", bytes.to_string())
            .env("PLIMSOLL_LEASE", self.lease.0.to_string())
            .env("PLIMSOLL_PID", self.running.pid().to_string())
            .spawn();
        match started {
            Ok(child) => self.stepping = Some((child, wanted)),
            Err(error) => warn(format_args!("--on-recall could not be run: {error}")),
        }
    }

    /// The owner's command has ended: if well, the step is done.
    fn step_if_done(&mut self) {
        let Some((child, wanted)) = &mut self.stepping else { return };
        let is_well = match child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) => status.success(),
            Err(_) => false,
        };
        let wanted = *wanted;
        self.stepping = None;
        match wanted {
            _ if !is_well => warn("--on-recall failed: the step does not count as done"),
            Wanted::Rung(rung) => self.stepped(rung),
            Wanted::Leave => self.left(),
            Wanted::Return => {}
        }
    }

    fn stepped(&mut self, rung: usize) {
        let Some(client) = &mut self.client else { return };
        if let Err(error) = client.ask(&Request::Stepped { lease: self.lease, rung }) {
            warn(format_args!("the step was not taken: {error}"));
        }
    }

    /// The daemon has gone: the next one knows the lease.
    fn find_daemon(&mut self) {
        std::thread::sleep(LOOK);
        if matches!(self.standing, Standing::Over) || self.tried.elapsed() < AGAIN {
            return;
        }
        self.tried = Instant::now();
        let Ok(client) = Client::connect(&self.socket) else { return };
        match &mut self.standing {
            // It knows nothing of who waited.
            Standing::Away { waits, .. } => {
                *waits = None;
                self.client = Some(client);
            }
            Standing::Holds | Standing::Over => self.claim(client),
        }
    }

    fn claim(&mut self, mut client: Client) {
        match client.ask(&Request::Claim { lease: self.lease, secret: self.secret.clone() }) {
            Ok(_) => {
                // The last daemon may have gone before it was bound to the command.
                let pid = self.running.pid();
                let _ = client.ask(&Request::Attach { lease: self.lease, pid, secret: None });
                self.client = Some(client);
            }
            Err(ClientError::Refused(why)) => self.is_over(&why),
            Err(_) => {}
        }
    }
}

/// The command as it is started: this program binds the lease to its process and becomes it.
fn holding(socket: &Path, lease: LeaseId, command: &[String]) -> io::Result<Vec<OsString>> {
    let own = std::env::current_exe()?.into_os_string();
    let id = lease.0.to_string();
    let words = ["hold", "--lease", &id, "--socket"].map(OsString::from);
    let command = std::iter::once("--").chain(command.iter().map(String::as_str)).map(OsString::from);
    Ok(std::iter::once(own).chain(words).chain([socket.as_os_str().to_owned()]).chain(command).collect())
}
