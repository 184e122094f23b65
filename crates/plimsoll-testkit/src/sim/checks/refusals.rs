//! No task is refused that this machine could have done.

use plimsoll_core::event::FaultKind;
use plimsoll_core::health::Health;
use plimsoll_core::{Attempt, DeviceId, Moment, Refusal, Setback, TaskError};

use super::allowed::allows;
use super::order::copies;
use super::promises::KnownPeaks;
use super::values::Unasked;
use crate::sim::world::World;

/// Attempts at one task.
const ATTEMPTS_MAX: usize = 16;

/// A task ended for want of a rung and device.
pub(super) fn check(world: &World, peaks: &KnownPeaks, job: usize, error: &TaskError) -> Result<(), String> {
    let task = &world.tasks()[job];
    let failures = task.failures.iter().map(|&(rung, on, fault)| (task.spec.ladder.rungs()[rung].name, on, fault));
    let tried = Unasked { since: ready_at(world, job), starts: task.starts, failures: failures.collect() };
    check_again(world, peaks, (job, &tried), error)
}

/// A task ended, or was not done again, for want of a rung and device: was there really none?
pub(super) fn check_again(
    world: &World,
    peaks: &KnownPeaks,
    (job, tried): (usize, &Unasked),
    error: &TaskError,
) -> Result<(), String> {
    let task = &world.tasks()[job];
    let (TaskError::NeverFits { attempts, .. } | TaskError::Exhausted { attempts }) = error else { return Ok(()) };
    if tried.starts + waits_given_up(attempts) >= ATTEMPTS_MAX {
        return Ok(());
    }
    let rungs = 0..task.spec.ladder.rungs().len();
    let candidates = rungs.flat_map(|rung| world.device_ids().map(move |device| (rung, device)));
    let holder = world.holder_of(&task.spec);
    let may_hold = |rung: usize, device: DeviceId| {
        holder.is_none_or(|holder| rung >= holder.best && holder.open.is_none_or(|open| open == (device, rung)))
    };
    // With values, the end of one task frees memory: perhaps a moment after another was refused for want of it.
    let is_over = world.now().since(tried.since) >= world.core().config().memory_wait_max && world.has_items();
    let in_vain = |rung: usize, device: DeviceId| {
        let name = task.spec.ladder.rungs()[rung].name;
        is_over && attempts.iter().any(|attempt| (attempt.rung, attempt.device) == (name, device) && is_wait(attempt))
    };
    let allowed =
        |rung, device| allows(world, &task.spec, rung, device) && may_hold(rung, device) && !in_vain(rung, device);
    for (rung, device) in candidates.filter(|(rung, device)| allowed(*rung, *device)) {
        if let Some(reason) = could_have(world, peaks, tried, (job, rung, device)) {
            let name = task.spec.ladder.rungs()[rung].name;
            return Err(format!("refusal: task {job} was refused, but {name} on {device} {reason}; {error}"));
        }
    }
    Ok(())
}

/// Rungs that were given up on after their memory had been waited for.
fn waits_given_up(attempts: &[Attempt]) -> usize {
    attempts.iter().filter(|attempt| is_wait(attempt)).count()
}

fn is_wait(attempt: &Attempt) -> bool {
    matches!(&attempt.setback, Setback::Refused(Refusal::DoesNotFit(shortfall)) if shortfall.may_pass())
}

/// Why this rung on this device would have done; `None` if it would not.
fn could_have(
    world: &World,
    peaks: &KnownPeaks,
    tried: &Unasked,
    (job, rung, device): (usize, usize, DeviceId),
) -> Option<String> {
    let task = &world.tasks()[job];
    let state = &world.devices()[device.index()];
    let name = task.spec.ladder.rungs()[rung].name;
    let passes = |fault| matches!(fault, FaultKind::DeviceLost | FaultKind::Stalled | FaultKind::SourceLost);
    let failed_for_good = tried.failures.iter().any(|&(at, on, fault)| (at, on) == (name, device) && !passes(fault));
    let unsupported = state.gpu.faults.unsupported.contains(&name);
    let bytes = peaks.bytes(&task.spec, rung, device) + copies(world, job, device);
    if failed_for_good || unsupported || bytes > state.gpu.ceiling() {
        return None;
    }
    let config = world.core().config();
    let waited = world.now().since(tried.since);
    let fits = bytes <= world.core().ledger().free(device);
    match world.core().health(device) {
        Health::Gone { .. } => None,
        // It may have fallen ill a moment after its memory was given up on.
        health if !health.is_well() => {
            let patience =
                if fits { config.device_wait_max } else { config.device_wait_max.min(config.memory_wait_max) };
            (waited < patience).then(|| format!("may come back and was waited for only {waited}"))
        }
        _ if fits => Some("fits now".into()),
        _ => (waited < config.memory_wait_max).then(|| format!("may fit later and was waited for only {waited}")),
    }
}

/// When it could first have started.
fn ready_at(world: &World, job: usize) -> Moment {
    let task = &world.tasks()[job];
    let before = task.predecessors.iter().chain(&task.takes).map(|&before| world.tasks()[before].ended_at);
    before.chain([task.submitted_at]).max().unwrap_or(task.submitted_at)
}
