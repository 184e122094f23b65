//! The `plimsoll` binary. Reads like a table of contents: one line for each command, its work in `commands/`.
//! Never decides or measures anything itself.

#![cfg_attr(
    not(all(feature = "score", feature = "frames", feature = "pack", feature = "array", feature = "fragments")),
    allow(dead_code, reason = "what the workloads share is idle in a build without them")
)]

mod allocator;
mod args;
mod commands;
mod drivers;
mod machine_args;
mod output;
mod progress;
mod std_streams;
mod stop;
mod trace;

use std::process::ExitCode;

use args::{Cli, Command};
#[cfg(feature = "array")]
use commands::array;
#[cfg(feature = "fragments")]
use commands::fragments;
#[cfg(feature = "frames")]
use commands::frames;
#[cfg(feature = "pack")]
use commands::pack;
#[cfg(feature = "score")]
use commands::score;
#[cfg(all(feature = "serve", unix))]
use commands::share;
use commands::{bench, completions, devices, profile, sim};

fn main() -> ExitCode {
    let cli = Cli::typed();
    allocator::prepare(&cli.machine);
    drivers::prepare(&cli.machine);
    plimsoll::book::on_warning(|warning| {
        stop::warn(format_args!("{warning} (PLIMSOLL_BOOK names another folder, PLIMSOLL_ALONE=1 does without)"));
    });
    let ended = match &cli.command {
        #[cfg(feature = "score")]
        Command::Score(args) => score::run(args, &cli.machine),
        #[cfg(feature = "frames")]
        Command::Frames(args) => frames::run(args, &cli.machine),
        #[cfg(feature = "pack")]
        Command::Pack(args) => pack::pack(args, &cli.machine),
        #[cfg(feature = "pack")]
        Command::Unpack(args) => pack::unpack(args, &cli.machine),
        #[cfg(feature = "array")]
        Command::Array(command) => array::run(command, &cli.machine),
        #[cfg(feature = "fragments")]
        Command::Fragments(command) => fragments::run(command, &cli.machine),
        #[cfg(all(feature = "serve", unix))]
        Command::Serve(args) => share::serve(args),
        #[cfg(all(feature = "serve", unix))]
        Command::Run(args) => share::run(args),
        #[cfg(all(feature = "serve", unix))]
        Command::Hold(args) => share::hold(args),
        #[cfg(all(feature = "serve", unix))]
        Command::Who(args) => share::who(args),
        #[cfg(all(feature = "serve", unix))]
        Command::Lease(command) => share::lease(command),
        #[cfg(all(feature = "serve", unix))]
        Command::Why(args) => share::why(args),
        #[cfg(all(feature = "serve", unix))]
        Command::Events(args) => share::events(args),
        #[cfg(all(feature = "serve", unix))]
        Command::Top(args) => share::top(args),
        Command::Devices(args) => devices::run(args, &cli.machine),
        Command::Bench(args) => bench::run(args, &cli.machine),
        Command::Profile(command) => profile::run(command, &cli.machine),
        Command::Sim(command) => sim::run(command),
        Command::Completions(args) => completions::run(args),
    };
    stop::exit_code(ended)
}
