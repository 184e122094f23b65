//! Measures a machine: each probe kernel on each rung, device and size, through the path that all work takes.
//! Never aborts over one cell: a rung that runs out of memory is a figure too.
//! Invariant: a cell whose samples disagree is measured again, and says so if they still do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::profile::Verdict;
use plimsoll_core::{Bytes, DeviceId, DeviceKind, Nanos};
use plimsoll_runtime::probe::workloads::{BlurInput, BlurWork, CPU, GPU_FULL, GPU_STRIP, SumWork};
use plimsoll_runtime::{Nature, Orchestrator, Registered, Task, Workload};
use serde::Serialize;

/// Samples of one cell before it is judged.
const SAMPLES: usize = 5;
/// How often a cell whose samples disagree is measured again.
const ROUNDS_MAX: usize = 3;
/// How far the blur looks.
const RADIUS: usize = 4;

/// What to measure.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BenchOptions {
    /// Small sizes only.
    pub quick: bool,
}

/// One (workload, rung, device, size).
#[derive(Clone, Debug, Serialize)]
pub struct BenchCell {
    /// The probe.
    pub workload: String,
    /// The rung.
    pub rung: &'static str,
    /// The device. Left out of JSON, where devices go by their names.
    #[serde(skip)]
    pub device: DeviceId,
    /// Pixels or numbers.
    pub units: u64,
    /// The median time of a run; `None` if it failed.
    #[serde(rename = "run_ns")]
    pub run: Option<Nanos>,
    /// What opening the session took, if this cell did.
    #[serde(rename = "open_ns")]
    pub open: Option<Nanos>,
    /// Runs measured.
    pub samples: usize,
    /// Whether the samples still disagreed after being measured again.
    pub noisy: bool,
    /// Bytes predicted by the footprint.
    pub bytes_predicted: Bytes,
    /// Bytes held at the most.
    pub bytes_peak: Bytes,
    /// Why there is no figure.
    pub failure: Option<String>,
}

/// How far a measurement is.
#[derive(Clone, Debug)]
pub struct BenchProgress {
    /// Cells measured.
    pub done: usize,
    /// Cells to measure.
    pub total: usize,
    /// The one being measured now; `None` at the end.
    pub now: Option<BenchStep>,
}

/// A cell that is about to be measured.
#[derive(Copy, Clone, Debug)]
pub struct BenchStep {
    /// The probe, for example `blur`.
    pub probe: &'static str,
    /// Its input is a square of this side.
    pub side: usize,
    /// The rung.
    pub rung: &'static str,
    /// The device.
    pub device: DeviceId,
}

/// What a machine measured.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Every cell, in the order in which it was measured.
    pub cells: Vec<BenchCell>,
    /// How long it all took.
    pub took: Duration,
}

/// Measures every device of an orchestrator that takes work now. What it learns is in the orchestrator's profile when it returns.
pub fn bench(
    orchestrator: &Orchestrator,
    options: BenchOptions,
    mut progress: impl FnMut(BenchProgress),
) -> BenchReport {
    let began = Instant::now();
    let (blur, sum) = (orchestrator.register(BlurWork), orchestrator.register(SumWork));
    let plan = plan(orchestrator, options);
    let mut cells = Vec::with_capacity(plan.len());
    for (done, step) in plan.iter().enumerate() {
        progress(BenchProgress { done, total: plan.len(), now: Some(step.named()) });
        cells.push(match step.probe {
            Probe::Blur => measure(orchestrator, &blur, step, blur_input),
            Probe::Sum => measure(orchestrator, &sum, step, sum_input),
        });
    }
    progress(BenchProgress { done: plan.len(), total: plan.len(), now: None });
    BenchReport { cells, took: began.elapsed() }
}

#[derive(Copy, Clone, Debug)]
enum Probe {
    Blur,
    Sum,
}

#[derive(Copy, Clone, Debug)]
struct Step {
    probe: Probe,
    rung: &'static str,
    device: DeviceId,
    side: usize,
}

