//! Regret: how much longer a run took than the best schedule of the same work could have.
//! Counts what really ran, by workload, rung and device; never remembers a task, reads no clock (events say when they
//! happened) and asks the scheduler nothing.
//! Invariant: the bound is never above the time that passed, as long as the devices have the slots that they say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::lookahead::{KnownDevice, KnownTask, lower_bound};
use plimsoll_core::{DeviceId, DeviceKind, Moment, Nanos, WorkloadId};
use plimsoll_runtime::{DeviceFacts, Listener, Orchestrator};
use serde::Serialize;

use crate::{Event, What};

/// Equal tasks that stand for all of a workload's in the bound. More than any machine has slots, so that none of them is
/// longer than the share of a slot.
const TASKS_OF_A_WORKLOAD_MAX: u64 = 4096;

/// Hears what runs; a handle that is cheap to clone.
///
/// ```
/// use plimsoll::regret::RegretMeter;
/// use plimsoll::{Orchestrator, Task, workload};
/// let meter = RegretMeter::new();
/// let orchestrator = Orchestrator::builder().cpu(2).listener(meter.listener()).build();
/// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
/// orchestrator.run_all(&square, (0..10).map(Task::new)).for_each(drop);
/// let regret = meter.regret(&orchestrator);
/// assert!(regret.lower_bound <= regret.elapsed);
/// ```
#[derive(Clone, Default)]
pub struct RegretMeter(Arc<Mutex<Counted>>);

impl std::fmt::Debug for RegretMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegretMeter").finish_non_exhaustive()
    }
}

/// How long the work took, and what no schedule of it could beat.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Regret {
    /// From the first task taken in to the last thing that happened.
    pub elapsed: Nanos,
    /// The work that ran, shared out in fractions over all devices at the cost that each was measured to have.
    pub lower_bound: Nanos,
}

impl Regret {
    /// The time over the bound.
    pub fn over(self) -> Nanos {
        self.elapsed - self.lower_bound
    }

    /// The time over the bound, as a share of the bound.
    pub fn share(self) -> f64 {
        self.over().0 as f64 / self.lower_bound.0.max(1) as f64
    }
}

impl std::fmt::Display for Regret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { elapsed, lower_bound } = self;
        write!(f, "{elapsed} where {lower_bound} is the least, {:.1} % over it", self.share() * 100.0)
    }
}

#[derive(Default)]
struct Counted {
    /// When the first and the last thing happened.
    span: Option<(Moment, Moment)>,
    ran: BTreeMap<(WorkloadId, DeviceId, &'static str), Work>,
    /// Attempts under way on each device, and the most there were at once.
    at_once: BTreeMap<DeviceId, (usize, usize)>,
}

/// What one workload did on one rung of one device.
#[derive(Copy, Clone, Default)]
struct Work {
    tasks: u64,
    units: u64,
    took: Nanos,
}

impl Work {
    fn for_each_unit(self) -> f64 {
        self.took.0 as f64 / self.units.max(1) as f64
    }
}

impl RegretMeter {
    /// Has heard of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The half that hears events, for [`crate::Builder::listener`].
    pub fn listener(&self) -> impl Listener + use<> {
        let counted = Arc::clone(&self.0);
        move |events: &[Event]| {
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            events.iter().for_each(|event| counted.hear(event));
        }
    }

    /// The figures as they stand; they can be asked for while work is under way.
    pub fn regret(&self, orchestrator: &Orchestrator) -> Regret {
        let facts: Vec<&DeviceFacts> = orchestrator.devices().map(|(_, facts)| facts).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).regret(&facts)
    }
}

impl Counted {
    fn hear(&mut self, event: &Event) {
        match event.what {
            What::Started { device, .. } => {
                let (now, most) = self.at_once.entry(device).or_default();
                *now += 1;
                *most = (*most).max(*now);
            }
            What::Ran { workload, device, rung, units, bring, open, run, .. } => {
                self.ended_on(device);
                let work = self.ran.entry((workload, device, rung)).or_default();
                work.tasks += 1;
                work.units += units.max(1);
                work.took += bring + open + run;
            }
            What::AttemptFailed { device, .. } | What::PutBack { device, .. } => self.ended_on(device),
            What::Submitted { .. } => {}
            _ => return,
        }
        let (first, last) = self.span.unwrap_or((event.at, event.at));
        self.span = Some((first.min(event.at), last.max(event.at)));
    }

    fn ended_on(&mut self, device: DeviceId) {
        let (now, _) = self.at_once.entry(device).or_default();
        *now = now.saturating_sub(1);
    }

    fn regret(&self, facts: &[&DeviceFacts]) -> Regret {
        let elapsed = self.span.map_or(Nanos::ZERO, |(first, last)| last.since(first));
        let devices: Vec<KnownDevice> = (0..)
            .zip(facts)
            .map(|(at, facts)| KnownDevice { slots: self.slots(DeviceId(at), facts), ..KnownDevice::default() })
            .collect();
        let mut tasks = Vec::new();
        let mut workloads: Vec<WorkloadId> = self.ran.keys().map(|(workload, ..)| *workload).collect();
        workloads.dedup();
        for workload in workloads {
            self.add_tasks(workload, devices.len(), &mut tasks);
        }
        let bound = if tasks.is_empty() { Nanos::ZERO } else { lower_bound(&tasks, &devices) };
        Regret { elapsed, lower_bound: bound.min(elapsed) }
    }

    /// A GPU's slots share one engine: only as many count as were seen to run at once, because only their times were
    /// measured. A slot of the CPU is a core, idle or not.
    fn slots(&self, device: DeviceId, facts: &DeviceFacts) -> usize {
        let seen = self.at_once.get(&device).map_or(0, |(_, most)| *most).clamp(1, facts.slots.max(1));
        if facts.kind == DeviceKind::Cpu { facts.slots.max(1) } else { seen }
    }

