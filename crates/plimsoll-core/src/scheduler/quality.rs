//! Quality: a lower one is taken only while a better one does not fit beside what others hold, or would be too late.
//! Memory of our own runs comes back by the time a task's turn comes, and is no reason for a worse answer.
//! Never refuses what the caller does not allow: `choose` has done that before.

use super::choose::{Possible, Possibles};
use super::state::{Phase, TaskState};
use super::{Host, Scheduler};
use crate::error::Refusal;
use crate::task::TaskSpec;
use crate::{DeviceId, Moment, Quality, TaskId};

/// Drops the possibilities whose quality need not be as low. If nothing fits in time all stay, whatever they give.
pub(super) fn keep_best_quality(
    now: Moment,
    spec: &TaskSpec,
    possible: &mut Possibles,
    mut refuse: impl FnMut(&'static str, DeviceId, Refusal),
) {
    if !spec.ladder.has_several_qualities() {
        return;
    }
    let quality = |possible: &Possible| spec.ladder.rungs()[possible.choice.rung].quality;
    let in_time =
        |possible: &Possible| spec.deadline.is_none_or(|deadline| now + possible.choice.estimate.finish() <= deadline);
    let good = possible.iter().filter(|possible| possible.fits && in_time(possible));
    let Some(best) = good.map(quality).max() else { return };
    possible.retain(|each| {
        let keeps = quality(each) == best;
        if !keeps {
            let refusal = if quality(each) < best { Refusal::BetterQualityFits } else { too_late_or_short(each) };
            refuse(spec.ladder.rungs()[each.choice.rung].name, each.choice.device, refusal);
        }
        keeps
    });
}

/// Better, but not now: it would wait for memory, or end after the deadline.
fn too_late_or_short(possible: &Possible) -> Refusal {
    Refusal::FinishesLater { by: possible.choice.estimate.finish() }
}

impl<H: Host> Scheduler<H> {
    /// Whether something better than this is possible for a task by now.
    pub(super) fn better_fits(&self, now: Moment, state: &TaskState<H::Job>, quality: Quality) -> bool {
        let ladder = &state.spec.ladder;
        let is_better = |possible: &Possible| ladder.rungs()[possible.choice.rung].quality > quality;
        quality < ladder.best_quality()
            && self.possibilities(now, &state.spec, Some(state), |_, _, _| {}).iter().any(is_better)
    }

    /// A task that was queued for a lower quality goes up again if a better one fits by now. Says whether it moved.
    pub(super) fn raise_quality(&mut self, now: Moment, task: TaskId) -> bool {
        let Some(state) = self.tasks.get(task) else { return false };
        let Phase::Queued { rung, .. } = state.phase else { return false };
        let quality = |spec: &TaskSpec, rung: usize| -> Quality { spec.ladder.rungs()[rung].quality };
        let queued = quality(&state.spec, rung);
        if queued >= state.spec.ladder.best_quality() {
            return false;
        }
        let Some(chosen) = self.choose(now, task) else { return false };
        if self.tasks.get(task).is_none_or(|state| quality(&state.spec, chosen.choice.rung) <= queued) {
            return false;
        }
        self.dequeue(task);
        self.place_as(now, task, &chosen);
        self.went_elsewhere(now);
        true
    }
}
