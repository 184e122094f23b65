//! Yielding: held sessions step down for what is more urgent, and rise again when there is room.
//! Never takes a session away: its state goes through host memory to a lower rung before its sequence's next task.
//! Invariant: only what is strictly more urgent makes a session step down, and only if a lower rung of its tasks can run.

use super::holds::{Hold, Place};
use super::{Host, Scheduler};
use crate::grant::GrantOwner;
use crate::task::TaskSpec;
use crate::{Bytes, DeviceId, DeviceSet, Moment, Nanos, Priority, Rung, SequenceId, TaskId};

/// How long a session that stepped down stays where it is: moving it costs its owner twice what is in it.
const RISE_PAUSE: Nanos = Nanos::seconds(1);

/// Why the rungs above one are not used by a sequence.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Yielded {
    /// Its owner asked for this rung or a lower one, for good.
    pub(super) by_owner: usize,
    /// Others needed its bytes: this rung or a lower one, until it may rise.
    pub(super) for_others: Option<(usize, Moment)>,
}

impl Yielded {
    /// The best rung that may be used.
    pub(super) fn best(&self) -> usize {
        self.by_owner.max(self.for_others.map_or(0, |(rung, _)| rung))
    }
}

/// A held session that could step down, and what of one device that would free.
pub(super) struct YieldStep {
    pub(super) to: &'static str,
    pub(super) frees: (DeviceId, Bytes),
}

