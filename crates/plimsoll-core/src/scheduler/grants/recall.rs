//! Recall: who is asked to step down, for whom, and how far: grants, and held sessions (`yielding`).
//! Never asks anybody of equal or higher priority, and nobody if all together could not give enough.
//! Invariant: the least urgent first, one rung at a time, no more than is missing.

use smallvec::SmallVec;

use super::super::state::Phase;
use super::super::{Discards, Host, Scheduler};
use super::GrantNews;
use crate::event::{GrantEdge, What};
use crate::grant::{GrantId, GrantPhase, Portions, StepError, bytes_on};
use crate::{Bytes, DeviceId, DeviceSet, Moment, Nanos, Priority, SequenceId, TaskId};

/// Who could step down. Among equally urgent ones sessions of our own go first: nobody has to be asked for them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holding {
    Session(SequenceId),
    Grant(std::cmp::Reverse<GrantId>),
}

/// How far somebody would have to step down.
struct Step {
    ask: Ask,
    frees: Portions,
}

enum Ask {
    Session(SequenceId, &'static str),
    Grant(GrantId, Option<usize>),
}

impl<H: Host> Scheduler<H> {
    /// Asks the owner of a held grant to step down to a rung, or to leave, within a time. What the lower rung needs on
    /// other devices is reserved for it now.
    ///
    /// # Errors
    /// Why that is no step, or where the lower rung does not fit.
    pub fn recall(&mut self, now: Moment, id: GrantId, to: Option<usize>, within: Nanos) -> Result<(), StepError> {
        let grant = self.grants.get(id).filter(|grant| grant.is_held()).ok_or(StepError::NotHeld)?;
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
        if self.is_held_by_others(device, wanted) {
            self.recall_for(now, priority, &[(device, wanted)]);
        }
    }

    /// Makes who is less urgent step down until these bytes fit once our own runs have ended. Says whether they will: bytes
    /// that are already on their way back count.
    pub(super) fn recall_for(&mut self, now: Moment, priority: Priority, wanted: &[(DeviceId, Bytes)]) -> bool {
        let missing = wanted.iter().map(|&(device, bytes)| {
            let (line, lasting) = (self.ledger.measured(device), self.ledger.lasting(device));
            (device, bytes + lasting - (line + self.coming_back(device)))
        });
        let missing = missing.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect();
        self.recall_missing(now, priority, missing)
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
        self.recall_missing(
            now,
            priority,
            [(device, missing)].into_iter().filter(|(_, bytes)| *bytes > Bytes::ZERO).collect(),
        )
    }

    fn recall_missing(&mut self, now: Moment, priority: Priority, missing: Portions) -> bool {
        if missing.is_empty() {
            return true;
        }
        let Some(steps) = self.steps_for(priority, &missing) else { return false };
        let within = self.config.recall_within;
        let mut all_asked = true;
        for Step { ask, .. } in steps {
            all_asked &= match ask {
                Ask::Grant(grant, to) => self.recall(now, grant, to, within).is_ok(),
                Ask::Session(sequence, to) => self.make_yield(now, sequence, to),
            };
        }
        all_asked
    }

    /// Bytes of a device that owners were asked for and still have time to give, or have given without anybody knowing.
    fn coming_back(&self, device: DeviceId) -> Bytes {
        let recalled = self.grants.all.values().filter(|grant| !grant.overdue).filter_map(|grant| match grant.phase {
            GrantPhase::Recalled { to, .. } => {
                Some(self.ledger.held(grant.lease?, device) - grant.bytes_at(to, device))
            }
            _ => None,
        });
        let receding = self.grants.receding.iter().map(|receding| self.ledger.held(receding.lease, device));
        recalled.chain(receding).chain([self.coming_back_from_holds(device)]).sum()
    }

