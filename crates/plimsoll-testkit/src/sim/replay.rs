//! A known task graph on a known box, played through the real core in virtual time.
//! Never plans anything itself: the scheduler is handed the set and does the rest.

use std::time::{Duration, Instant};

use plimsoll_core::lookahead::lower_bound;
use plimsoll_core::scheduler::{Config, SetTask};
use plimsoll_core::{Bytes, DeviceId, DeviceKind, Footprint, Ladder, Nanos, Place, Rung, TaskSpec, WorkloadId};
use rustc_hash::FxHashMap;

use super::world::{Cost, VirtualGpu, World};
use crate::graph::{Graph, Platform};

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

/// Plays a graph. The scheduler knows every cost beforehand; `lookahead` is how many schedules it may simulate before
/// it commits.
///
/// # Errors
/// A broken invariant, in words.
pub fn replay(graph: &Graph, platform: Platform, lookahead: u32) -> Result<Replay, String> {
    let config = Config { queue_limit: graph.tasks.len().max(1), lookahead, ..Config::default() };
    let mut world = World::new(config, devices(platform), 0);
    let ladder = Ladder::from(vec![Rung::new("any", Place::Anywhere, Footprint::task(Bytes::ZERO))]);
    let mut kinds: FxHashMap<(Nanos, Nanos), WorkloadId> = FxHashMap::default();
    let mut set = Vec::with_capacity(graph.tasks.len());
    for task in &graph.tasks {
        let kind =
            *kinds.entry((task.cpu, task.gpu)).or_insert_with(|| teach(&mut world, platform, task.cpu, task.gpu));
        let spec = TaskSpec::new(kind, ladder.clone(), 1);
        let cost = Cost { cpu: task.cpu, gpu: task.gpu, ..Cost::default() };
        let job = world.add(spec.clone(), cost);
        set.push(SetTask { spec, job, after: task.after.iter().map(|&before| before as u32).collect() });
    }
    let began = Instant::now();
    world.submit_all(set)?;
    world.run()?;
    let deciding = began.elapsed();
    let (tasks, on) = graph.known(platform);
    let makespan = world.makespan();
    Ok(Replay { tasks: tasks.len(), makespan, lower_bound: lower_bound(&tasks, &on), deciding })
}

fn devices(platform: Platform) -> Vec<VirtualGpu> {
    let cpu = (platform.cpus > 0).then(|| VirtualGpu::new(DeviceKind::Cpu, platform.cpus, 1.0, Bytes::gib(1)));
    let gpu = VirtualGpu::new(DeviceKind::Gpu, 1, 1.0, Bytes::gib(1));
    cpu.into_iter().chain(std::iter::repeat_n(gpu, platform.gpus)).collect()
}

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
