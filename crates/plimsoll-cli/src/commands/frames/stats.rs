//! What each device did, at the end: a table or JSON, beside the frames if they go to stdout.

use comfy_table::CellAlignment::{Left, Right};
use comfy_table::{Cell, Table};
use plimsoll::Strategy;
use plimsoll::frames::{DeviceFrames, FrameStats};
use plimsoll::regret::Regret;
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
    strategy: String,
    #[serde(flatten)]
    stats: &'a FrameStats,
    /// What no schedule of the same tasks on these devices could beat.
    lower_bound_seconds: f64,
    /// The time over that, and as a share of it.
    regret_seconds: f64,
    regret_share: f64,
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

    pub(super) fn print(&self, stats: &FrameStats, regret: Regret) -> Ended {
        match self.format {
            Some(StatsFormat::Json) => self.print_json(stats, regret),
            Some(StatsFormat::Table) => {
                self.print_tables(stats)?;
                self.say("")?;
                self.say(&summary(stats))?;
                self.say(&format!("all tasks {regret}"))
            }
            None => {
                output::aside(summary(stats));
                Ok(())
            }
        }
    }

    fn print_json(&self, stats: &FrameStats, regret: Regret) -> Ended {
        let Self { chain, input, output, strategy, .. } = self;
        let report = Report {
            chain,
            input,
            output,
            strategy: strategy.to_string(),
            stats,
            lower_bound_seconds: regret.lower_bound.as_secs_f64(),
            regret_seconds: regret.over().as_secs_f64(),
            regret_share: regret.share(),
        };
        if !self.aside {
            return output::json(&report);
        }
        output::aside(serde_json::to_string_pretty(&report).map_err(Stop::failed)?);
        Ok(())
    }

    /// Two tables rather than one: how much, and how long. Together they would not fit a terminal.
    fn print_tables(&self, stats: &FrameStats) -> Ended {
        let mut amounts = output::table(&[
            ("DEVICE", Left),
            ("SENT", Right),
            ("DONE", Right),
            ("FAILED", Right),
            ("RETRIED", Right),
            ("FPS", Right),
            ("IN", Right),
            ("OUT", Right),
        ]);
        amounts.add_rows(stats.devices.iter().map(amounts_of));
        let mut times = output::table(&[
            ("DEVICE", Left),
            ("BUSY", Right),
            ("SLOTS", Right),
            ("P50", Right),
            ("P95", Right),
            ("P99", Right),
        ]);
        times.add_rows(stats.devices.iter().map(times_of));
        self.say_table(&amounts)?;
        self.say("")?;
        self.say_table(&times)
    }

    fn say_table(&self, table: &Table) -> Ended {
        table.lines().try_for_each(|row| self.say(row.trim_end()))
    }

    fn say(&self, line: &str) -> Ended {
        if self.aside {
            output::aside(line);
            return Ok(());
        }
        output::line(line)
    }
}

fn amounts_of(device: &DeviceFrames) -> Vec<Cell> {
    let count = |count: u64| Cell::new(output::count(count));
    vec![
        Cell::new(&device.device),
        count(device.dispatched),
        count(device.completed),
        if device.failed > 0 { output::bad(device.failed) } else { count(0) },
        count(device.retried),
        Cell::new(format!("{:.1}", device.frames_per_second)),
        Cell::new(Bytes(device.bytes_in)),
        Cell::new(Bytes(device.bytes_out)),
    ]
}

fn times_of(device: &DeviceFrames) -> Vec<Cell> {
    let span = |ms: Option<f64>| Cell::new(ms.map_or("-".to_owned(), |ms| Nanos((ms * 1e6) as u64).to_string()));
    vec![
        Cell::new(&device.device),
        Cell::new(format!("{:.0} %", device.busy_share * 100.0)),
        Cell::new(device.slots_used),
        span(device.p50_ms),
        span(device.p95_ms),
        span(device.p99_ms),
    ]
}

fn summary(stats: &FrameStats) -> String {
    let frames = if stats.frames == 1 { "frame" } else { "frames" };
    let FrameStats { elapsed_seconds, frames_per_second, .. } = stats;
    format!("{} {frames} in {elapsed_seconds:.2} s, {frames_per_second:.1} per second", stats.frames)
}
