//! `plimsoll sim replay`: task graphs played through the real core in virtual time.
//! Never runs a task: what it prints is simulated, and says so.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use comfy_table::CellAlignment::{Left, Right};
use plimsoll_core::lookahead::SIMULATIONS_DEFAULT;
use plimsoll_testkit::graph::{Graph, Platform};
use plimsoll_testkit::sim::replay::{Costs, Replay, Terms, replay};
use serde::Serialize;

use crate::output;
use crate::stop::{Ended, Stop};

/// Play task graphs on a box of your choice and see how close to the bound they end
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The graphs, one task a line: id, kind, µs on a CPU slot, µs on a GPU, priority, predecessors
    #[arg(long, value_name = "FILE.tsv", required_unless_present = "all", num_args = 1..)]
    graph: Vec<PathBuf>,
    /// CPU slots in the box
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parse_count)]
    cpu: usize,
    /// GPUs in the box
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = parse_count)]
    gpu: usize,
    /// Play on 1C+1G, 2C+1G, 2C+3G and 9C+3G; without --graph, the four graphs of the benchmark
    #[arg(long, conflicts_with_all = ["cpu", "gpu"])]
    all: bool,
    /// Schedules to simulate before the first task is committed; 0 chooses task by task
    #[arg(long, value_name = "N", default_value_t = SIMULATIONS_DEFAULT)]
    lookahead: u32,
    /// Draw every cost around the listed one: log-normal, mean 1, this standard deviation of the logarithm
    #[arg(long, value_name = "SIGMA", default_value_t = 0.0, value_parser = parse_noise)]
    noise: f64,
    /// Play again with what an earlier run learnt of each kind, and with nothing known, and show that beside it
    #[arg(long)]
    unknown: bool,
    /// How many times to draw the costs and play, where there is noise
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=DRAWS_MAX))]
    draws: u64,
    /// The first of those draws
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The scheduler knows every cost beforehand. With --unknown it also plays knowing what each kind takes on average, as an \
earlier run learnt it, and knowing nothing: the graph's kinds are then its workloads, and it learns on the way. The bound is what no schedule can beat: the larger of all work spread perfectly, and the longest chain \
with each task at its faster side. Times are simulated; only the time for deciding, of each task, is real.

Examples:
  plimsoll sim replay --graph crates/plimsoll-testkit/graphs/cholesky10.tsv --cpu 2 --gpu 3
  plimsoll sim replay --graph crates/plimsoll-testkit/graphs/{cholesky10,layered}.tsv --cpu 9 --gpu 3 --json
  plimsoll sim replay --all --noise 0.3 --unknown         what users get: nothing known, no two tasks alike
  plimsoll sim replay --graph my.tsv --cpu 8 --gpu 2      what if this box had two cards?";

/// Slots or GPUs; the devices of one scheduler are bounded.
const COUNT_MAX: usize = 60;
/// Draws of one graph on one box: some minutes for the largest of the benchmark.
const DRAWS_MAX: u64 = 1000;
/// Beyond this the largest cost of some hundred drawn is a thousand times the median, and says nothing of a schedule.
const NOISE_MAX: f64 = 2.0;
/// A graph file larger than this is not read: over a million tasks.
const FILE_MAX: u64 = 256 << 20;

fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count <= COUNT_MAX);
    count.ok_or_else(|| format!("write a number from 0 to {COUNT_MAX}"))
}

fn parse_noise(text: &str) -> Result<f64, String> {
    let noise = text.parse().ok().filter(|noise| (0.0..=NOISE_MAX).contains(noise));
    noise.ok_or_else(|| format!("write a number from 0 to {NOISE_MAX}"))
}

pub(crate) fn run(args: &Args) -> Ended {
    let platforms = platforms(args)?;
    let mut rows = Vec::new();
    for (name, graph) in graphs(args)? {
        for platform in &platforms {
            rows.push(Row::play(args, &name, &graph, *platform)?);
        }
    }
    let report = Report::new(args, rows);
    match args.json {
        true => output::json(&report),
        false => report.print(),
    }
}

fn graphs(args: &Args) -> Result<Vec<(String, Graph)>, Stop> {
    if args.graph.is_empty() {
        return Ok(Graph::benchmark().map(|(name, graph)| (name.to_owned(), graph)).collect());
    }
    let named = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        Ok((name.to_string_lossy().into_owned(), read(path)?))
    };
    args.graph.iter().map(named).collect()
}

fn platforms(args: &Args) -> Result<Vec<Platform>, Stop> {
    if args.all {
        return Ok(Platform::BENCHMARK.into());
    }
    if args.cpu + args.gpu == 0 {
        return Err(Stop::failed("a box needs a CPU slot or a GPU; raise --cpu or --gpu"));
    }
    Ok(vec![Platform { cpus: args.cpu, gpus: args.gpu }])
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
    lookahead: u32,
    noise: f64,
    draws: u64,
    seed: u64,
    graphs: Vec<Row>,
    geometric_mean: f64,
    geometric_mean_learnt: Option<f64>,
    geometric_mean_unknown: Option<f64>,
}

#[derive(Serialize)]
struct Row {
    graph: String,
    cpu: usize,
    gpu: usize,
    tasks: usize,
    /// With several draws, the mean of each time and the geometric mean of each ratio.
    makespan_us: f64,
    lower_bound_us: f64,
    ratio: f64,
    ratio_learnt: Option<f64>,
    ratio_unknown: Option<f64>,
    decision_ns_per_task: f64,
}

