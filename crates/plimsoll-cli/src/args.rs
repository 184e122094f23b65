//! What can be typed: the commands, and the flags that hold for all of them.
//! Never acts on any of it.

use clap::{Parser, Subcommand};

#[cfg(feature = "array")]
use crate::commands::array;
#[cfg(feature = "fragments")]
use crate::commands::fragments;
#[cfg(feature = "frames")]
use crate::commands::frames;
#[cfg(feature = "pack")]
use crate::commands::pack;
#[cfg(feature = "score")]
use crate::commands::score;
#[cfg(all(feature = "serve", unix))]
use crate::commands::share;
use crate::commands::{bench, completions, devices, profile, sim};
use crate::machine_args::MachineArgs;

/// Loads every GPU and CPU in the machine to the line, never past it.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, arg_required_else_help = true, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What was typed, or else the process ends and says why.
    pub(crate) fn typed() -> Self {
        #[cfg(feature = "pack")]
        if let Some(typed) = short::Cli::typed(std::env::args_os()) {
            return typed;
        }
        Self::parse()
    }
}

/// The commands that may be over in a moment, by themselves: to describe all the others takes longer than to pack a small
/// file. Whatever is not a plain call of theirs, such as a mistake or a wish for help, is for the whole description.
#[cfg(feature = "pack")]
mod short {
    use std::ffi::OsString;

    use clap::{Parser, Subcommand};

    use crate::commands::pack;
    use crate::machine_args::MachineArgs;

    #[derive(Debug, Parser)]
    #[command(name = "plimsoll")]
    pub(super) struct Cli {
        #[command(flatten)]
        machine: MachineArgs,
        #[command(subcommand)]
        command: Command,
    }

    #[derive(Debug, Subcommand)]
    enum Command {
        Pack(Box<pack::PackArgs>),
        Unpack(Box<pack::UnpackArgs>),
    }

    impl Cli {
        pub(super) fn typed(words: impl Iterator<Item = OsString>) -> Option<super::Cli> {
            let words: Vec<OsString> = words.collect();
            if !words.get(1).is_some_and(|name| name == "pack" || name == "unpack") {
                return None;
            }
            let Self { machine, command } = Self::try_parse_from(words).ok()?;
            let command = match command {
                Command::Pack(args) => super::Command::Pack(args),
                Command::Unpack(args) => super::Command::Unpack(args),
            };
            Some(super::Cli { machine, command })
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    // Boxed: these have by far the most flags.
    #[cfg(feature = "score")]
    Score(Box<score::Args>),
    #[cfg(feature = "frames")]
    Frames(Box<frames::Args>),
    #[cfg(feature = "pack")]
    Pack(Box<pack::PackArgs>),
    #[cfg(feature = "pack")]
    Unpack(Box<pack::UnpackArgs>),
    #[cfg(feature = "array")]
    #[command(subcommand)]
    Array(array::Command),
    #[cfg(feature = "fragments")]
    #[command(subcommand)]
    Fragments(fragments::Command),
    #[cfg(all(feature = "serve", unix))]
    Serve(share::ServeArgs),
    #[cfg(all(feature = "serve", unix))]
    Run(Box<share::RunArgs>),
    #[cfg(all(feature = "serve", unix))]
    #[command(hide = true)]
    Hold(share::HoldArgs),
    #[cfg(all(feature = "serve", unix))]
    Who(share::WhoArgs),
    #[cfg(all(feature = "serve", unix))]
    #[command(subcommand)]
    Lease(share::LeaseCommand),
    #[cfg(all(feature = "serve", unix))]
    Why(share::WhyArgs),
    #[cfg(all(feature = "serve", unix))]
    Events(share::EventsArgs),
    #[cfg(all(feature = "serve", unix))]
    Top(share::TopArgs),
    Devices(devices::Args),
    Bench(bench::Args),
    #[command(subcommand)]
    Profile(profile::Command),
    #[command(subcommand)]
    Sim(sim::Command),
    Completions(completions::Args),
}

const EXAMPLES: &str = "\
Examples:
  plimsoll score ref.png variants/*          how good is each?
  plimsoll frames --op blur=2 a.y4m b.y4m    the same to every frame of a video
  plimsoll pack big.tar                      a standard .zst or .gz
  plimsoll unpack big.tar.zst                any zstd or gzip file
  plimsoll array write … out.zarr < raw      frames as a Zarr v3 array
  plimsoll fragments pack model.safetensors  a model in levels of quality
  plimsoll serve                             share the GPU among programs
  plimsoll run --vram 10GiB -- CMD           a command, once there is room
  plimsoll who                               who holds how much of which device
  plimsoll devices                           what is here, and does it work?
  plimsoll devices --memory-limit gpu0=6GiB  leave the rest to the desktop
  plimsoll bench --quick                     measure what each device is good at
  plimsoll profile show                      what was measured here
  plimsoll sim replay --graph FILE.tsv       a task graph on any box
  plimsoll sim fuzz --seeds 10000            random boxes, work and faults

Environment:
  PLIMSOLL_MEMORY_LIMIT=SIZE  as --memory-limit
  PLIMSOLL_NO_GPU=1           as --no-gpu
  PLIMSOLL_SOFTWARE_GPU=1     as --software-gpu
  PLIMSOLL_ALONE=1            do not share memory with other runs
  PLIMSOLL_BOOK=FOLDER        where runs say what they use, to share it
  PLIMSOLL_SOCKET=FILE        as --socket
  PLIMSOLL_PROFILE=FILE       keep what was measured in this file";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_shown_first_fits_eighty_columns() {
        assert!(EXAMPLES.lines().all(|line| line.chars().count() <= 80));
    }

    /// What the short description takes, it takes as the whole one does; the rest it leaves alone.
    #[cfg(feature = "pack")]
    #[test]
    fn a_plain_call_means_the_same_by_the_short_description() {
        for (line, is_plain) in [
            ("plimsoll unpack a.zst", true),
            ("plimsoll unpack -q --force -o out --range 1KiB..2KiB --limit 1GiB -j 2 a.zst", true),
            ("plimsoll pack --memory-limit 1GiB --no-gpu -f gzip -l 9 a b", true),
            ("plimsoll pack --method staged --stage match=cpu --filter delta:u16 --stats -c -", true),
            ("plimsoll pack --help", false),
            ("plimsoll pack -l x", false),
            ("plimsoll unpack --no-such-flag", false),
            ("plimsoll unpack --version", false),
            ("plimsoll --no-gpu pack a", false),
            ("plimsoll devices", false),
            ("plimsoll", false),
        ] {
            let short = short::Cli::typed(line.split(' ').map(Into::into)).map(|typed| format!("{typed:?}"));
            let whole = Cli::try_parse_from(line.split(' ')).map(|typed| format!("{typed:?}"));
            assert_eq!(short.is_some(), is_plain, "{line}");
            assert!(short.is_none() || short == whole.ok(), "{line}");
        }
    }
}
