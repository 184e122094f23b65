//! `plimsoll frames`: video frames through a chain of operations, on every device. Reads like a table of contents.
//! Never works on a frame itself.
//!
//! | file | what it owns |
//! |---|---|
//! | `args.rs`, `values.rs` | what can be typed, and its words |
//! | `places.rs`, `numbered.rs` | where frames come from and go to, as typed |
//! | `input.rs`, `sink.rs`, `draft.rs` | opened: streams and images in, streams and images out |
//! | `plan.rs` | the chain with what the output asks for |
//! | `run.rs` | frames from one end to the other |
//! | `live.rs`, `view.rs` | what is going on, on a terminal |
//! | `stats.rs`, `list.rs` | figures at the end; the operations there are |

mod args;
mod draft;
mod input;
mod list;
mod live;
mod numbered;
mod places;
mod plan;
mod run;
mod sink;
mod stats;
mod values;
mod view;

use std::io::{self, IsTerminal};

use plimsoll::frames::{Distributor, DistributorOptions};
use plimsoll::machine::{DeviceName, GpuUse, Machine, MachineOptions};
use plimsoll::regret::RegretMeter;
use plimsoll::{Orchestrator, profile};
use plimsoll_core::DeviceId;

pub(crate) use self::args::Args;
use self::input::Input;
use self::live::Live;
use self::places::Places;
use self::plan::Plan;
use self::run::Told;
use self::stats::Shown;
use self::view::View;
use crate::machine_args::MachineArgs;
use crate::stop::{Ended, Stop, warn};
use crate::{output, stop, trace};

pub(crate) fn run(args: &Args, machine: &MachineArgs) -> Ended {
    if args.list_ops {
        return list::show(args.json);
    }
    let (selection, chain) = args.chain()?;
    let strategy = args.strategy()?;
    let places = Places::of(args, &selection)?;
    let input = Input::open(args, &places.input, &selection)?;
    let plan = Plan::new(chain, &input, &places.output, args)?;
    places.output.check(plan.frames, args.overwrite)?;
    let shown = Shown::new(args, &plan, strategy, places.output.is_stdout());
    let opened = Machine::open(&machine_options(args, machine)?);
    opened.problems.iter().for_each(warn);
    let devices = chosen(args, &opened.names)?;
    let live = Live::new(opened.devices.iter().map(|device| device.facts().slots));
    let meter = RegretMeter::new();
    let described = Orchestrator::builder().listener(live.listener()).listener(meter.listener());
    let hardware = profile::hardware();
    let described = described.profile(profile::file(&hardware).map_err(Stop::failed)?, Some(hardware));
    let (described, trace) = trace::start(described, args.trace.as_deref(), &opened.names)?;
    let described = described.devices(opened.devices).strategy(strategy);
    let weights = weights(args, &opened.names)?;
    let described = weights.into_iter().fold(described, |described, (at, weight)| described.weight(at, weight));
    let distributor = Distributor::new(described.build(), DistributorOptions { devices, rung: None });
    if !shown.as_json() {
        output::aside(output::clean(&plan));
        plan.guesses().iter().for_each(|guesses| output::aside(format_args!("note: {guesses}")));
        plan.notes(&places.output).iter().for_each(warn);
    }
    let view = View::new(&live, &opened.names, plan.frames, io::stderr().is_terminal());
    let told = Told { args, view: &view, names: &opened.names };
    let ended = run::frames(&distributor, input, &places.output, &plan, &told, &stop::on_signal());
    view.clear();
    if let Err(error) = distributor.orchestrator().save_profile() {
        warn(error);
    }
    let regret = meter.regret(distributor.orchestrator());
    drop(distributor);
    trace.finish()?;
    let (stats, ended) = ended?;
    // Figures of nothing would only stand between the user and the error.
    if stats.frames > 0 || ended.is_ok() || shown.as_json() {
        shown.print(&stats, regret)?;
    }
    ended
}

/// No GPU is opened for work that may only run on the CPU.
fn machine_options(args: &Args, machine: &MachineArgs) -> Result<MachineOptions, Stop> {
    let mut options = machine.options()?;
    if args.devices == [values::DeviceChoice::One(DeviceName::Cpu)] {
        options.gpus = GpuUse::None;
    }
    if let Some(jobs) = args.jobs {
        options.cpu_slots = Some(jobs.into());
    }
    Ok(options)
}

/// The devices that may work on frames; none for all of them.
fn chosen(args: &Args, names: &[DeviceName]) -> Result<Vec<DeviceId>, Stop> {
    let mut chosen = Vec::new();
    for choice in &args.devices {
        let meant: Vec<DeviceId> =
            (0..).zip(names).filter(|(_, name)| choice.means(**name)).map(|(at, _)| DeviceId(at)).collect();
        if meant.is_empty() {
            return Err(no_such_device(choice));
        }
        chosen.extend(meant);
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

fn no_such_device(choice: &impl std::fmt::Display) -> Stop {
    Stop::usage(format_args!(
        "there is no device {choice} to use; `plimsoll devices` lists those there are, and --software-gpu adds GPUs made \
         of CPU cores"
    ))
}

fn weights(args: &Args, names: &[DeviceName]) -> Result<Vec<(usize, f64)>, Stop> {
    let place = |(name, weight): &(DeviceName, f64)| {
        let at = names.iter().position(|known| known == name).ok_or_else(|| no_such_device(name))?;
        Ok((at, *weight))
    };
    args.weights.iter().map(place).collect()
}
