//! `plimsoll array`: streams of frames as Zarr v3 arrays. Reads like a table of contents.
//!
//! | file | what it owns |
//! |---|---|
//! | `args.rs` | what can be typed |
//! | `write.rs` | writing, and what came of it |
//! | `show.rs` | what an array is, whether it is sound, and what one will take |
//! | `place.rs` | folders and buckets |
//! | `bars.rs` | how far each stage is |

mod args;
mod bars;
mod place;
mod show;
mod write;

use std::num::NonZeroUsize;

use plimsoll::machine::{GpuUse, Machine};
use plimsoll::{Orchestrator, profile};

pub(crate) use self::args::Command;
use crate::machine_args::MachineArgs;
use crate::stop::{Ended, Stop, warn};

/// `plimsoll array`.
pub(crate) fn run(command: &Command, machine: &MachineArgs) -> Ended {
    match command {
        Command::Write(args) => write::run(args, machine),
        Command::Info(args) => show::info(args),
        Command::Verify(args) => show::verify(args, machine),
        Command::Plan(args) => show::plan(args, machine),
    }
}

/// GPUs are opened only for work that can use one.
fn orchestrator(machine: &MachineArgs, jobs: Option<NonZeroUsize>, with_gpu: bool) -> Result<Orchestrator, Stop> {
    let mut options = machine.options()?;
    if !with_gpu {
        options.gpus = GpuUse::None;
    }
    options.cpu_slots = jobs.map(usize::from).or(options.cpu_slots);
    let opened = Machine::open(&options);
    opened.problems.iter().for_each(warn);
    let described = Orchestrator::builder().devices(opened.devices);
    if !with_gpu {
        return Ok(described.build());
    }
    // Where stages run is chosen by what they took here before.
    let hardware = profile::hardware();
    let file = profile::file(&hardware).map_err(Stop::failed)?;
    Ok(described.profile(file, Some(hardware)).build())
}