impl Step {
    fn named(&self) -> BenchStep {
        let probe = match self.probe {
            Probe::Blur => "blur",
            Probe::Sum => "sum",
        };
        BenchStep { probe, side: self.side, rung: self.rung, device: self.device }
    }
}

fn plan(orchestrator: &Orchestrator, options: BenchOptions) -> Vec<Step> {
    let mut steps = Vec::new();
    let reports = orchestrator.reports();
    // One that could not be opened, or fell ill, would keep each of its cells waiting for it to come back.
    for (device, facts) in orchestrator.devices().filter(|(device, _)| reports[device.index()].health.is_well()) {
        let (blurs, sums): (&[&'static str], &[&'static str]) = match facts.kind {
            DeviceKind::Cpu => (&[CPU], &[CPU]),
            DeviceKind::Gpu => (&[GPU_FULL, GPU_STRIP], &[GPU_FULL]),
        };
        for &side in sides(facts.nature, options) {
            steps.extend(blurs.iter().map(|&rung| Step { probe: Probe::Blur, rung, device, side }));
            steps.extend(sums.iter().map(|&rung| Step { probe: Probe::Sum, rung, device, side }));
        }
    }
    steps
}

/// A GPU made of CPU cores takes seconds where a card takes milliseconds, so it gets the small sizes only.
fn sides(nature: Nature, options: BenchOptions) -> &'static [usize] {
    match (nature, options.quick) {
        (Nature::Software, true) => &[128, 256],
        (Nature::Software, false) => &[128, 256, 512],
        (_, true) => &[256, 1024],
        (_, false) => &[256, 512, 1024, 2048, 4096],
    }
}

fn blur_input(pixels: Arc<[f32]>, side: usize) -> BlurInput {
    BlurInput::new(side, side, RADIUS, pixels).expect("sizes and radius are within the kernel's limits")
}

fn sum_input(values: Arc<[f32]>, _side: usize) -> Arc<[f32]> {
    values
}

fn measure<W: Workload>(
    orchestrator: &Orchestrator,
    workload: &Registered<W>,
    step: &Step,
    input: fn(Arc<[f32]>, usize) -> W::Input,
) -> BenchCell {
    let data: Arc<[f32]> = (0..step.side * step.side).map(|at| (at % 251) as f32 / 251.0).collect();
    let mut cell = BenchCell {
        workload: workload.workload().name().to_owned(),
        rung: step.rung,
        device: step.device,
        units: data.len() as u64,
        run: None,
        open: None,
        samples: 0,
        noisy: false,
        bytes_predicted: Bytes::ZERO,
        bytes_peak: Bytes::ZERO,
        failure: None,
    };
    for _ in 0..ROUNDS_MAX {
        let Some(samples) = sample(orchestrator, workload, step, || input(Arc::clone(&data), step.side), &mut cell)
        else {
            break;
        };
        cell.samples += samples.len();
        match Verdict::of(&samples) {
            Verdict::Clean { median } => {
                (cell.run, cell.noisy) = (Some(median), false);
                break;
            }
            Verdict::Noisy { median, .. } => (cell.run, cell.noisy) = (Some(median), true),
            Verdict::TooFew => cell.run = samples.first().copied(),
        }
    }
    cell
}

/// Some runs of one cell; `None` if one failed, with the reason in the cell.
fn sample<W: Workload>(
    orchestrator: &Orchestrator,
    workload: &Registered<W>,
    step: &Step,
    input: impl Fn() -> W::Input,
    cell: &mut BenchCell,
) -> Option<Vec<Nanos>> {
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let task = Task::new(input()).devices([step.device]).rung(step.rung);
        match orchestrator.run(workload, task) {
            Ok(done) => {
                samples.push(done.report.run);
                if done.report.open > Nanos::ZERO {
                    cell.open = Some(done.report.open);
                }
                cell.bytes_predicted = done.report.bytes_predicted;
                cell.bytes_peak = cell.bytes_peak.max(done.report.bytes_peak.unwrap_or_default());
            }
            Err(failure) => {
                cell.failure = Some(failure.to_string());
                return None;
            }
        }
    }
    Some(samples)
}
