//! What `plimsoll run` starts: it binds the lease to its own process and then becomes the command, so that the command never
//! runs without it, whatever becomes of `plimsoll run` in the meantime.
//! Never runs the command on a lease that is over: whoever held it is gone, and others may have its bytes.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use plimsoll_daemon::client::{Client, ClientError};
use plimsoll_daemon::wire::{LeaseId, Request};

use super::args::HoldArgs;
use super::stop;
use crate::stop::{Ended, Stop, warn};

/// Has the lease's secret; the command does not see it.
pub(super) const SECRET: &str = "PLIMSOLL_LEASE_SECRET";
/// How long a daemon that has gone is waited for: the next one knows the lease.
const DAEMON_WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked for.
const AGAIN: Duration = Duration::from_millis(100);

/// `plimsoll hold`.
pub(crate) fn run(args: &HoldArgs) -> Ended {
    let secret = std::env::var(SECRET)
        .map_err(|_| Stop::usage(format_args!("{SECRET} is not set; use plimsoll run, which sets it")))?;
    bind(args, &secret)?;
    let (program, rest) = args.command.split_first().ok_or_else(|| Stop::usage("no command is named"))?;
    let error = Command::new(program).args(rest).env_remove(SECRET).exec();
    Err(Stop::failed(format_args!("cannot run '{program}': {error}")))
}

fn bind(args: &HoldArgs, secret: &str) -> Ended {
    let (lease, pid) = (LeaseId(args.lease), std::process::id());
    let attach = Request::Attach { lease, pid, secret: Some(secret.to_owned()) };
    let end = Instant::now() + DAEMON_WITHIN;
    loop {
        match Client::connect(&args.socket.path()).and_then(|mut client| client.ask(&attach)) {
            Ok(_) => return Ok(()),
            Err(ClientError::Refused(why)) => {
                return Err(Stop::failed(format_args!("the command was not started, its lease is over: {why}")));
            }
            Err(error @ (ClientError::NoDaemon { .. } | ClientError::Gone(_))) if Instant::now() > end => {
                warn(format_args!("{error}; the command runs, and its lease is bound to it by the next daemon"));
                return Ok(());
            }
            Err(ClientError::NoDaemon { .. } | ClientError::Gone(_)) => std::thread::sleep(AGAIN),
            Err(error) => return Err(stop(error)),
        }
    }
}
