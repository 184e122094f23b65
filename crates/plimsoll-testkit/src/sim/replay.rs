//! A known task graph on a known box, played through the real core in virtual time.
//! Never plans anything itself: the scheduler is handed the set and does the rest.
//!
//! | what the scheduler knows | workloads | units |
//! |---|---|---|
//! | every cost ([`Costs::Known`]) | one for each pair of costs, taught beforehand | 1 |
//! | what each kind takes on average ([`Costs::Learnt`]) | the graph's kinds, taught beforehand | the work, as below |
//! | nothing ([`Costs::Unknown`]) | the graph's kinds, as a program would have them | the work, where a kind has such a thing |
//!
//! A kind has work to count if its tasks take the same ratio of CPU to GPU time, whatever their size (`layered`): the time
//! on a GPU is then its work, as pixels would be. Where the sides differ by themselves (`pipeline5`: what a frame costs
//! depends on what is in it) no count that a program has would tell, and each task is one unit.

use std::time::{Duration, Instant};

use plimsoll_core::lookahead::{SIMULATIONS_DEFAULT, lower_bound};
use plimsoll_core::rng::Rng;
use plimsoll_core::scheduler::{Config, SetTask};
use plimsoll_core::{Bytes, DeviceId, DeviceKind, Footprint, Ladder, Nanos, Place, Rung, TaskSpec, WorkloadId};
use rustc_hash::FxHashMap;

use super::world::{Cost, VirtualGpu, World};
use crate::graph::{Graph, GraphTask, Platform};

/// How a replay went.
#[derive(Copy, Clone, Debug)]
pub struct Replay {
    /// Tasks played.
    pub tasks: usize,
    /// From the first start to the last end, in virtual time.
    pub makespan: Nanos,
    /// What no schedule can beat.
    pub lower_bound: Nanos,
    /// Real time spent on deciding (and on pretending, which cannot be told apart), all tasks together.
    pub deciding: Duration,
}

impl Replay {
    /// Makespan ÷ lower bound.
    pub fn ratio(&self) -> f64 {
        self.makespan.0 as f64 / self.lower_bound.0.max(1) as f64
    }
}

/// What the scheduler knows of the costs beforehand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Costs {
    /// Each of them, exactly.
    Known,
    /// What each kind of task takes on average, as the profile of an earlier run holds it.
    Learnt,
    /// Nothing: they are learnt on the way.
    Unknown,
}

/// How a graph is played.
#[derive(Copy, Clone, Debug)]
pub struct Terms {
    /// How many schedules the scheduler may simulate before it commits; 0 chooses task by task.
    pub lookahead: u32,
    /// What the scheduler knows of the costs.
    pub costs: Costs,
    /// How far costs are drawn around the listed ones: see [`drawn`].
    pub noise: f64,
    /// Which costs are drawn.
    pub seed: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { lookahead: SIMULATIONS_DEFAULT, costs: Costs::Known, noise: 0.0, seed: 0 }
    }
}

/// Plays a graph.
///
/// # Errors
/// A broken invariant, in words.
pub fn replay(graph: &Graph, platform: Platform, terms: Terms) -> Result<Replay, String> {
    let config = Config { queue_limit: graph.tasks.len().max(1), lookahead: terms.lookahead, ..Config::default() };
    let mut world = World::new(config, devices(platform), 0);
    world.check_only_in_the_end();
    let real = drawn(graph, terms.noise, terms.seed);
    let described = match terms.costs {
        Costs::Known => known_by_cost(&mut world, &real, platform),
        Costs::Learnt => {
            let specs = known_by_kind(&mut world, graph);
            teach_averages(&mut world, graph, platform, &specs);
            specs
        }
        Costs::Unknown => known_by_kind(&mut world, graph),
    };
    let set = real.tasks.iter().zip(described).map(|(task, spec)| {
        let job = world.add(spec.clone(), Cost { cpu: task.cpu, gpu: task.gpu, ..Cost::default() });
        SetTask { spec, job, after: task.after.iter().map(|&before| before as u32).collect() }
    });
    let set = set.collect();
    let began = Instant::now();
    world.submit_all(set)?;
    world.run()?;
    let deciding = began.elapsed();
    let (tasks, on) = real.known(platform);
    let makespan = world.makespan();
    Ok(Replay { tasks: tasks.len(), makespan, lower_bound: lower_bound(&tasks, &on), deciding })
}