    /// The work of a workload as equal tasks: where it can run is where it did, and there on its cheapest rung.
    fn add_tasks(&self, workload: WorkloadId, devices: usize, tasks: &mut Vec<KnownTask>) {
        let of_it = || self.ran.iter().filter(|((of, ..), _)| *of == workload);
        let units: u64 = of_it().map(|(_, work)| work.units).sum();
        let count = of_it().map(|(_, work)| work.tasks).sum::<u64>().clamp(1, TASKS_OF_A_WORKLOAD_MAX);
        let cost = |device: DeviceId| {
            let here = of_it().filter(|((_, on, _), _)| *on == device).map(|(_, work)| work.for_each_unit());
            here.min_by(f64::total_cmp).map(|each| Nanos((each * units as f64 / count as f64) as u64))
        };
        let costs = (0..devices).map(|at| cost(DeviceId(at as u16))).collect();
        let task = KnownTask { costs, ..KnownTask::default() };
        tasks.extend((0..count).map(|_| task.clone()));
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{Bytes, TaskId};
    use plimsoll_runtime::{Device, cpu::CpuDevice};

    use super::*;

    const CPU: DeviceId = DeviceId(0);
    const GPU: DeviceId = DeviceId(1);

    fn facts(kind: DeviceKind, slots: usize) -> DeviceFacts {
        DeviceFacts { kind, slots, ..CpuDevice::builder().slots(slots).build().facts().clone() }
    }

    /// A task of 10 units that ran from one moment to another.
    fn ran(counted: &mut Counted, workload: u32, device: DeviceId, rung: &'static str, from: u64, to: u64) {
        let (task, workload) = (TaskId(from), WorkloadId(workload));
        let span = Nanos::millis(to - from);
        let at = |ms: u64| Moment(Nanos::millis(ms).0);
        counted.hear(&Event { at: at(from), what: What::Submitted { task, workload, units: 10 } });
        let (bytes, promised, waited) = (Bytes::ZERO, Bytes::ZERO, Nanos::ZERO);
        let started = What::Started { task, rung, device, waited, bytes, promised, warm: true, hits: 0, misses: 0 };
        counted.hear(&Event { at: at(from), what: started });
        let (bring, open, run, peak) = (Nanos::ZERO, Nanos::ZERO, span, Bytes::ZERO);
        let ran = What::Ran { task, workload, rung, device, units: 10, bring, open, run, peak };
        counted.hear(&Event { at: at(to), what: ran });
    }

    #[test]
    fn slots_that_were_always_busy_leave_nothing_to_regret() {
        let mut counted = Counted::default();
        for at in [0, 10, 20] {
            ran(&mut counted, 0, CPU, "cpu", at, at + 10);
            ran(&mut counted, 0, CPU, "cpu", at, at + 10);
        }
        let regret = counted.regret(&[&facts(DeviceKind::Cpu, 2)]);
        assert_eq!(regret, Regret { elapsed: Nanos::millis(30), lower_bound: Nanos::millis(30) });
        assert_eq!((regret.over(), regret.share()), (Nanos::ZERO, 0.0));
    }

    #[test]
    fn a_slot_left_idle_is_regretted() {
        let mut counted = Counted::default();
        ran(&mut counted, 0, CPU, "cpu", 0, 10);
        ran(&mut counted, 0, CPU, "cpu", 10, 20);
        let regret = counted.regret(&[&facts(DeviceKind::Cpu, 2)]);
        assert_eq!(regret, Regret { elapsed: Nanos::millis(20), lower_bound: Nanos::millis(10) });
        assert_eq!(regret.to_string(), "20.0 ms where 10.0 ms is the least, 100.0 % over it");
    }

    #[test]
    fn work_on_the_slower_device_or_rung_is_regretted() {
        // Each workload ran half where it is slow: one slot of each, 2 ms where it is quick and 10 ms where it is not.
        let mut counted = Counted::default();
        ran(&mut counted, 0, CPU, "cpu", 0, 2);
        ran(&mut counted, 1, CPU, "cpu", 2, 12);
        ran(&mut counted, 1, GPU, "gpu", 0, 2);
        ran(&mut counted, 0, GPU, "gpu", 2, 12);
        let devices = [&facts(DeviceKind::Cpu, 1), &facts(DeviceKind::Gpu, 8)];
        assert_eq!(counted.regret(&devices), Regret { elapsed: Nanos::millis(12), lower_bound: Nanos::millis(4) });
        let mut rungs = Counted::default();
        ran(&mut rungs, 0, CPU, "cpu", 0, 2);
        ran(&mut rungs, 0, CPU, "cpu-strip", 2, 12);
        assert_eq!(rungs.regret(&devices[..1]), Regret { elapsed: Nanos::millis(12), lower_bound: Nanos::millis(4) });
    }

    #[test]
    fn nothing_done_is_nothing_to_regret() {
        assert_eq!(Counted::default().regret(&[&facts(DeviceKind::Cpu, 2)]), Regret::default());
    }

    #[test]
    fn many_tasks_are_bounded_as_few_are() {
        let mut counted = Counted::default();
        (0..10_000).for_each(|at| ran(&mut counted, 0, CPU, "cpu", at, at + 1));
        let regret = counted.regret(&[&facts(DeviceKind::Cpu, 4)]);
        let (bound, exact) = (regret.lower_bound, Nanos::millis(2_500));
        assert!(bound <= exact && bound >= exact - Nanos::millis(1), "{bound}");
    }
}
