//! What each device did, at the end: a table or JSON, beside the frames if they go to stdout.

use comfy_table::Cell;
use comfy_table::CellAlignment::{Left, Right};
use plimsoll::Strategy;
use plimsoll::frames::{DeviceFrames, FrameStats};
use plimsoll_core::{Bytes, Nanos};
use serde::Serialize;

use super::args::{Args, StatsFormat};
use super::plan::Plan;
use crate::output;
use crate::stop::{Ended, Stop};

/// What is shown at the end.
pub(super) struct Shown {
    format: Option<StatsFormat>,
    /// Frames go to stdout, so figures must not.
    aside: bool,
    chain: String,
    input: String,
    output: String,
    strategy: Strategy,
}

/// The names of its fields are a promise to other programs.
#[derive(Serialize)]
struct Report<'a> {
    chain: &'a str,
    input: &'a str,
    output: &'a str,
    strategy: Strategy,
    #[serde(flatten)]
    stats: &'a FrameStats,
}

impl Shown {
    pub(super) fn new(args: &Args, plan: &Plan, strategy: Strategy, aside: bool) -> Self {
        Self {
            format: args.stats_format(),
            aside,
            chain: plan.chain.to_string(),
            input: plan.input.to_string(),
            output: plan.header.format.to_string(),
            strategy,
        }
    }

    /// Whether nothing but JSON may be printed where figures go.
    pub(super) fn as_json(&self) -> bool {
        self.format == Some(StatsFormat::Json)
    }

    pub(super) fn print(&self, stats: &FrameStats) -> Ended {
        match self.format {
            Some(StatsFormat::Json) => self.print_json(stats),
            Some(StatsFormat::Table) => {
                self.print_table(stats)?;
                self.say(&summary(stats))
            }
            None => {
                anstream::eprintln!("{}", summary(stats));
                Ok(())
            }
        }
    }

    fn print_json(&self, stats: &FrameStats) -> Ended {
        let Self { chain, input, output, strategy, .. } = self;
        let report = Report { chain, input, output, strategy: *strategy, stats };
        if !self.aside {
            return output::json(&report);
        }
        eprintln!("{}", serde_json::to_string_pretty(&report).map_err(Stop::failed)?);
        Ok(())
    }

    fn print_table(&self, stats: &FrameStats) -> Ended {
        let columns = [
            ("DEVICE", Left),
            ("SENT", Right),
            ("DONE", Right),
            ("FAILED", Right),
            ("RETRIED", Right),
            ("FPS", Right),
            ("P50", Right),
            ("P95", Right),
            ("P99", Right),
            ("BUSY", Right),
            ("SLOTS", Right),
            ("IN", Right),
            ("OUT", Right),
        ];
        let mut table = output::table(&columns);
        table.add_rows(stats.devices.iter().map(row));
        if self.aside {
            output::print_table_aside(&table);
            return Ok(());
        }
        output::print_table(&table)
    }

    fn say(&self, line: &str) -> Ended {
        if self.aside {
            anstream::eprintln!("\n{line}");
            return Ok(());
        }
        output::line(format_args!("\n{line}"))
    }
}

fn row(device: &DeviceFrames) -> Vec<Cell> {
    let count = |count: u64| Cell::new(output::count(count));
    let span = |ms: Option<f64>| Cell::new(ms.map_or("-".to_owned(), |ms| Nanos((ms * 1e6) as u64).to_string()));
    vec![
        Cell::new(&device.device),
        count(device.dispatched),
        count(device.completed),
        if device.failed > 0 { output::bad(device.failed) } else { count(0) },
        count(device.retried),
        Cell::new(format!("{:.1}", device.frames_per_second)),
        span(device.p50_ms),
        span(device.p95_ms),
        span(device.p99_ms),
        Cell::new(format!("{:.0} %", device.busy_share * 100.0)),
        Cell::new(device.slots_used),
        Cell::new(Bytes(device.bytes_in)),
        Cell::new(Bytes(device.bytes_out)),
    ]
}

fn summary(stats: &FrameStats) -> String {
    let frames = if stats.frames == 1 { "frame" } else { "frames" };
    let FrameStats { elapsed_seconds, frames_per_second, .. } = stats;
    format!("{} {frames} in {elapsed_seconds:.2} s, {frames_per_second:.1} per second", stats.frames)
}