/// The graph with every cost multiplied by a factor of its own, drawn from a log-normal distribution of mean 1 whose
/// logarithm has the standard deviation `noise`; CPU and GPU side apart. At 0.3 one cost in six is less than 0.71 of the
/// listed one, and one in six more than 1.29.
pub fn drawn(graph: &Graph, noise: f64, seed: u64) -> Graph {
    if noise <= 0.0 {
        return graph.clone();
    }
    let mut rng = Rng::new(seed);
    let mut around = |cost: Nanos| cost.scaled((noise * normal(&mut rng) - noise * noise / 2.0).exp());
    let tasks = graph.tasks.iter();
    let tasks = tasks.map(|task| GraphTask { cpu: around(task.cpu), gpu: around(task.gpu), ..task.clone() });
    Graph { tasks: tasks.collect() }
}

/// A number from the standard normal distribution: Box and Muller's way, one of its two.
fn normal(rng: &mut Rng) -> f64 {
    // Above 0, so that its logarithm is finite.
    let mut uniform = || ((rng.roll() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let (radius, angle) = (uniform(), uniform());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

fn devices(platform: Platform) -> Vec<VirtualGpu> {
    let cpu = (platform.cpus > 0).then(|| VirtualGpu::new(DeviceKind::Cpu, platform.cpus, 1.0, Bytes::gib(1)));
    let gpu = VirtualGpu::new(DeviceKind::Gpu, 1, 1.0, Bytes::gib(1));
    cpu.into_iter().chain(std::iter::repeat_n(gpu, platform.gpus)).collect()
}

fn ladder() -> Ladder {
    Ladder::from(vec![Rung::new("any", Place::Anywhere, Footprint::task(Bytes::ZERO))])
}

/// Each pair of costs is a workload of its own, which the scheduler knows exactly.
fn known_by_cost(world: &mut World, graph: &Graph, platform: Platform) -> Vec<TaskSpec> {
    let ladder = ladder();
    let mut kinds: FxHashMap<(Nanos, Nanos), WorkloadId> = FxHashMap::default();
    let spec = |task: &GraphTask| {
        let kind = kinds.entry((task.cpu, task.gpu)).or_insert_with(|| teach(world, platform, task.cpu, task.gpu));
        TaskSpec::new(*kind, ladder.clone(), 1)
    };
    graph.tasks.iter().map(spec).collect()
}

/// Each kind of the graph is a workload, of which the scheduler knows nothing.
fn known_by_kind(world: &mut World, graph: &Graph) -> Vec<TaskSpec> {
    let ladder = ladder();
    let spec = |task: &GraphTask| {
        let kind = world.scheduler().register(&format!("kind {}", task.kind));
        let units = if counts_its_work(graph, task.kind) { task.gpu.0 / 1_000 } else { 1 };
        TaskSpec::new(kind, ladder.clone(), units)
    };
    graph.tasks.iter().map(spec).collect()
}

/// Each kind as an earlier run would have measured it: at the smallest and the largest size, or on average.
fn teach_averages(world: &mut World, graph: &Graph, platform: Platform, specs: &[TaskSpec]) {
    let mut kinds: FxHashMap<(WorkloadId, u64), (u128, u128, u128)> = FxHashMap::default();
    for (task, spec) in graph.tasks.iter().zip(specs) {
        let (cpu, gpu, count) = kinds.entry((spec.workload, spec.units)).or_default();
        (*cpu, *gpu, *count) = (*cpu + u128::from(task.cpu.0), *gpu + u128::from(task.gpu.0), *count + 1);
    }
    let first_gpu = usize::from(platform.cpus > 0);
    for ((workload, units), (cpu, gpu, count)) in kinds {
        for device in 0..first_gpu + platform.gpus {
            let sum = if device < first_gpu { cpu } else { gpu };
            world.scheduler().teach(workload, "any", DeviceId(device as u16), units, Nanos((sum / count) as u64));
        }
    }
}

/// Whether all tasks of a kind take the same ratio of CPU to GPU time, as far as whole microseconds can tell.
fn counts_its_work(graph: &Graph, kind: u64) -> bool {
    let of_kind = || graph.tasks.iter().filter(|task| task.kind == kind);
    let ratio = |task: &GraphTask| task.cpu.0 as f64 / task.gpu.0.max(1) as f64;
    let (least, most) = of_kind().map(ratio).fold((f64::MAX, 0.0), |(least, most), r| (r.min(least), r.max(most)));
    most <= least * RATIO_SPREAD
}

/// What rounding to whole microseconds may do to a ratio.
const RATIO_SPREAD: f64 = 1.01;

/// A workload whose cost the scheduler knows exactly, on every device.
fn teach(world: &mut World, platform: Platform, cpu: Nanos, gpu: Nanos) -> WorkloadId {
    let scheduler = world.scheduler();
    let workload = scheduler.register(&format!("{}/{}", cpu.0, gpu.0));
    let first_gpu = usize::from(platform.cpus > 0);
    for device in 0..first_gpu + platform.gpus {
        let cost = if device < first_gpu { cpu } else { gpu };
        scheduler.teach(workload, "any", DeviceId(device as u16), 1, cost);
    }
    workload
}
