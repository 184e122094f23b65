//! Sharing the card: `plimsoll serve`, and the commands that talk to it. Reads like a table of contents.
//!
//! | file | what it owns |
//! |---|---|
//! | `args.rs` | what can be typed |
//! | `serve.rs` | the daemon |
//! | `run.rs` | a command that holds a lease while it runs |
//! | `hold.rs` | what becomes that command, once the lease is bound to its process |
//! | `child.rs` | that command: its signals and its end |
//! | `who.rs` | who holds what |
//! | `told.rs` | why, and what happened |
//! | `lease.rs` | leases by hand |
//! | `top/` | who holds what, live |

mod args;
mod child;
mod hold;
mod holding;
mod lease;
mod run;
mod serve;
mod told;
mod top;
mod who;

use std::path::PathBuf;

use plimsoll_daemon::client::{Client, ClientError};
use plimsoll_daemon::folder;

pub(crate) use args::{EventsArgs, HoldArgs, LeaseCommand, RunArgs, ServeArgs, SocketArgs, TopArgs, WhoArgs, WhyArgs};
pub(crate) use hold::run as hold;
pub(crate) use lease::run as lease;
pub(crate) use run::run;
pub(crate) use serve::run as serve;
pub(crate) use told::{events, why};
pub(crate) use top::run as top;
pub(crate) use who::run as who;

use crate::stop::Stop;

impl SocketArgs {
    /// Where the daemon is.
    pub(crate) fn path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(folder::socket)
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> Result<Client, Stop> {
        Client::connect(&self.path()).map_err(stop)
    }
}

/// An error of talking to the daemon, with what helps.
fn stop(error: ClientError) -> Stop {
    let failed = Stop::failed(&error);
    match error {
        ClientError::NoDaemon { .. } => failed.with_next("plimsoll serve"),
        _ => failed,
    }
}
