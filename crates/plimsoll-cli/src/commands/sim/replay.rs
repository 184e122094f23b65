//! `plimsoll sim replay`: a task graph played through the real core in virtual time.
//! Never runs a task: what it prints is simulated, and says so.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use comfy_table::CellAlignment::{Left, Right};
use plimsoll_core::lookahead::SIMULATIONS_DEFAULT;
use plimsoll_testkit::graph::{Graph, Platform};
use plimsoll_testkit::sim::replay::{Replay, replay};
use serde::Serialize;

use crate::output;
use crate::stop::{Ended, Stop};

/// Play task graphs on a box of your choice and see how close to the bound they end
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The graphs, one task a line: id, kind, µs on a CPU slot, µs on a GPU, priority, predecessors
    #[arg(long, value_name = "FILE.tsv", required = true, num_args = 1..)]
    graph: Vec<PathBuf>,
    /// CPU slots in the box
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parse_count)]
    cpu: usize,
    /// GPUs in the box
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = parse_count)]
    gpu: usize,
    /// Schedules to simulate before the first task is committed; 0 chooses task by task
    #[arg(long, value_name = "N", default_value_t = SIMULATIONS_DEFAULT)]
    lookahead: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The scheduler knows every cost beforehand. The bound is what no schedule can beat: the larger of all work spread \
perfectly, and the longest chain with each task at its faster side. Times are simulated; only the decision time is real.

Examples:
  plimsoll sim replay --graph crates/plimsoll-testkit/graphs/cholesky10.tsv --cpu 2 --gpu 3
  plimsoll sim replay --graph crates/plimsoll-testkit/graphs/{cholesky10,layered}.tsv --cpu 9 --gpu 3 --json
  plimsoll sim replay --graph my.tsv --cpu 8 --gpu 2      what if this box had two cards?";

/// Slots or GPUs; the devices of one scheduler are bounded.
const COUNT_MAX: usize = 60;
/// A graph file larger than this is not read: over a million tasks.
const FILE_MAX: u64 = 256 << 20;

fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count <= COUNT_MAX);
    count.ok_or_else(|| format!("write a number from 0 to {COUNT_MAX}"))
}

pub(crate) fn run(args: &Args) -> Ended {
    let platform = Platform { cpus: args.cpu, gpus: args.gpu };
    if platform.cpus + platform.gpus == 0 {
        return Err(Stop::failed("a box needs a CPU slot or a GPU; raise --cpu or --gpu"));
    }
    let mut rows = Vec::new();
    for path in &args.graph {
        let graph = read(path)?;
        let played = replay(&graph, platform, args.lookahead).map_err(Stop::failed)?;
        rows.push(Row::new(path, &played));
    }
    let report = Report { simulated: true, cpu: args.cpu, gpu: args.gpu, lookahead: args.lookahead, graphs: rows };
    match args.json {
        true => output::json(&report),
        false => report.print(),
    }
}

fn read(path: &Path) -> Result<Graph, Stop> {
    let refuse = |error: &dyn std::fmt::Display| Stop::failed(format_args!("{}: {error}", path.display()));
    let mut text = String::new();
    let file = File::open(path).map_err(|error| refuse(&error))?;
    file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(|error| refuse(&error))?;
    if text.len() as u64 > FILE_MAX {
        return Err(refuse(&format_args!("larger than {} MiB; play it in parts", FILE_MAX >> 20)));
    }
    Graph::parse(&text).map_err(|error| refuse(&error))
}

/// What is shown. The names of its fields are a promise to other programs.
#[derive(Serialize)]
struct Report {
    simulated: bool,
    cpu: usize,
    gpu: usize,
    lookahead: u32,
    graphs: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    graph: String,
    tasks: usize,
    makespan_us: f64,
    lower_bound_us: f64,
    ratio: f64,
    decision_ns_per_task: f64,
}

impl Row {
    fn new(path: &Path, played: &Replay) -> Self {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        Self {
            graph: name.to_string_lossy().into_owned(),
            tasks: played.tasks,
            makespan_us: played.makespan.0 as f64 / 1e3,
            lower_bound_us: played.lower_bound.0 as f64 / 1e3,
            ratio: played.ratio(),
            decision_ns_per_task: played.deciding.as_nanos() as f64 / played.tasks.max(1) as f64,
        }
    }
}

impl Report {
    fn print(&self) -> Ended {
        let columns = [
            ("GRAPH", Left),
            ("TASKS", Right),
            ("MAKESPAN", Right),
            ("BOUND", Right),
            ("RATIO", Right),
            ("DECIDING", Right),
        ];
        let mut table = output::table(&columns);
        for row in &self.graphs {
            table.add_row([
                row.graph.clone(),
                row.tasks.to_string(),
                format!("{:.2} ms", row.makespan_us / 1e3),
                format!("{:.2} ms", row.lower_bound_us / 1e3),
                format!("{:.3}", row.ratio),
                format!("{:.1} µs/task", row.decision_ns_per_task / 1e3),
            ]);
        }
        output::print_table(&table)?;
        let logs = self.graphs.iter().map(|row| row.ratio.ln()).sum::<f64>();
        let mean = (logs / self.graphs.len() as f64).exp();
        output::line(format_args!(
            "\nSimulated on {} CPU slots and {} GPUs, {} schedules tried ahead. Geometric mean: {mean:.3}",
            self.cpu, self.gpu, self.lookahead
        ))
    }
}
