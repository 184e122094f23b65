//! A lower quality is taken only while no better one fits, or it would miss the deadline.

use plimsoll_core::{DeviceId, Refusal};

use super::BeforeTake;
use super::allowed::allows;
use super::promises::KnownPeaks;
use crate::sim::world::World;

/// A task was started at this rung: no rung of better quality may have had its bytes free on a device that could take it.
pub(super) fn check(
    world: &World,
    peaks: &KnownPeaks,
    before: &BeforeTake,
    job: usize,
    rung: usize,
) -> Result<(), String> {
    let task = &world.tasks()[job];
    let spec = &task.spec;
    let quality = spec.ladder.rungs()[rung].quality;
    let is_better = |at: &usize| spec.ladder.rungs()[*at].quality > quality;
    let better = (0..spec.ladder.rungs().len()).filter(is_better);
    let fits = |at: usize, device: DeviceId| {
        allows(world, spec, at, device)
            && world.core().health(device).is_well()
            && !task.failures.iter().any(|(rung, on, _)| (*rung, *on) == (at, device))
            && peaks.bytes(spec, at, device) <= before.free[device.index()]
    };
    let mut fitting =
        better.flat_map(|at| world.device_ids().map(move |on| (at, on))).filter(|(at, on)| fits(*at, *on));
    let wrong = fitting.find(|(at, device)| !has_a_reason(world, before, job, *at, *device));
    match wrong {
        None => Ok(()),
        Some((at, device)) => {
            let (taken, better) = (spec.ladder.rungs()[rung].name, spec.ladder.rungs()[at].name);
            Err(format!("quality: task {job} was started as {taken} although {better} fits on {device}"))
        }
    }
}

/// The better rung failed there before at this size, or would have come too late.
fn has_a_reason(world: &World, before: &BeforeTake, job: usize, rung: usize, device: DeviceId) -> bool {
    let spec = &world.tasks()[job].spec;
    let name = spec.ladder.rungs()[rung].name;
    let candidate = before.why.iter().find(|candidate| candidate.rung == name && candidate.device == device);
    candidate.is_some_and(|candidate| {
        let learnt = matches!(
            candidate.refusal,
            Some(Refusal::FailedBefore { .. } | Refusal::Unsupported | Refusal::Unwell(_) | Refusal::SequenceElsewhere)
        );
        let finish = candidate.estimate.map(|estimate| world.now() + estimate.finish());
        learnt || spec.deadline.is_some_and(|deadline| finish.is_none_or(|finish| finish > deadline))
    })
}
