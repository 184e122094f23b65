//! `plimsoll bench`: measures this machine and writes its profile.
//! Never leaves half a profile: it is written when everything was measured.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use comfy_table::Cell;
use comfy_table::CellAlignment::{Left, Right};
use indicatif::{ProgressBar, ProgressStyle};
use plimsoll::bench::{BenchCell, BenchOptions, BenchReport, BenchStep, bench};
use plimsoll::machine::{DeviceName, Machine};
use plimsoll::{Orchestrator, Shutdown, profile};
use plimsoll_core::{Bytes, DeviceId, Nanos};
use plimsoll_runtime::today;
use serde::Serialize;

use crate::machine_args::MachineArgs;
use crate::output;
use crate::stop::{Ended, Stop, warn};
use crate::trace;

/// Measure this machine and write its profile
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Small sizes only
    #[arg(long)]
    quick: bool,
    /// Print JSON, with times in nanoseconds and sizes in bytes
    #[arg(long)]
    json: bool,
    /// Write what happened when, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Every device runs real kernels at several sizes, each way it can. Samples that disagree, because the machine is busy, are \
taken again. What was known of the same kernels before is replaced; what other work has measured stays. Work then goes \
where it finishes first.

Examples:
  plimsoll bench --quick
  plimsoll bench --software-gpu --trace bench.json
  plimsoll bench --json > bench.json";

pub(crate) fn run(args: &Args, machine: &MachineArgs) -> Ended {
    let opened = Machine::open(&machine.options()?);
    opened.problems.iter().for_each(warn);
    let hardware = profile::hardware();
    let file = profile::file(&hardware).map_err(Stop::failed)?;
    file.check_place(profile::origin(&hardware), today()).map_err(Stop::failed)?;
    let path = file.path().to_owned();
    let builder = Orchestrator::builder().devices(opened.devices).profile(file, Some(hardware)).measure_anew();
    let (builder, trace) = trace::start(builder, args.trace.as_deref(), &opened.names)?;
    let orchestrator = builder.build();
    let report = measure(&orchestrator, BenchOptions { quick: args.quick }, &opened.names);
    orchestrator.save_profile().map_err(Stop::failed)?;
    orchestrator.shutdown(Shutdown::Cancel);
    trace.finish()?;
    let shown = Shown::new(&report, &opened.names, path);
    match args.json {
        true => output::json(&shown),
        false => shown.print(),
    }
}

/// On a terminal only; indicatif draws nothing elsewhere.
fn measure(orchestrator: &Orchestrator, options: BenchOptions, names: &[DeviceName]) -> BenchReport {
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len}, {eta} left  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    let report = bench(orchestrator, options, |progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.now.map_or_else(String::new, |step| label(&step, names)));
    });
    bar.finish_and_clear();
    report
}

fn label(step: &BenchStep, names: &[DeviceName]) -> String {
    let BenchStep { probe, side, rung, device } = step;
    format!("{probe} {side}×{side}, {} {rung}", name_of(*device, names))
}

fn name_of(device: DeviceId, names: &[DeviceName]) -> String {
    names.get(device.index()).map_or_else(|| device.to_string(), ToString::to_string)
}

/// What is shown. The names of its fields are a promise to other programs.
#[derive(Serialize)]
struct Shown<'a> {
    cells: Vec<ShownCell<'a>>,
    seconds: f64,
    profile: PathBuf,
}

#[derive(Serialize)]
struct ShownCell<'a> {
    device: String,
    #[serde(flatten)]
    cell: &'a BenchCell,
}

impl<'a> Shown<'a> {
    fn new(report: &'a BenchReport, names: &[DeviceName], profile: PathBuf) -> Self {
        let cells = report.cells.iter().map(|cell| ShownCell { device: name_of(cell.device, names), cell });
        Self { cells: cells.collect(), seconds: report.took.as_secs_f64(), profile }
    }

    fn print(&self) -> Ended {
        let columns = [
            ("DEVICE", Left),
            ("PROBE", Left),
            ("RUNG", Left),
            ("UNITS", Right),
            ("RUN", Right),
            ("UNITS/S", Right),
            ("OPEN", Right),
            ("MEMORY", Right),
            ("", Left),
        ];
        let mut table = output::table(&columns);
        for ShownCell { device, cell } in &self.cells {
            table.add_row(row(device, cell));
        }
        output::print_table(&table)?;
        self.print_remarks()?;
        output::line(format_args!(
            "\nMeasured {} cells in {:.1} s; the profile is at {}",
            self.cells.len(),
            self.seconds,
            self.profile.display()
        ))
    }
}

impl Shown<'_> {
    fn print_remarks(&self) -> Ended {
        if self.cells.iter().any(|shown| shown.cell.noisy) {
            output::line("\nnoisy: samples disagreed even when taken again; the machine was busy")?;
        }
        for ShownCell { device, cell } in self.cells.iter().filter(|shown| shown.cell.failure.is_some()) {
            let why = cell.failure.as_deref().unwrap_or_default();
            output::line(format_args!("\n{} {} on {device} failed: {why}", cell.workload, cell.rung))?;
        }
        Ok(())
    }
}

fn row(device: &str, cell: &BenchCell) -> Vec<Cell> {
    let rate = cell.run.map(|run| cell.units as f64 / run.as_secs_f64().max(1e-9));
    let span = |span: Option<Nanos>| span.map_or_else(String::new, |span| span.to_string());
    let bytes = |bytes: Bytes| if bytes == Bytes::ZERO { String::new() } else { bytes.to_string() };
    vec![
        Cell::new(device),
        Cell::new(cell.workload.trim_start_matches("probe-")),
        Cell::new(cell.rung),
        Cell::new(output::count(cell.units)),
        Cell::new(span(cell.run)),
        Cell::new(rate.map_or_else(String::new, |rate| output::count(rate as u64))),
        Cell::new(span(cell.open)),
        Cell::new(bytes(cell.bytes_peak)),
        remark(cell),
    ]
}

fn remark(cell: &BenchCell) -> Cell {
    match (&cell.failure, cell.noisy) {
        (Some(_), _) => output::bad("failed"),
        (None, true) => output::faint("noisy"),
        (None, false) => Cell::new(""),
    }
}
