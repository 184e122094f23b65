//! Recall: who is asked to step down, for whom: grants, and held sessions (`yielding`).
//! Never asks anybody if all together could not give enough, and by need nobody of equal or higher priority. One that has more
//! than is recommended for it shares with whoever waits, down to that.
//! Invariant: the least urgent first, one rung at a time, no more than is missing.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::super::state::Phase;
use super::super::{Discards, Host, Scheduler};
use super::GrantNews;
use super::steps::Reach;
use crate::event::{GrantEdge, What};
use crate::grant::{GrantId, GrantKind, GrantPhase, Portions, StepError, bytes_on};
use crate::sharing::SharePolicy;
use crate::{Bytes, DeviceId, DeviceSet, Moment, Nanos, Priority, Quality, SequenceId, TaskId};

/// How many times as long as it takes to go to a rung its owner has for it at the least.
const TIME_PER_SWITCH: u64 = 2;

/// For whom holders are asked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// A grant or a task that waits.
    Waiter {
        priority: Priority,
        /// Whether it leaves batches alone that have items left.
        spares_batches: bool,
    },
    /// Programs without a grant, who have the bytes already.
    Strangers,
}

/// Who is asked for how much, if the round before was not enough.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// Those that have more than is recommended, down to that.
    Share,
    /// Beside those, the less urgent, as far down as is of use to them.
    Step,
    /// Beside those, those far enough below, to leave.
    Leave,
}

/// Who could step down. Among equally urgent ones sessions of our own go first: nobody has to be asked for them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holding {
    Session(SequenceId),
    Grant(std::cmp::Reverse<GrantId>),
}

/// How far somebody would have to step down.
pub(super) struct Step {
    pub(super) ask: Ask,
    pub(super) frees: Portions,
}

pub(super) enum Ask {
    Session(SequenceId, &'static str),
    Grant(GrantId, Option<usize>),
    Stop(GrantId),
}

impl<H: Host> Scheduler<H> {
    /// Asks the owner of a held grant to step down to a rung, or to leave, within a time. What the lower rung needs on
    /// other devices is reserved for it now.
    ///
    /// # Errors
    /// Why that is no step, or where the lower rung does not fit.
    pub fn recall(&mut self, now: Moment, id: GrantId, to: Option<usize>, within: Nanos) -> Result<(), StepError> {
        let grant = self.grants.get(id).filter(|grant| grant.is_held()).ok_or(StepError::NotHeld)?;
        if grant.spec.pinned {
            return Err(StepError::Pinned);
        }
        if let Some(rung) = to
            && (rung >= grant.spec.ladder.len() || self.frees(id, to).is_empty())
        {
            return Err(StepError::NoStep { rung });
        }
        let discards = match to {
            Some(rung) => self.reserve_for_step(now, id, rung, DeviceSet::NONE).map_err(StepError::DoesNotFit)?,
            None => Discards::default(),
        };
        let until = now + within;
        self.grants.change(id, |grant| {
            (grant.phase, grant.overdue) = (GrantPhase::Recalled { to, until }, false);
        });
        self.note(now, || What::Grant {
            grant: id,
            edge: GrantEdge::Recalled { to: to.map(|rung| rung as u8), until },
        });
        self.grants.news.push(GrantNews::Recalled { grant: id, to, until, discards });
        Ok(())
    }

    /// A task does not fit because of what grants and sequences hold: less urgent ones are asked to step down for it.
    #[inline]
    pub(in crate::scheduler) fn recall_for_task(&mut self, now: Moment, device: DeviceId, task: TaskId) {
        if self.grants.are_held() || !self.holds.is_empty() {
            self.recall_for_short_task(now, device, task);
        }
    }

