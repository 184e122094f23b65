//! Those whose sequence owns its session: they hand in tasks, drain, are asked to step down, lose it, do again what was
//! lost, and close it.
//! Never restarts before it has heard of a loss.

use plimsoll_core::scheduler::{RunId, SessionTurn, Undrained};
use plimsoll_core::{DeviceId, Moment, Nanos, SequenceId, TaskError, TaskId, TaskSpec};

use super::{Cost, Errand, Flight, Happening, World};
use crate::sim::truth::{Held, VirtualSession};

/// How often an owner does again what was lost. After that it goes on without.
const DONE_AGAIN_MAX: u32 = 3;
/// The first name of a held sequence: those of others are below.
const FIRST: u64 = 1_000;

/// A sequence that owns its session, as it is in truth.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) sequence: SequenceId,
    /// Its jobs that were taken in, first to last.
    pub(crate) jobs: Vec<usize>,
    /// What its session holds, wherever that is.
    held: Held,
    /// The run that uses its session.
    user: Option<RunId>,
    /// Where its session is open.
    pub(crate) open: Option<(DeviceId, usize)>,
    /// What was delivered since it was last drained, and the task that drained it.
    pub(crate) undrained: Vec<usize>,
    pub(crate) since: Option<TaskId>,
    /// The best rung that it has not been asked to leave.
    pub(crate) best: usize,
    pub(crate) is_closed: bool,
    will_restart: bool,
    done_again: u32,
}

impl World {
    /// A sequence that owns its session from now until this moment.
    pub fn hold_until(&mut self, until: Moment) -> (usize, SequenceId) {
        let at = self.holders.len();
        let sequence = SequenceId(FIRST + at as u64);
        self.scheduler.hold(sequence);
        self.holders.push(Holder {
            sequence,
            jobs: Vec::new(),
            held: Held::default(),
            user: None,
            open: None,
            undrained: Vec::new(),
            since: None,
            best: 0,
            is_closed: false,
            will_restart: false,
            done_again: 0,
        });
        self.plan(until, Happening::Close(at));
        (at, sequence)
    }

    /// Its session is asked to step down to this rung, counted from the best.
    pub fn recall_session_at(&mut self, at: Moment, holder: usize, rung: usize) {
        self.plan(at, Happening::RecallSession(holder, rung));
    }

