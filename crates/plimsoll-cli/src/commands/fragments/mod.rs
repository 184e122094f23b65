//! `plimsoll fragments`: models in fragments. Reads like a table of contents.
//!
//! | file | what it owns |
//! |---|---|
//! | `args.rs` | what can be typed |
//! | `pack.rs` | safetensors to fragments, and back |
//! | `pull.rs` | fetching into the store |
//! | `serve.rs` | serving files by ranges |
//! | `info.rs` | what a model is made of |

mod args;
mod info;
mod pack;
mod pull;
mod serve;

use std::num::NonZeroUsize;

use plimsoll::Orchestrator;
use plimsoll::fragments::{FragmentError, Store, StoreOptions, StoredModel};
use plimsoll::machine::{GpuUse, Machine};

pub(crate) use self::args::Command;
use self::args::StoreArgs;
use crate::machine_args::MachineArgs;
use crate::output;
use crate::stop::{Ended, Stop, warn, with_causes};

/// `plimsoll fragments`.
pub(crate) fn run(command: &Command, machine: &MachineArgs) -> Ended {
    match command {
        Command::Pack(args) => pack::pack(args, machine),
        Command::Info(args) => info::run(args, machine),
        Command::Pull(args) => pull::run(args, machine),
        Command::Serve(args) => serve::run(args),
        Command::Restore(args) => pack::restore(args, machine),
    }
}

/// Files are packed and restored by the CPU: no GPU is opened.
fn orchestrator(machine: &MachineArgs, jobs: Option<NonZeroUsize>) -> Result<Orchestrator, Stop> {
    let mut options = machine.options()?;
    options.gpus = GpuUse::None;
    options.cpu_slots = jobs.map(usize::from).or(options.cpu_slots);
    let opened = Machine::open(&options);
    opened.problems.iter().for_each(warn);
    Ok(Orchestrator::builder().devices(opened.devices).build())
}

fn is_url(name: &str) -> bool {
    name.starts_with("http://") || name.starts_with("https://")
}

/// A model in a file, or behind an address and in the store.
fn open(orchestrator: &Orchestrator, name: &str, store: &StoreArgs) -> Result<StoredModel, Stop> {
    let options = StoreOptions { folder: store.folder(), disk: store.limits(), memory: None };
    let opened = Store::open(orchestrator, &options)
        .and_then(|store| if is_url(name) { store.open_url(name) } else { store.open_file(name.as_ref()) });
    let model = opened.map_err(|error| failed(&error))?;
    if is_url(name) && !model.has_server() {
        warn(format_args!("{name} does not answer; this is the model that was there last time"));
    }
    Ok(model)
}

fn failed(error: &FragmentError) -> Stop {
    match error {
        FragmentError::Stopped => Stop::interrupted("the same command goes on where it stopped".to_owned()),
        FragmentError::File { path, source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => {
            let path = output::clean(path.display());
            Stop::failed(format_args!(
                "{path} is there already; use --force to replace it, or --output to name another"
            ))
        }
        error => Stop::failed(with_causes(error)),
    }
}
