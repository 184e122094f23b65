//! `plimsoll score`: image quality metrics of files, on every device. Reads like a table of contents.
//! Never computes a score itself.

mod args;
mod columns;
mod explain;
mod list;
mod outputs;
mod page;
mod pairs;
mod resume;
mod summary;
mod table;

use plimsoll::machine::{DeviceName, GpuUse, Machine, MachineOptions};
use plimsoll::score::{Sweep, SweepOptions};
use plimsoll::{Builder, Orchestrator, Shutdown, profile};
use plimsoll_core::DeviceId;
use plimsoll_results::report;

pub(crate) use self::args::Args;
use self::args::DeviceChoice;
use self::columns::Columns;
use self::outputs::Outputs;
use self::page::Page;
use crate::machine_args::MachineArgs;
use crate::stop::{self, Ended, Stop, warn};
use crate::trace;

pub(crate) fn run(args: &Args, machine: &MachineArgs) -> Ended {
    if args.list_metrics {
        return list::show(args.json);
    }
    let pairs = pairs::resolve(args)?;
    args.check()?;
    let opened = Machine::open(&machine_options(args, machine)?);
    opened.problems.iter().for_each(warn);
    let names = opened.names.clone();
    let options = sweep_options(args, &names)?;
    let columns = Columns::new(args.metrics(), args.settings(), args.verbose, names.clone());
    let page = args.report.as_deref().map(|path| Page::new(path, &args.metrics(), command_line()));
    let mut outputs = Outputs::open(args, columns, page, names.clone())?;
    let left = outputs.left_to_do(pairs)?;
    let (builder, trace) = trace::start(orchestrator(opened)?, args.trace.as_deref(), &names)?;
    let orchestrator = builder.build();
    let stop = stop::on_signal();
    Sweep::new(&orchestrator, options).run(left, &stop, |scored| outputs.take(scored));
    let saved = orchestrator.save_profile();
    orchestrator.shutdown(Shutdown::Cancel);
    trace.finish()?;
    if let Err(error) = saved {
        warn(error);
    }
    outputs.finish(stop.is_raised())
}

fn orchestrator(opened: Machine) -> Result<Builder, Stop> {
    let hardware = profile::hardware();
    let file = profile::file(&hardware).map_err(Stop::failed)?;
    Ok(Orchestrator::builder().devices(opened.devices).profile(file, Some(hardware)))
}

/// No GPU is opened for work that may only run on the CPU.
fn machine_options(args: &Args, machine: &MachineArgs) -> Result<MachineOptions, Stop> {
    let mut options = machine.options()?;
    if args.device == DeviceChoice::One(DeviceName::Cpu) {
        options.gpus = GpuUse::None;
    }
    if let Some(jobs) = args.jobs {
        options.cpu_slots = Some(jobs.into());
    }
    Ok(options)
}

fn sweep_options(args: &Args, names: &[DeviceName]) -> Result<SweepOptions, Stop> {
    Ok(SweepOptions {
        decode: args.decode_options(),
        devices: chosen_devices(args.device, names)?,
        rung: args.rung,
        strict: args.strict,
        explain: args.explain,
        pictures: if args.report.is_some() { report::ROWS_WITH_PICTURES_MAX } else { 0 },
        ..SweepOptions::of(args.metrics())
    })
}

/// The devices that may score; none for all of them.
fn chosen_devices(choice: DeviceChoice, names: &[DeviceName]) -> Result<Vec<DeviceId>, Stop> {
    let is_chosen = |name: &DeviceName| match choice {
        DeviceChoice::Auto => true,
        DeviceChoice::AnyGpu => matches!(name, DeviceName::Gpu(_)),
        DeviceChoice::One(asked) => *name == asked,
    };
    let chosen: Vec<DeviceId> =
        (0..).zip(names).filter(|(_, name)| is_chosen(name)).map(|(at, _)| DeviceId(at)).collect();
    match (choice, chosen.is_empty()) {
        (DeviceChoice::Auto, _) => Ok(Vec::new()),
        (_, false) => Ok(chosen),
        (_, true) => Err(Stop::usage(
            "there is no such device to use; `plimsoll devices` lists those there are, and --software-gpu adds GPUs made \
             of CPU cores",
        )),
    }
}

fn device_name(device: DeviceId, names: &[DeviceName]) -> String {
    names.get(device.index()).map_or_else(|| device.to_string(), ToString::to_string)
}

/// What was typed, for the report. Of many files only the first and last are of interest.
fn command_line() -> String {
    const ENDS: usize = 6;
    let words: Vec<String> = std::env::args().skip(1).map(quoted).collect();
    let shown = match words.len().checked_sub(2 * ENDS) {
        Some(more) if more > 1 => {
            let between = [format!("… {more} more …")];
            [&words[..ENDS], &between, &words[words.len() - ENDS..]].concat()
        }
        _ => words,
    };
    format!("plimsoll {}", shown.join(" "))
}

fn quoted(word: String) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./,:=+%@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
