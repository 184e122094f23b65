//! `plimsoll score`: image quality metrics of files, on every device. Reads like a table of contents.
//! Never computes a score itself.

mod args;
mod columns;
mod explain;
mod figures;
mod heat_maps;
mod labels;
mod list;
mod names;
mod outputs;
mod page;
mod pairs;
mod resume;
mod stats;
mod summary;
mod table;
mod threshold;

use std::sync::Arc;

use plimsoll::machine::{DeviceName, GpuUse, Machine, MachineOptions};
use plimsoll::regret::RegretMeter;
use plimsoll::score::{Pair, Pictures, Scored, Sweep, SweepOptions};
use plimsoll::{Builder, Orchestrator, StopSign, profile};
use plimsoll_core::DeviceId;
use plimsoll_results::{report, rows};

pub(crate) use self::args::Args;
use self::args::DeviceChoice;
use self::columns::Columns;
use self::outputs::Outputs;
use self::page::Page;
use self::resume::MetricsAndPairs;
use self::stats::Stats;
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
    let options = sweep_options(args, &names, pairs.len())?;
    let columns = Columns::new(args, &existing_columns(args)?, names.clone())?;
    let page = args.report.as_deref().map(|path| Page::new(path, &args.metrics(), command_line()));
    let mut outputs = Outputs::open(args, columns, page, names.clone())?;
    let left = outputs.left_to_do(pairs)?;
    let meter = RegretMeter::new();
    let (builder, trace) = trace::start(orchestrator(opened)?, args.trace.as_deref(), &names)?;
    let builder = if args.stats.is_some() { builder.listener(meter.listener()) } else { builder };
    let orchestrator = Arc::new(builder.build());
    let stop = stop::on_signal();
    sweep(&orchestrator, options, left.sweeps, &stop, &mut outputs);
    let stats = args.stats.map(|format| Stats::of(&orchestrator, &meter, &names, format));
    let saved = orchestrator.save_profile();
    drop(orchestrator);
    trace.finish()?;
    if let Err(error) = saved {
        warn(error);
    }
    let to_stdout = args.row_format()?.is_none() || args.output.is_some();
    let ended = outputs.finish(stop.is_raised());
    stats.map_or(Ok(()), |stats| stats.print(to_stdout)).and(ended)
}

/// Scores what is left to do, until the outputs want no more.
fn sweep(
    orchestrator: &Arc<Orchestrator>,
    mut options: SweepOptions,
    sweeps: Vec<MetricsAndPairs>,
    stop: &StopSign,
    outputs: &mut Outputs,
) {
    for (metrics, pairs) in sweeps {
        let (places, pairs): (Vec<usize>, Vec<Pair>) = pairs.into_iter().unzip();
        options.metrics = metrics;
        let scores = Sweep::new(Arc::clone(orchestrator), options.clone()).stream(pairs).stop_on(stop);
        for scored in scores {
            let at = places[scored.at];
            if outputs.take(Scored { at, ..scored }).is_break() {
                return;
            }
        }
        options.pictures.first = options.pictures.first.saturating_sub(places.len());
    }
}

/// The columns of rows that this run is to add to.
fn existing_columns(args: &Args) -> Result<Vec<String>, Stop> {
    match (&args.output, args.row_format()?) {
        (Some(path), Some(format)) if args.resume => Ok(rows::columns_at(path, format)),
        _ => Ok(Vec::new()),
    }
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

fn sweep_options(args: &Args, names: &[DeviceName], pairs: usize) -> Result<SweepOptions, Stop> {
    Ok(SweepOptions {
        decode: args.decode_options(),
        devices: chosen_devices(args.device, names)?,
        rung: args.rung,
        strict: args.strict,
        explain: args.explain,
        pictures: match args.report.is_some() {
            true => Pictures {
                first: report::ROWS_WITH_PICTURES_MAX,
                side_max: report::picture_side(pairs),
                detail_side: report::detail_side(pairs),
            },
            false => Pictures::default(),
        },
        heat_maps: args.heat_maps.is_some(),
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

/// A text in which devices are called as people call them.
fn naming_devices(text: &str, names: &[DeviceName]) -> String {
    let mut text = text.to_owned();
    // From the last one on, because the name of the first begins those of the eleventh and more.
    for (at, name) in names.iter().enumerate().rev() {
        let typed = match name {
            DeviceName::Cpu => "cpu".to_owned(),
            DeviceName::Gpu(number) => format!("gpu:{number}"),
        };
        text = text.replace(&DeviceId(at as u16).to_string(), &typed);
    }
    text
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