impl Row {
    fn play(args: &Args, name: &str, graph: &Graph, platform: Platform) -> Result<Self, Stop> {
        let known = play_all(args, graph, platform, Costs::Known)?;
        let ratio = |played: Vec<Replay>| geometric_mean(played.iter().map(Replay::ratio));
        let if_asked = |costs| args.unknown.then(|| play_all(args, graph, platform, costs).map(ratio)).transpose();
        let mean = |figure: fn(&Replay) -> f64| known.iter().map(figure).sum::<f64>() / known.len() as f64;
        let deciding: Duration = known.iter().map(|played| played.deciding).sum();
        Ok(Self {
            graph: name.to_owned(),
            cpu: platform.cpus,
            gpu: platform.gpus,
            tasks: graph.tasks.len(),
            makespan_us: mean(|played| played.makespan.0 as f64 / 1e3),
            lower_bound_us: mean(|played| played.lower_bound.0 as f64 / 1e3),
            ratio: geometric_mean(known.iter().map(Replay::ratio)),
            ratio_learnt: if_asked(Costs::Learnt)?,
            ratio_unknown: if_asked(Costs::Unknown)?,
            decision_ns_per_task: deciding.as_nanos() as f64 / (graph.tasks.len() * known.len()).max(1) as f64,
        })
    }

    fn platform(&self) -> Platform {
        Platform { cpus: self.cpu, gpus: self.gpu }
    }

    /// The ratio that a row is judged by: the one without knowledge, if it was played.
    fn worst_ratio(&self) -> f64 {
        self.ratio_unknown.unwrap_or(self.ratio)
    }
}

/// Plays a graph once for each draw of its costs; once in all if nothing is drawn.
fn play_all(args: &Args, graph: &Graph, platform: Platform, costs: Costs) -> Result<Vec<Replay>, Stop> {
    let draws = if args.noise > 0.0 { args.draws } else { 1 };
    let play = |draw| {
        let seed = args.seed.wrapping_add(draw);
        let terms = Terms { lookahead: args.lookahead, costs, noise: args.noise, seed };
        replay(graph, platform, terms).map_err(Stop::failed)
    };
    (0..draws).map(play).collect()
}

fn geometric_mean(ratios: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = ratios.len().max(1) as f64;
    (ratios.map(f64::ln).sum::<f64>() / count).exp()
}

impl Report {
    fn new(args: &Args, graphs: Vec<Row>) -> Self {
        let mean_of = |ratio: fn(&Row) -> Option<f64>| {
            let ratios: Vec<f64> = graphs.iter().filter_map(ratio).collect();
            args.unknown.then(|| geometric_mean(ratios.into_iter()))
        };
        Self {
            simulated: true,
            lookahead: args.lookahead,
            noise: args.noise,
            draws: if args.noise > 0.0 { args.draws } else { 1 },
            seed: args.seed,
            geometric_mean: geometric_mean(graphs.iter().map(|row| row.ratio)),
            geometric_mean_learnt: mean_of(|row| row.ratio_learnt),
            geometric_mean_unknown: mean_of(|row| row.ratio_unknown),
            graphs,
        }
    }

    fn print(&self) -> Ended {
        let mut columns = vec![
            ("GRAPH", Left),
            ("BOX", Left),
            ("TASKS", Right),
            ("MAKESPAN", Right),
            ("BOUND", Right),
            ("RATIO", Right),
            ("DECIDING", Right),
        ];
        if self.geometric_mean_unknown.is_some() {
            columns.splice(6..6, [("LEARNT", Right), ("UNKNOWN", Right)]);
        }
        let mut table = output::table(&columns);
        for row in &self.graphs {
            let mut cells = vec![
                row.graph.clone(),
                row.platform().to_string(),
                row.tasks.to_string(),
                format!("{:.1} ms", row.makespan_us / 1e3),
                format!("{:.1} ms", row.lower_bound_us / 1e3),
                format!("{:.3}", row.ratio),
                format!("{:.1} µs", row.decision_ns_per_task / 1e3),
            ];
            let played = [row.ratio_learnt, row.ratio_unknown].into_iter().flatten();
            cells.splice(6..6, played.map(|ratio| format!("{ratio:.3}")));
            table.add_row(cells);
        }
        output::print_table(&table)?;
        output::line(format_args!("\n{}", self.summary()))
    }

    fn summary(&self) -> String {
        let noise = match self.draws {
            1 => String::new(),
            draws => format!(", costs drawn {draws} times with a spread of {}", self.noise),
        };
        let unknown = self.geometric_mean_learnt.zip(self.geometric_mean_unknown).map(|(learnt, unknown)| {
            format!(" with costs known,\n{learnt:.3} as an earlier run learnt them, {unknown:.3} with none known")
        });
        let worst = self.graphs.iter().max_by(|a, b| a.worst_ratio().total_cmp(&b.worst_ratio()));
        let worst = worst
            .filter(|_| self.graphs.len() > 1)
            .map(|row| format!("\nWorst: {} on {}, {:.3}", row.graph, row.platform(), row.worst_ratio()));
        format!(
            "Simulated, {} schedules tried ahead{noise}.\nGeometric mean: {:.3}{}{}",
            self.lookahead,
            self.geometric_mean,
            unknown.unwrap_or_default(),
            worst.unwrap_or_default()
        )
    }
}
