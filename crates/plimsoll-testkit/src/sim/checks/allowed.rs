//! A task runs only where and how its caller allows, and never after its deadline.

use plimsoll_core::scheduler::Report;
use plimsoll_core::{DeviceId, TaskError, TaskSpec};

use crate::sim::world::{Flight, ROUND, Taken, World};

/// Whether the caller allows this rung on this device. `strict` allows only the best rung that some device of this
/// machine could take.
pub(super) fn allows(world: &World, spec: &TaskSpec, rung: usize, device: DeviceId) -> bool {
    let possible = |rung: usize, device: DeviceId| {
        let (rung, kind) = (&spec.ladder.rungs()[rung], world.devices()[device.index()].gpu.kind);
        rung.place.allows(kind)
            && spec.devices.contains(device)
            && spec.rung.is_none_or(|asked| asked == rung.name)
            && rung.quality >= spec.quality_min
    };
    let best = || (0..rung).any(|better| world.device_ids().any(|device| possible(better, device)));
    possible(rung, device) && !(spec.strict && best())
}

pub(super) fn check(world: &World, taken: Taken, device: DeviceId) -> Result<(), String> {
    let Taken { task, job, rung } = taken;
    let spec = &world.tasks()[job].spec;
    let name = spec.ladder.rungs()[rung].name;
    if !allows(world, spec, rung, device) {
        return Err(format!("allowed: task {job} was started as {name} on {device}, which its caller does not allow"));
    }
    // What is made again is of use to its readers, however late.
    let is_asked = world.job(task).is_some();
    if is_asked && spec.deadline.is_some_and(|deadline| deadline <= world.now()) {
        return Err(format!("deadline: task {job} was started after its deadline"));
    }
    // Who only takes out what a session holds does so by the name of its latest task, whatever that waits for.
    if !is_asked && spec.holds {
        return Ok(());
    }
    let unmet = world.tasks()[job].needs().find(|before| !world.tasks()[*before].succeeded());
    match unmet {
        Some(before) => Err(format!("after: task {job} was started before task {before} had succeeded")),
        None => Ok(()),
    }
}

/// What the caller is told is what happened.
pub(super) fn reported(world: &World, flight: &Flight, report: &Report) -> Result<(), String> {
    let name = world.tasks()[flight.job].spec.ladder.rungs()[flight.rung].name;
    if (report.device, report.rung) != (flight.device, name) {
        return Err(format!(
            "report: task {} ran as {name} on {}, its report says otherwise",
            flight.job, flight.device
        ));
    }
    Ok(())
}

/// A deadline ends a task when it passes, neither before nor more than a round of the watchdog later.
pub(super) fn ended_in_time(world: &World, job: usize, end: &Result<DeviceId, TaskError>) -> Result<(), String> {
    let task = &world.tasks()[job];
    let Some(deadline) = task.spec.deadline else { return Ok(()) };
    let (now, due) = (world.now(), deadline.max(task.submitted_at));
    if matches!(end, Err(TaskError::DeadlinePassed { .. })) && now < deadline {
        return Err(format!("deadline: task {job} ended by its deadline before that had come"));
    }
    if task.id.is_some() && now > due + ROUND {
        return Err(format!("deadline: task {job} ended {} after its deadline", now.since(due)));
    }
    Ok(())
}
