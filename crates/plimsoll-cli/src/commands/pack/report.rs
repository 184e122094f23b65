//! What became of a file: one line, a table of where time went, or JSON.

use std::path::Path;
use std::time::Duration;

use comfy_table::Cell;
use comfy_table::CellAlignment::{Left, Right};
use plimsoll::pack::{PackSummary, Recipe};
use plimsoll_core::{Bytes, Nanos};
use serde::Serialize;

use super::args::Common;
use super::crew::Crew;
use super::places::Place;
use super::telemetry::{Frame, Times};
use crate::output;
use crate::stop::{Ended, Stop};

/// The names of its fields are a promise to other programs.
#[derive(Serialize)]
pub(super) struct Report {
    input: String,
    output: Option<String>,
    #[serde(flatten)]
    recipe: Option<RecipeFields>,
    raw_bytes: u64,
    packed_bytes: u64,
    /// Unpacked bytes for one that is packed.
    ratio: f64,
    blocks: u64,
    retries: u64,
    elapsed_seconds: f64,
    megabytes_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Times>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rungs: Vec<RungFields>,
}

#[derive(Serialize)]
struct RecipeFields {
    format: String,
    level: i32,
    method: String,
    filter: Option<String>,
    block_bytes: usize,
}

#[derive(Serialize)]
struct RungFields {
    device: String,
    rung: String,
    tasks: u64,
    failed: u64,
    run_seconds: f64,
    run_p50_ms: Option<f64>,
    run_p95_ms: Option<f64>,
    /// Its tasks waited for a slot, half of them at most so long.
    queue_wait_p50_ms: Option<f64>,
}

impl Report {
    pub(super) fn packing(
        place: &Place,
        output: Option<&Path>,
        recipe: &Recipe,
        summary: &PackSummary,
        took: Duration,
        crew: &Crew,
    ) -> Self {
        let recipe = RecipeFields {
            format: recipe.format.to_string(),
            level: recipe.level,
            method: recipe.method.to_string(),
            filter: recipe.filter.map(|filter| filter.to_string()),
            block_bytes: recipe.block,
        };
        Self { recipe: Some(recipe), ..Self::unpacking(place, output, summary, took, crew) }
    }

    pub(super) fn unpacking(
        place: &Place,
        output: Option<&Path>,
        summary: &PackSummary,
        took: Duration,
        crew: &Crew,
    ) -> Self {
        let seconds = took.as_secs_f64().max(1e-9);
        let (time, rungs) = counted(crew, seconds);
        Self {
            input: place.name(),
            output: output.map(|path| path.display().to_string()),
            recipe: None,
            raw_bytes: summary.raw,
            packed_bytes: summary.packed,
            ratio: summary.raw as f64 / summary.packed.max(1) as f64,
            blocks: summary.blocks,
            retries: summary.retries,
            elapsed_seconds: seconds,
            megabytes_per_second: summary.raw as f64 / 1e6 / seconds,
            time,
            rungs,
        }
    }

    /// Beside the data, which may go to stdout.
    pub(super) fn print(&self, common: &Common) -> Ended {
        if common.json {
            output::aside(serde_json::to_string(self).map_err(Stop::failed)?);
            return Ok(());
        }
        if !common.quiet {
            output::aside(output::clean(self.line()));
        }
        if common.stats {
            self.print_tables();
        }
        Ok(())
    }

    fn line(&self) -> String {
        let Self { input, elapsed_seconds, megabytes_per_second, .. } = self;
        let (raw, packed) = (Bytes(self.raw_bytes), Bytes(self.packed_bytes));
        let share = self.packed_bytes as f64 / self.raw_bytes.max(1) as f64 * 100.0;
        let what = match &self.recipe {
            Some(_) => format!("{raw} → {packed} ({share:.1} %)"),
            None => format!("{packed} → {raw}"),
        };
        format!("{input}: {what} in {elapsed_seconds:.2} s, {megabytes_per_second:.0} MB/s")
    }

    fn print_tables(&self) {
        if let Some(RecipeFields { format, level, method, block_bytes, .. }) = &self.recipe {
            let block = Bytes(*block_bytes as u64);
            output::aside(format_args!(
                "{format} level {level}, method {method}, {} blocks of {block}, {} retries",
                self.blocks, self.retries
            ));
        }
        if let Some(time) = &self.time {
            let all = self.elapsed_seconds * time.slots as f64;
            let share = |seconds: f64| format!("{:.1} %", seconds / all * 100.0);
            let mut table = output::table(&[("TIME OF SLOTS", Left), ("SECONDS", Right), ("SHARE", Right)]);
            for (what, seconds) in [
                ("compute", time.compute_seconds),
                ("hand-off", time.handoff_seconds),
                ("starved", time.starved_seconds),
                ("tail", time.tail_seconds),
                ("administration", time.administration_seconds),
            ] {
                table.add_row([Cell::new(what), Cell::new(format!("{seconds:.3}")), Cell::new(share(seconds))]);
            }
            table.lines().for_each(|line| output::aside(line.trim_end()));
            output::aside(format_args!(
                "tasks waited {:.3} s in all for a slot; {}; {} of {:.1} tasks, at most {}",
                time.queue_wait_seconds,
                output::counted(time.refusals, "refusal"),
                output::counted(time.batches, "batch"),
                time.batch_mean,
                time.batch_max
            ));
        }
        let mut table = output::table(&[
            ("DEVICE", Left),
            ("RUNG", Left),
            ("TASKS", Right),
            ("FAILED", Right),
            ("P50", Right),
            ("P95", Right),
            ("WAITED", Right),
        ]);
        let span = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| Nanos((ms * 1e6) as u64).to_string());
        for rung in &self.rungs {
            table.add_row([
                Cell::new(&rung.device),
                Cell::new(&rung.rung),
                Cell::new(rung.tasks),
                Cell::new(rung.failed),
                Cell::new(span(rung.run_p50_ms)),
                Cell::new(span(rung.run_p95_ms)),
                Cell::new(span(rung.queue_wait_p50_ms)),
            ]);
        }
        table.lines().for_each(|line| output::aside(line.trim_end()));
    }
}

fn counted(crew: &Crew, seconds: f64) -> (Option<Times>, Vec<RungFields>) {
    let (Some((snapshot, names)), Some(orchestrator)) = (crew.counted(), crew.orchestrator()) else {
        return (None, Vec::new());
    };
    let lock = orchestrator.lock_times();
    let administration_seconds = lock.mean().unwrap_or_default().as_secs_f64() * lock.taken as f64;
    let times = crew.times(&Frame { slots: crew.slots().max(1), elapsed_seconds: seconds, administration_seconds });
    let ms = |span: Option<Nanos>| span.map(|span| span.as_secs_f64() * 1e3);
    let rung = |counts: &plimsoll_runtime::telemetry::RungCounts| RungFields {
        device: names.get(counts.device.index()).cloned().unwrap_or_default(),
        rung: counts.rung.to_owned(),
        tasks: counts.ran,
        failed: counts.failed.iter().map(|fault| fault.count).sum(),
        run_seconds: counts.run.as_secs_f64(),
        run_p50_ms: ms(counts.run_time.p50),
        run_p95_ms: ms(counts.run_time.p95),
        queue_wait_p50_ms: ms(counts.queue_wait.p50),
    };
    (times, snapshot.rungs.iter().map(rung).collect())
}