impl<H: Host> Scheduler<H> {
    /// Held sessions of sequences whose latest task is less urgent than this.
    pub(super) fn less_urgent_holds(&self, priority: Priority) -> impl Iterator<Item = (Priority, SequenceId)> + '_ {
        self.holds.iter().filter_map(move |(sequence, hold)| {
            let (spec, _) = hold.latest.as_ref()?;
            (spec.priority < priority && hold.leaving.is_none()).then_some((spec.priority, sequence))
        })
    }

    /// The first rung below that frees so many bytes of a device, or the one that frees most.
    pub(super) fn yield_step(&self, sequence: SequenceId, device: DeviceId, missing: Bytes) -> Option<YieldStep> {
        let hold = self.holds.get(sequence)?;
        let (spec, _) = hold.latest.as_ref()?;
        let (home, at, held) = self.held_bytes(hold)?;
        let below = spec.ladder.rungs().iter().enumerate().skip(at + 1);
        let steps = below.filter(|(at, rung)| home == device && self.can_go_on(spec, *at, rung));
        let mut best: Option<YieldStep> = None;
        for (_, rung) in steps {
            let freed = held - self.session_bytes(rung, device);
            if best.as_ref().is_none_or(|best| freed > best.frees.1) && freed > Bytes::ZERO {
                best = Some(YieldStep { to: rung.name, frees: (device, freed) });
            }
            if freed >= missing {
                break;
            }
        }
        best
    }

    /// Asks a held session to step down because others need its bytes.
    pub(super) fn make_yield(&mut self, now: Moment, sequence: SequenceId, to: &'static str) -> bool {
        let Some(hold) = self.holds.get_mut(sequence) else { return false };
        let ladder = hold.latest.as_ref().map(|(spec, _)| &spec.ladder);
        let rung = ladder.and_then(|ladder| ladder.rungs().iter().position(|rung| rung.name == to));
        hold.yielded.for_others = rung.map(|rung| (rung, now + RISE_PAUSE));
        rung.is_some() && self.move_down(now, sequence)
    }

    /// A task of a held sequence has no rung left: what others needed of its session is no reason to end it. Says whether
    /// that leaves it more to choose from.
    pub(super) fn lift_yield(&mut self, task: TaskId) -> bool {
        let held = self.tasks.get(task).and_then(|state| state.spec.sequence.filter(|_| state.spec.holds));
        let hold = held.and_then(|sequence| self.holds.get_mut(sequence));
        hold.is_some_and(|hold| hold.yielded.for_others.take().is_some())
    }

    /// Bytes of a device that held sessions were asked for and give back before their next task.
    pub(super) fn coming_back_from_holds(&self, device: DeviceId) -> Bytes {
        let leaving = self.holds.iter().filter(|(_, hold)| hold.leaving.is_some());
        let freed = leaving.filter_map(|(_, hold)| {
            let (spec, _) = hold.latest.as_ref()?;
            let (home, _, held) = self.held_bytes(hold)?;
            let next = spec.ladder.rungs().get(hold.yielded.best())?;
            (home == device).then(|| held - self.session_bytes(next, device))
        });
        freed.sum()
    }

    /// A task of a held sequence has ended. A session that stepped down for others takes its state out again once a
    /// better rung has room: the next task then chooses among all rungs.
    pub(super) fn rise_if_there_is_room(&mut self, now: Moment, sequence: SequenceId) {
        let Some(hold) = self.holds.get_mut(sequence).filter(|hold| hold.leaving.is_none()) else { return };
        let Some((_, from)) = hold.yielded.for_others.filter(|(_, from)| *from <= now) else { return };
        let Some((spec, at)) = hold.latest.as_ref().and_then(|(spec, _)| Some((spec, hold.rung_in_use(spec)?))) else {
            return;
        };
        let better = spec.ladder.rungs().iter().enumerate().take(at).skip(hold.yielded.by_owner);
        let better: Vec<_> = better.map(|(at, rung)| (at, rung.clone())).collect();
        let spec = spec.clone();
        let has_room = better.iter().any(|(at, rung)| self.has_room_for(sequence, &spec, *at, rung));
        let Some(hold) = self.holds.get_mut(sequence) else { return };
        if has_room {
            hold.yielded.for_others = None;
            self.leave_rung(now, sequence);
        } else {
            // Asked again, but not at each of ten thousand small tasks.
            hold.yielded.for_others = hold.yielded.for_others.map(|(rung, _)| (rung, from + RISE_PAUSE));
        }
    }

    /// Where a sequence's open session is, on which rung of its ladder, and how many bytes it holds there.
    fn held_bytes(&self, hold: &Hold<H>) -> Option<(DeviceId, usize, Bytes)> {
        let (spec, _) = hold.latest.as_ref()?;
        let Place::Open { device, .. } = &hold.place else { return None };
        let at = hold.rung_in_use(spec)?;
        Some((*device, at, self.session_bytes(&spec.ladder.rungs()[at], *device)))
    }

    /// What a session of a rung needs of a device; nothing if it does not run there.
    fn session_bytes(&self, rung: &Rung, device: DeviceId) -> Bytes {
        let runs_there = rung.place.allows(self.device(device).spec.kind);
        if runs_there { rung.footprint.session } else { Bytes::ZERO }
    }

    /// Whether the tasks of a sequence could go on at this rung on some device that is well.
    fn can_go_on(&self, spec: &TaskSpec, at: usize, rung: &Rung) -> bool {
        self.device_ids().any(|device| self.could_hold(spec, at, rung, device))
    }

    fn could_hold(&self, spec: &TaskSpec, at: usize, rung: &Rung, device: DeviceId) -> bool {
        let wanted = rung.total(spec.references.len());
        let elsewhere = TaskSpec { holds: false, ..spec.clone() };
        self.may_run(&elsewhere, at, rung, device).is_ok() && wanted <= self.ledger.ceiling(device)
    }

    /// Whether a better rung fits beside what all others hold and wait for, once the session has left the one it is on.
    fn has_room_for(&self, sequence: SequenceId, spec: &TaskSpec, at: usize, rung: &Rung) -> bool {
        let home = self.holds.get(sequence).and_then(|hold| self.held_bytes(hold));
        let fits = |device: DeviceId| {
            let given_back = home.filter(|(home, ..)| *home == device).map_or(Bytes::ZERO, |(.., held)| held);
            let more = [(device, rung.total(spec.references.len()) - given_back)];
            let is_short = self.step_shortage(&more, GrantOwner::Sequence(sequence), DeviceSet::NONE).is_some();
            !is_short && self.could_hold(spec, at, rung, device)
        };
        !self.grants.wait() && self.device_ids().any(fits)
    }
}