    /// What a grant would give back by stepping down to a rung, or by leaving, beyond what it was asked for already.
    fn frees(&self, id: GrantId, to: Option<usize>) -> Portions {
        let Some(grant) = self.grants.get(id) else { return Portions::new() };
        let held = grant.lease.map_or(&[][..], |lease| self.ledger.portions(lease));
        let asked = |device: DeviceId, held: Bytes| match grant.phase {
            GrantPhase::Recalled { to, .. } if !grant.overdue => grant.bytes_at(to, device),
            _ => held,
        };
        let freed = held.iter().map(|&(device, held)| (device, asked(device, held) - grant.bytes_at(to, device)));
        freed.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect()
    }

    /// Who steps down how far so that all of this comes back; nothing if it would not be enough.
    fn steps_for(&self, priority: Priority, missing: &[(DeviceId, Bytes)]) -> Option<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        for holding in self.less_urgent(priority) {
            let left = left_after(missing, &steps, None);
            if left.is_empty() {
                break;
            }
            steps.extend(match holding {
                Holding::Grant(id) => self.step_for(id.0, &left),
                Holding::Session(sequence) => self.session_step(sequence, &left),
            });
        }
        if !left_after(missing, &steps, None).is_empty() {
            return None;
        }
        // A later one may have given so much that an earlier one is not needed; the most urgent is spared first.
        for at in (0..steps.len()).rev() {
            if left_after(missing, &steps, Some(at)).is_empty() {
                steps.remove(at);
            }
        }
        Some(steps)
    }

    /// Who holds something below a priority and could still be asked: the least urgent first, among equals our own
    /// sessions, then the youngest grant.
    fn less_urgent(&self, priority: Priority) -> SmallVec<[Holding; 8]> {
        let may_be_asked =
            |grant: &super::book::Grant| grant.spec.priority < priority && grant.is_held() && !grant.overdue;
        let all = self.grants.all.iter().filter(|(_, grant)| may_be_asked(grant));
        let grants = all.map(|(id, grant)| (grant.spec.priority, Holding::Grant(std::cmp::Reverse(*id))));
        let sessions = self.less_urgent_holds(priority).map(|(priority, id)| (priority, Holding::Session(id)));
        let mut all: SmallVec<[_; 8]> = grants.chain(sessions).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, holding)| holding).collect()
    }

    /// How far a held session goes down; it is on one device only.
    fn session_step(&self, sequence: SequenceId, left: &[(DeviceId, Bytes)]) -> Option<Step> {
        let step = left.iter().find_map(|&(device, missing)| self.yield_step(sequence, device, missing))?;
        Some(Step { ask: Ask::Session(sequence, step.to), frees: [step.frees].into_iter().collect() })
    }

    /// How far one grant goes down, a rung at a time, until it has given what is left to give; it leaves if that is less.
    fn step_for(&self, id: GrantId, left: &[(DeviceId, Bytes)]) -> Option<Step> {
        let grant = self.grants.get(id)?;
        let below = match grant.phase {
            GrantPhase::Recalled { to, .. } => to? + 1,
            _ => grant.rung? + 1,
        };
        let helps = |frees: &Portions| left.iter().any(|(device, _)| bytes_on(frees, *device) > Bytes::ZERO);
        let is_enough = |frees: &Portions| left.iter().all(|&(device, bytes)| bytes_on(frees, device) >= bytes);
        let owner = grant.spec.owner;
        for rung in below..grant.spec.ladder.len() {
            let frees = self.frees(id, Some(rung));
            let more = self.more_than_held(id, rung);
            if is_enough(&frees) && self.step_shortage(&more, owner, DeviceSet::NONE).is_none() {
                return Some(Step { ask: Ask::Grant(id, Some(rung)), frees });
            }
        }
        let frees = self.frees(id, None);
        helps(&frees).then_some(Step { ask: Ask::Grant(id, None), frees })
    }
}

/// What is still missing after these steps, one of them left out.
fn left_after(missing: &[(DeviceId, Bytes)], steps: &[Step], without: Option<usize>) -> Portions {
    let freed = |device: DeviceId| -> Bytes {
        let steps = steps.iter().enumerate().filter(|(at, _)| Some(*at) != without);
        steps.map(|(_, step)| bytes_on(&step.frees, device)).sum()
    };
    let left = missing.iter().map(|&(device, bytes)| (device, bytes - freed(device)));
    left.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect()
}