    pub(in crate::sim) fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.holders.iter()
    }

    /// Whose session a task runs on.
    pub(in crate::sim) fn holder_of(&self, spec: &TaskSpec) -> Option<&Holder> {
        let sequence = spec.sequence.filter(|_| spec.holds)?;
        self.holders.iter().find(|holder| holder.sequence == sequence)
    }

    fn holder_mut(&mut self, sequence: SequenceId) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| holder.sequence == sequence)
    }

    /// A task of a held sequence was taken in: never while its session is lost.
    pub(super) fn joined_holder(&mut self, job: usize) {
        let Some(sequence) = self.tasks[job].spec.sequence.filter(|_| self.tasks[job].spec.holds) else { return };
        let Some(at) = self.holders.iter().position(|holder| holder.sequence == sequence) else { return };
        let before = self.holders[at].jobs.iter().rev().find(|before| self.tasks[**before].end.is_none());
        self.tasks[job].held_after = before.copied();
        self.holders[at].jobs.push(job);
    }

    /// The session that a run is given must hold exactly what was done before it and not drained.
    pub(super) fn check_held(
        &mut self,
        spec: &TaskSpec,
        errand: Errand,
        (job, rung, run): (usize, usize, RunId),
        turn: Option<&SessionTurn<VirtualSession, Held>>,
    ) -> Result<(), String> {
        let Some(holder) = self.holder_of(spec) else { return Ok(()) };
        let given = match turn {
            Some(SessionTurn::Warm(session)) => {
                session.holds.as_ref().map(|(_, held)| held.clone()).unwrap_or_default()
            }
            Some(SessionTurn::Resume(_, held)) => held.clone(),
            _ => Held::default(),
        };
        if given != holder.held {
            return Err(format!("holds: job {job} was given {given:?}, but {:?} was done before", holder.held));
        }
        let is_used = |flight: &Flight| {
            let is_of_now = self.devices[flight.device.index()].quarantines == flight.quarantines;
            is_of_now && self.tasks[flight.job].spec.holds && self.tasks[flight.job].spec.sequence == spec.sequence
        };
        if self.flights().any(is_used) {
            return Err(format!("holds: job {job} was started while another uses the session of its sequence"));
        }
        let comes_first = |before: &&usize| self.tasks[**before].order < self.tasks[job].order;
        let waits = |before: &usize| self.tasks[*before].end.is_none();
        if errand == Errand::Asked && holder.jobs.iter().filter(comes_first).any(waits) {
            return Err(format!("holds: job {job} was started before one that comes first"));
        }
        if errand == Errand::Asked && rung < holder.best {
            return Err(format!("holds: job {job} was started on rung {rung}, which was asked back"));
        }
        if let Some(holder) = self.holder_mut(spec.sequence.unwrap_or(SequenceId(0))) {
            holder.user = Some(run);
        }
        Ok(())
    }

    /// A run on a held session is over: what it did is in the session, or was taken out of it.
    pub(super) fn returns_held(&mut self, flight: &Flight, session: &mut Option<VirtualSession>) -> Option<Held> {
        let spec = &self.tasks[flight.job].spec;
        let (drains, job, run, errand) = (spec.drains, flight.job, flight.run, flight.errand);
        let (sequence, held) = session.as_mut()?.holds.as_mut()?;
        match errand {
            Errand::Leave => {}
            _ if drains => held.0.clear(),
            _ => held.0.push(job),
        }
        let (sequence, held, at) = (*sequence, held.clone(), (flight.device, flight.rung));
        if let Some(holder) = self.holder_mut(sequence).filter(|holder| holder.user == Some(run)) {
            holder.held = held.clone();
            holder.open = (errand != Errand::Leave).then_some(at);
        }
        (errand == Errand::Leave).then_some(held)
    }

    /// A session goes: one that is held only if it is lost, left, closed, or was never used before by a run that counted.
    pub(super) fn session_goes(&mut self, session: &VirtualSession) -> Result<(), String> {
        let Some((sequence, held)) = &session.holds else { return Ok(()) };
        let is_lost = self.scheduler.is_hold_lost(*sequence);
        let Some(holder) = self.holder_mut(*sequence).filter(|holder| !holder.is_closed && !is_lost) else {
            return Ok(());
        };
        if holder.open.is_none() || *held != holder.held {
            return Ok(());
        }
        if held.0.len() > 1 {
            return Err(format!("holds: the session of {sequence:?} was discarded with {held:?} in it"));
        }
        (holder.held, holder.open) = (Held::default(), None);
        Ok(())
    }

    /// The owner hears of a result, or of a loss.
    pub(super) fn tell_holder(&mut self, job: usize, end: &Result<DeviceId, TaskError>) -> Result<(), String> {
        let (spec, id) = (&self.tasks[job].spec, self.tasks[job].id);
        let Some(at) = self.holders.iter().position(|holder| spec.holds && Some(holder.sequence) == spec.sequence)
        else {
            return Ok(());
        };
        let drains = spec.drains;
        let holder = &mut self.holders[at];
        match end {
            Ok(_) if drains => (holder.undrained, holder.since) = (Vec::new(), id),
            Ok(_) => holder.undrained.push(job),
            Err(TaskError::SessionLost { since, undrained }) => {
                let (done, drained) = (holder.undrained.len() as u64, holder.since);
                if (*undrained, *since) != (done, drained) {
                    return Err(format!(
                        "holds: {undrained} said to be lost since {since:?}, {done} since {drained:?}"
                    ));
                }
                self.will_restart(at);
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// A task was refused because the session is lost.
    pub(super) fn refused_by_loss(&mut self, job: usize, undrained: u64) -> Result<(), String> {
        let spec = &self.tasks[job].spec;
        let Some(at) = self.holders.iter().position(|holder| Some(holder.sequence) == spec.sequence) else {
            return Err(format!("holds: job {job} was refused for a session that it has not"));
        };
        let done = self.holders[at].undrained.len() as u64;
        if undrained != done {
            return Err(format!("holds: job {job} was refused with {undrained} lost, but {done} are"));
        }
        self.will_restart(at);
        Ok(())
    }

    fn will_restart(&mut self, at: usize) {
        if !std::mem::replace(&mut self.holders[at].will_restart, true) {
            let after = Nanos::micros(self.rng.within(0, 300_000));
            self.plan(self.now + after, Happening::Restart(at));
        }
    }

    /// The owner begins anew, and does again what was lost.
    pub(super) fn restart(&mut self, at: usize) -> Result<(), String> {
        self.holders[at].will_restart = false;
        let sequence = self.holders[at].sequence;
        if self.holders[at].is_closed || !self.scheduler.is_hold_lost(sequence) {
            return Ok(());
        }
        let Undrained { since, tasks } = self.scheduler.restart(sequence);
        let holder = &mut self.holders[at];
        let lost = std::mem::take(&mut holder.undrained);
        let drained = holder.since.take();
        (holder.held, holder.open, holder.user) = (Held::default(), None, None);
        if (tasks, since) != (lost.len() as u64, drained) {
            return Err(format!("holds: {tasks} lost since {since:?}, but {lost:?} since {drained:?}"));
        }
        holder.done_again += 1;
        if holder.done_again <= DONE_AGAIN_MAX {
            for job in lost {
                let (spec, cost): (TaskSpec, Cost) = (self.tasks[job].spec.clone(), self.tasks[job].cost);
                let again = self.add(TaskSpec { deadline: None, ..spec }, cost);
                self.plan(self.now, Happening::Submit(again));
            }
        }
        Ok(())
    }

    pub(super) fn recall_session(&mut self, at: usize, rung: usize) {
        let sequence = self.holders[at].sequence;
        let Some(&job) = self.holders[at].jobs.last() else { return };
        let rungs = self.tasks[job].spec.ladder.rungs();
        let rung = rung.min(rungs.len() - 1);
        if self.scheduler.recall_hold(self.now, sequence, rungs[rung].name) {
            let holder = &mut self.holders[at];
            holder.best = holder.best.max(rung);
        }
    }

    pub(super) fn close(&mut self, at: usize) {
        self.holders[at].is_closed = true;
        self.scheduler.close_hold(self.now, self.holders[at].sequence);
    }
}
