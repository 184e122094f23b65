//! `plimsoll profile`: the file in which this machine keeps what it measured.
//! Never measures. Only `clear`, `forget` and `import` change the file.

mod failures;
mod show;

use std::path::PathBuf;

use clap::Subcommand;
use plimsoll::profile;
use plimsoll_core::profile::Hardware;
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
    /// Forget where memory ran out and what devices cannot do, and keep what was measured
    #[command(after_help = "Everything is then tried again.\n\n\
                            Examples:\n  plimsoll profile forget\n  plimsoll profile forget ssim2")]
    Forget {
        /// Of this workload only, by its name in `plimsoll profile show`
        workload: Option<String>,
    },
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
  plimsoll profile forget
  PLIMSOLL_PROFILE=./here.toml plimsoll profile path";

pub(crate) fn run(command: &Command, machine: &MachineArgs) -> Ended {
    let hardware = profile::hardware();
    let file = profile::file(&hardware).map_err(Stop::failed)?;
    match command {
        Command::Show(args) => show::run(args, &file, &hardware, machine),
        Command::Path => output::line(file.path().display()),
        Command::Clear => clear(&file),
        Command::Forget { workload } => forget(&file, &hardware, workload.as_deref()),
        Command::Export { file: to } => {
            file.export(to, today()).map_err(Stop::failed)?;
            output::line(format_args!("The profile is now also at {}.", to.display()))
        }
        Command::Import { file: from } => import(&file, &hardware, from),
    }
}

fn clear(file: &ProfileFile) -> Ended {
    let path = file.path().display();
    match file.clear().map_err(Stop::failed)? {
        true => output::line(format_args!("Forgot what was measured in {path}.")),
        false => output::line(format_args!("There was no profile at {path}.")),
    }
}

fn forget(file: &ProfileFile, hardware: &Hardware, workload: Option<&str>) -> Ended {
    let forgotten = file.forget_failures(profile::origin(hardware), workload, today()).map_err(Stop::failed)?;
    let of = workload.map_or_else(String::new, |workload| format!(" of {workload}"));
    match forgotten {
        0 => output::line(format_args!("No failure{of} was remembered in {}.", file.path().display())),
        1 => output::line(format_args!("Forgot 1 failure{of}; it is tried again.")),
        many => output::line(format_args!("Forgot {many} failures{of}; they are tried again.")),
    }
}

fn import(file: &ProfileFile, hardware: &Hardware, from: &std::path::Path) -> Ended {
    let imported = file.import(from, profile::origin(hardware), today()).map_err(Stop::failed)?;
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