    #[cold]
    fn recall_for_short_task(&mut self, now: Moment, device: DeviceId, task: TaskId) {
        let wanted = self.queued_bytes(task);
        let Some(state) = self.tasks.get(task).filter(|state| matches!(state.phase, Phase::Queued { .. })) else {
            return;
        };
        let priority = state.spec.priority;
        let short_since = state.short_since(device).unwrap_or(now);
        let spares_batches = now.since(short_since) < self.config.sharing.batch_wait_max;
        if self.is_held_by_others(device, wanted) {
            self.recall_for(now, Asker::Waiter { priority, spares_batches }, &[(device, wanted)]);
        }
    }

    /// Makes who is less urgent, or has more than is recommended, step down until these bytes fit once our own runs have
    /// ended. Says whether they will: bytes that are already on their way back count.
    pub(super) fn recall_for(&mut self, now: Moment, asker: Asker, wanted: &[(DeviceId, Bytes)]) -> bool {
        let missing = wanted.iter().map(|&(device, bytes)| {
            let (line, lasting) = (self.ledger.measured(device), self.ledger.lasting(device));
            (device, bytes + lasting - (line + self.coming_back(device)))
        });
        let missing = missing.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect();
        self.recall_missing(now, asker, missing)
    }

    /// Others want bytes that were allotted to us: less urgent holders step down until what lasts fits under the line
    /// that is left. Says whether it will.
    pub(in crate::scheduler) fn recall_for_others(
        &mut self,
        now: Moment,
        device: DeviceId,
        priority: Priority,
    ) -> bool {
        let missing = self.ledger.lasting(device) - (self.ledger.line(device) + self.coming_back(device));
        let missing = [(device, missing)].into_iter().filter(|(_, bytes)| *bytes > Bytes::ZERO).collect();
        self.recall_missing(now, Asker::Waiter { priority, spares_batches: true }, missing)
    }

    fn recall_missing(&mut self, now: Moment, asker: Asker, missing: Portions) -> bool {
        if missing.is_empty() {
            return true;
        }
        let sharing = self.config.sharing;
        let rounds = [
            Some(Round::Share).filter(|_| sharing.policy != SharePolicy::Fixed),
            Some(Round::Step).filter(|_| sharing.leave_levels > 1),
            Some(Round::Leave),
        ];
        let steps = rounds.into_iter().flatten().find_map(|round| self.steps_for(asker, round, &missing).ok());
        steps.is_some_and(|steps| self.ask_for(now, steps))
    }

    /// Asks all of them. Says whether all could be asked.
    pub(super) fn ask_for(&mut self, now: Moment, steps: Vec<Step>) -> bool {
        let mut all_asked = true;
        for Step { ask, .. } in steps {
            all_asked &= match ask {
                Ask::Grant(grant, to) => self.recall_by_need(now, grant, to),
                Ask::Session(sequence, to) => self.make_yield(now, sequence, to),
                Ask::Stop(grant) => self.stop_owner(now, grant),
            };
        }
        all_asked
    }

    fn recall_by_need(&mut self, now: Moment, id: GrantId, to: Option<usize>) -> bool {
        let sharing = self.config.sharing;
        let within = match (to, self.grants.get(id)) {
            (Some(rung), Some(grant)) => {
                let cost = grant.spec.ladder[rung].switch_cost;
                sharing.step_within.max(Nanos(cost.0.saturating_mul(TIME_PER_SWITCH)))
            }
            _ => sharing.leave_within,
        };
        self.remember_fall(now, id);
        self.recall(now, id, to, within).is_ok()
    }

    /// The owner of a grant that should have left is to be stopped by its host.
    fn stop_owner(&mut self, now: Moment, id: GrantId) -> bool {
        let until = now + self.config.sharing.stop_within;
        let is_there = self.grants.change(id, |grant| {
            (grant.phase, grant.overdue) = (GrantPhase::Recalled { to: None, until }, false);
            grant.stopping = true;
        });
        self.note(now, || What::Grant { grant: id, edge: GrantEdge::Stop { until } });
        self.grants.news.push(GrantNews::Stop { grant: id, until });
        is_there.is_some()
    }

