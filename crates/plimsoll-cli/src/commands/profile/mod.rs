//! `plimsoll profile`: the file in which this machine keeps what it measured.
//! Never measures. Only `clear` and `import` change the file.

mod show;

use std::path::PathBuf;

use clap::Subcommand;
use plimsoll::profile;
use plimsoll_runtime::profile_file::{ProfileFile, Warning};
use plimsoll_runtime::today;

use crate::machine_args::MachineArgs;
use crate::output;
use crate::stop::{Ended, Stop, warn};

/// Look at, move or forget what this machine measured
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    Show(show::Args),
    /// Print where the profile is kept
    #[command(after_help = "Example:\n  less \"$(plimsoll profile path)\"")]
    Path,
    /// Forget what was measured
    #[command(after_help = "Example:\n  plimsoll profile clear")]
    Clear,
    /// Copy the profile to a file, for a machine just like this one
    #[command(after_help = "Example:\n  plimsoll profile export cluster.toml")]
    Export {
        /// The file to write
        file: PathBuf,
    },
    /// Take over the profile of a machine just like this one
    #[command(
        after_help = "A profile of other hardware, another driver or another version is refused with the reason.\n\n\
                            Example:\n  plimsoll profile import cluster.toml"
    )]
    Import {
        /// The file to read
        file: PathBuf,
    },
}

const EXAMPLES: &str = "\
Examples:
  plimsoll profile show
  plimsoll profile show --json | jq '.cells[].runs'
  PLIMSOLL_PROFILE=./here.toml plimsoll profile path";

pub(crate) fn run(command: &Command, machine: &MachineArgs) -> Ended {
    let file = profile::file().map_err(Stop::failed)?;
    match command {
        Command::Show(args) => show::run(args, &file, machine),
        Command::Path => output::line(file.path().display()),
        Command::Clear => clear(&file),
        Command::Export { file: to } => {
            file.export(to, today()).map_err(Stop::failed)?;
            output::line(format_args!("The profile is now also at {}.", to.display()))
        }
        Command::Import { file: from } => import(&file, from),
    }
}

fn clear(file: &ProfileFile) -> Ended {
    let path = file.path().display();
    match file.clear().map_err(Stop::failed)? {
        true => output::line(format_args!("Forgot what was measured in {path}.")),
        false => output::line(format_args!("There was no profile at {path}.")),
    }
}

fn import(file: &ProfileFile, from: &std::path::Path) -> Ended {
    let machine = profile::hardware();
    let imported = file.import(from, profile::origin(&machine), today()).map_err(Stop::failed)?;
    warn_of(&imported.warnings);
    let cells = imported.profile.cells().len();
    output::line(format_args!("Took over {cells} cells from {}.", from.display()))?;
    match show::state(&imported.freshness) {
        (_, None) => Ok(()),
        (state, Some(reason)) => output::line(format_args!("The profile is {state}: {reason}.")),
    }
}

fn warn_of(warnings: &[Warning]) {
    warnings.iter().for_each(warn);
}
