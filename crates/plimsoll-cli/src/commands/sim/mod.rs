//! `plimsoll sim`: the real scheduler in virtual time, on boxes that need not exist.

pub(crate) mod fuzz;

use clap::Subcommand;

/// Play the scheduler in virtual time, without any device
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fuzz(fuzz::Args),
}