    /// Bytes of a device that owners were asked for and still have time to give, or have given without anybody knowing.
    pub(super) fn coming_back(&self, device: DeviceId) -> Bytes {
        let coming_down = self.grants.tally.coming_down().filter_map(|id| self.grants.get(id));
        let recalled = coming_down.filter_map(|grant| match grant.phase {
            GrantPhase::Recalled { to, .. } => {
                Some(self.ledger.held(grant.lease?, device) - grant.bytes_at(to, device))
            }
            _ => None,
        });
        let receding = self.grants.receding.iter().map(|(_, each)| self.ledger.held(each.lease, device));
        recalled.chain(receding).chain([self.coming_back_from_holds(device)]).sum()
    }

    /// What a grant would give back by stepping down to a rung, or by leaving, beyond what it was asked for already.
    pub(super) fn frees(&self, id: GrantId, to: Option<usize>) -> Portions {
        let Some(grant) = self.grants.get(id) else { return Portions::new() };
        let held = grant.lease.map_or(&[][..], |lease| self.ledger.portions(lease));
        let asked = |device: DeviceId, held: Bytes| match grant.phase {
            GrantPhase::Recalled { to, .. } if !grant.overdue => grant.bytes_at(to, device),
            _ => held,
        };
        let freed = held.iter().map(|&(device, held)| (device, asked(device, held) - grant.bytes_at(to, device)));
        freed.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect()
    }

    /// Who steps down how far so that all of this comes back.
    ///
    /// # Errors
    /// The most that could be had, if that is not enough.
    pub(super) fn steps_for(
        &self,
        asker: Asker,
        round: Round,
        missing: &[(DeviceId, Bytes)],
    ) -> Result<Vec<Step>, Vec<Step>> {
        if round == Round::Share && self.config.sharing.policy == SharePolicy::Balanced {
            return self.steps_in_turns(asker, missing);
        }
        let mut steps: Vec<Step> = Vec::new();
        for holding in self.those_to_ask(asker, round) {
            let left = left_after(missing, &steps, None);
            if left.is_empty() {
                break;
            }
            steps.extend(match holding {
                (Holding::Grant(id), reach) => self.step_for(id.0, asker, reach, &left),
                (Holding::Session(sequence), _) => self.session_step(sequence, &left),
            });
        }
        spare_who_is_not_needed(steps, missing)
    }

    /// Everybody who has more than is recommended goes down by one rung, those of the best quality first, then by another,
    /// until it is enough: each gives a like part.
    fn steps_in_turns(&self, asker: Asker, missing: &[(DeviceId, Bytes)]) -> Result<Vec<Step>, Vec<Step>> {
        let holders = self.those_to_ask(asker, Round::Share).into_iter().filter_map(|(holding, reach)| {
            let (Holding::Grant(id), Reach::Down(quality)) = (holding, reach) else { return None };
            let grant = self.grants.get(id.0)?;
            let mut ahead = self.steps_down(id.0, grant, quality);
            ahead.retain(|step| missing.iter().any(|(device, _)| bytes_on(&step.frees, *device) > Bytes::ZERO));
            let at = grant.spec.ladder[grant.rung?].quality;
            Some(Turn { quality: at, ahead: ahead.into_iter().collect(), taken: None })
        });
        let mut turns: Vec<Turn> = holders.collect();
        while !left_after(missing, turns.iter().filter_map(|turn| turn.taken.as_ref()), None).is_empty() {
            let can_go = turns.iter_mut().filter(|turn| !turn.ahead.is_empty());
            // Of equals the first, who is the least urgent.
            let Some(next) = can_go.reduce(|best, turn| if turn.quality > best.quality { turn } else { best }) else {
                break;
            };
            next.taken = next.ahead.pop_front();
            next.quality = next.taken.as_ref().map_or(next.quality, |step| self.quality_after(step));
        }
        spare_who_is_not_needed(turns.into_iter().filter_map(|turn| turn.taken).collect(), missing)
    }

