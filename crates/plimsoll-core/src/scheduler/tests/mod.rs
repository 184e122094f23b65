//! The scheduler as a whole, where one file's rule shows only together with another's.

mod allotments;
mod batches;
mod changes;
mod deadlines;
mod estimates;
mod events;
mod eviction;
mod faults;
mod grants;
mod holds;
mod host_memory;
mod late;
mod learning;
mod limits;
mod lost_sessions;
mod memory;
mod moves;
mod offers;
mod order;
mod outlooks;
mod passing;
mod plans;
mod predecessors;
mod quality;
mod raising;
mod references;
mod sequences;
mod shared_lines;
mod slots;
mod stealing;
mod values;
mod wakes;
mod widths;
mod yielding;

use super::{Assignment, Config, DeviceSpec, Host, Measured, Outcome};
use crate::balancer::Strategy;
use crate::{Bytes, DeviceId, DeviceKind, Fault, Footprint, Ladder, Moment, Nanos, Place, Rung, Scheduler, TaskSpec};

pub(super) struct Nothing;

impl Host for Nothing {
    type Job = ();
    type Session = ();
    type Prepared = ();
    type Value = ();
    type State = ();
}

/// The CPU pool with two slots, then this many GPUs with one each, all of them well.
pub(super) fn a_box(strategy: Strategy, gpus: usize) -> Scheduler<Nothing> {
    let config = Config { strategy, lookahead: 0, ..Config::default() };
    let mut scheduler = Scheduler::new(config, Moment::START);
    let kinds = std::iter::once((DeviceKind::Cpu, 2)).chain(std::iter::repeat_n((DeviceKind::Gpu, 1), gpus));
    for (kind, slots) in kinds {
        let device = scheduler.add_device(DeviceSpec::new(kind, slots, Bytes(1_000)));
        scheduler.device_opened(Moment::START, device);
    }
    scheduler
}

/// On the GPU, or else on the CPU.
pub(super) fn gpu_or_cpu() -> Ladder {
    let rung = |name, kind| Rung::new(name, Place::On(kind), Footprint::task(Bytes(10)));
    Ladder::from(vec![rung("gpu", DeviceKind::Gpu), rung("cpu", DeviceKind::Cpu)])
}

pub(super) fn spec(scheduler: &mut Scheduler<Nothing>, ladder: Ladder) -> TaskSpec {
    TaskSpec::new(scheduler.register("w"), ladder, 10)
}

pub(super) fn depths(scheduler: &Scheduler<Nothing>) -> Vec<usize> {
    (0..scheduler.device_count()).map(|at| scheduler.report(Moment::START, DeviceId(at as u16)).depth).collect()
}

/// Starts the next task of a device's queue; gives it and when it could be settled.
pub(super) fn start(scheduler: &mut Scheduler<Nothing>, now: Moment, device: u16) -> Assignment<Nothing> {
    scheduler.take(now, DeviceId(device)).expect("something is queued there")
}

pub(super) fn settle(scheduler: &mut Scheduler<Nothing>, now: Moment, run: &Assignment<Nothing>, fault: Option<Fault>) {
    let measured = Measured { run: Nanos(1_000), ..Measured::default() };
    let session = fault.is_none().then_some(());
    let outcome = Outcome { result: fault.map_or(Ok(()), Err), session, measured };
    scheduler.settle(now, run.run, outcome);
}

pub(super) const CPU: DeviceId = DeviceId(0);
pub(super) const GPU: DeviceId = DeviceId(1);

/// Only on GPUs, with so many bytes while it runs.
pub(super) fn on_gpu(bytes: u64) -> Ladder {
    Ladder::from(vec![Rung::new("gpu", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)))])
}

/// On any device, with so many bytes while it runs.
pub(super) fn anywhere(bytes: u64) -> Ladder {
    Ladder::from(vec![Rung::new("any", Place::Anywhere, Footprint::task(Bytes(bytes)))])
}

/// The errors of the tasks that ended without a result since the last call.
pub(super) fn errors(scheduler: &mut Scheduler<Nothing>) -> Vec<crate::TaskError> {
    scheduler.drain_endings().into_iter().map(|ending| ending.error).collect()
}

/// Of the device's 1000 bytes, other programs leave this many.
pub(super) fn others_leave(scheduler: &mut Scheduler<Nothing>, now: Moment, device: DeviceId, free: u64) {
    let memory = crate::line::Memory { capacity: Bytes(1_000), free: Bytes(free), ..Default::default() };
    scheduler.set_memory(now, device, memory);
}

/// A device without a margin, so that its line is its capacity.
pub(super) fn exact(kind: DeviceKind, slots: usize, bytes: u64) -> DeviceSpec {
    let mut spec = DeviceSpec::new(kind, slots, Bytes(bytes));
    spec.margin.share = 1.0;
    spec
}
