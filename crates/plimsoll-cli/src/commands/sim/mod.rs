//! `plimsoll sim`: the real scheduler in virtual time, on boxes that need not exist.

pub(crate) mod fuzz;
pub(crate) mod replay;

use clap::Subcommand;

use crate::stop::Ended;

/// Play the scheduler in virtual time, without any device
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Replay(replay::Args),
    Fuzz(fuzz::Args),
}

pub(crate) fn run(command: &Command) -> Ended {
    match command {
        Command::Replay(args) => replay::run(args),
        Command::Fuzz(args) => fuzz::run(args),
    }
}
