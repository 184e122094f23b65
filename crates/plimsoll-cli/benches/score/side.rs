//! One side of the comparison, measured in a process of its own: time, processor time, memory and scores.

use std::process::Command;
use std::time::Instant;

use plimsoll::image::metrics::Metric;
use plimsoll::{Orchestrator, Task};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{peers, pictures};

/// Who computes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// The crate's own call for a pair, one image per core.
    Plain,
    /// The crate's own call for many variants of a reference that it prepares once, one image per core.
    Prepared,
    /// The same pairs through an orchestrator, on the CPU rung.
    Ours,
}

/// What a side took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: u64,
    pub(crate) scores: Vec<f64>,
}

impl Measured {
    pub(crate) fn keep_better(&mut self, other: &Self) {
        if other.seconds < self.seconds {
            *self = other.clone();
        }
    }
}

impl Side {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Prepared, Self::Ours];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Prepared => "prepared",
            Self::Ours => "ours",
        }
    }

    /// Runs this side in a new process.
    pub(crate) fn measure(self, metric: &str, variants: usize) -> Measured {
        let program = std::env::current_exe().expect("this program has a path");
        let words = ["--side", self.name(), metric, &variants.to_string()];
        let output = Command::new(program).args(words).output().expect("it starts");
        assert!(output.status.success(), "{metric} {self:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("it prints what it measured")
    }
}

/// Measures one side in this process and prints what it took.
pub(crate) fn run_here(side: &str, metric: &str, variants: usize) {
    let reference = pictures::reference();
    let pictures: Vec<Vec<u8>> = (0..variants).map(|number| pictures::variant(&reference, number)).collect();
    let cpu_before = cpu_seconds();
    let start = Instant::now();
    let scores = match side {
        "plain" => pictures.par_iter().map(|picture| peers::score(metric, &reference, picture)).collect(),
        "prepared" => {
            let compare = peers::prepared(metric, &reference);
            pictures.par_iter().map(|picture| compare(picture)).collect()
        }
        _ => scored_here(metric, reference, pictures),
    };
    let measured = Measured {
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: cpu_seconds() - cpu_before,
        peak_bytes: peak_bytes(),
        scores,
    };
    println!("{}", serde_json::to_string(&measured).expect("plain numbers"));
}

fn scored_here(metric: &str, reference: Vec<u8>, pictures: Vec<Vec<u8>>) -> Vec<f64> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let orchestrator = Orchestrator::builder().cpu(cores).build();
    let metric: Metric = metric.parse().expect("a metric");
    let metric = orchestrator.register(metric.workload());
    let reference = orchestrator.pin_reference(&metric, pictures::image(reference));
    let task = |picture| Task::new(pictures::image(picture)).reference(&reference).rung("cpu");
    let results = orchestrator.run_all(&metric, pictures.into_iter().map(task)).ordered();
    results.map(|result| result.expect("it scores").output.value).collect()
}

/// Processor time of this process so far.
fn cpu_seconds() -> f64 {
    let usage = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    usage.tv_sec as f64 + usage.tv_nsec as f64 * 1e-9
}

/// The most memory this process ever had, as Linux tells it; 0 elsewhere.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