    fn quality_after(&self, step: &Step) -> Quality {
        match step.ask {
            Ask::Grant(id, Some(rung)) => {
                self.grants.get(id).map_or(Quality::ANY, |grant| grant.spec.ladder[rung].quality)
            }
            _ => Quality::ANY,
        }
    }

    /// Who could be asked in a round, and how far each would go: the least urgent first; of equals who gives way by the
    /// policy, then whom it costs least, then our own sessions, then the youngest grant.
    fn those_to_ask(&self, asker: Asker, round: Round) -> SmallVec<[(Holding, Reach); 8]> {
        let policy = self.config.sharing.policy;
        let grants = self.grants.all.iter().filter_map(|(id, grant)| {
            let reach = self.reach(*id, grant, asker, round);
            let place = policy.place_in_giving_way(grant.spec.kind);
            let next = grant.rung.and_then(|rung| grant.spec.ladder.get(rung + 1));
            let cost = next.map_or(Nanos::ZERO, |rung| rung.switch_cost);
            let is_spared = asker == Asker::Strangers && grant.is_within_batch();
            let order = (is_spared, grant.spec.priority, place, cost);
            (reach != Reach::Stays).then_some((order, Holding::Grant(std::cmp::Reverse(*id)), reach))
        });
        let sessions = match asker {
            Asker::Waiter { priority, .. } if round != Round::Share => Some(priority),
            _ => None,
        };
        let sessions = sessions.into_iter().flat_map(|priority| self.less_urgent_holds(priority));
        let sessions = sessions.map(|(priority, id)| {
            let order = (false, priority, policy.place_in_giving_way(GrantKind::Other), Nanos::ZERO);
            (order, Holding::Session(id), Reach::Leaves)
        });
        let mut all: SmallVec<[_; 8]> = grants.chain(sessions).collect();
        all.sort_unstable_by_key(|(order, holding, _)| (*order, *holding));
        all.into_iter().map(|(_, holding, reach)| (holding, reach)).collect()
    }

    /// How far a held session goes down; it is on one device only.
    fn session_step(&self, sequence: SequenceId, left: &[(DeviceId, Bytes)]) -> Option<Step> {
        let step = left.iter().find_map(|&(device, missing)| self.yield_step(sequence, device, missing))?;
        Some(Step { ask: Ask::Session(sequence, step.to), frees: [step.frees].into_iter().collect() })
    }
}

/// Somebody who steps down in turns with others.
struct Turn {
    /// The quality that it has after what it takes.
    quality: Quality,
    ahead: VecDeque<Step>,
    taken: Option<Step>,
}

/// A later one may have given so much that an earlier one is not needed; the most urgent is spared first.
fn spare_who_is_not_needed(mut steps: Vec<Step>, missing: &[(DeviceId, Bytes)]) -> Result<Vec<Step>, Vec<Step>> {
    if !left_after(missing, &steps, None).is_empty() {
        return Err(steps);
    }
    for at in (0..steps.len()).rev() {
        if left_after(missing, &steps, Some(at)).is_empty() {
            steps.remove(at);
        }
    }
    Ok(steps)
}

/// What is still missing after these steps, one of them left out.
fn left_after<'a>(
    missing: &[(DeviceId, Bytes)],
    steps: impl IntoIterator<Item = &'a Step>,
    without: Option<usize>,
) -> Portions {
    let mut left: Portions = missing.iter().copied().collect();
    for (_, step) in steps.into_iter().enumerate().filter(|(at, _)| Some(*at) != without) {
        left.iter_mut().for_each(|(device, bytes)| *bytes -= bytes_on(&step.frees, *device));
    }
    left.retain(|(_, bytes)| *bytes > Bytes::ZERO);
    left
}
