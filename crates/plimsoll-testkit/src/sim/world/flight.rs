//! An attempt in virtual time: a slot opens, prepares and runs.
//! Never tells the scheduler more than a real attempt could.

use std::rc::Rc;

use plimsoll_core::residency::PreparedKey;
use plimsoll_core::scheduler::{Assignment, Behind, Measured, ReferenceTurn, RunId, SessionTurn, Suspicion};
use plimsoll_core::{Bytes, DeviceId, Fault, Moment, Nanos, TaskId, TaskSpec};

use super::mishap::Stage;
use super::{Happening, Pretend, World};
use crate::sim::truth::{Allocation, MadeFor, VirtualSession};

/// One attempt under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(super) run: RunId,
    pub(crate) job: usize,
    /// The rung, counted from the best.
    pub(crate) rung: usize,
    pub(crate) device: DeviceId,
    /// `None` if it stands behind another and uses its slot and session.
    pub(super) slot: Option<usize>,
    /// How often its device had gone away when it started.
    pub(super) generation: u32,
    /// How often its device had been put into quarantine when it started.
    pub(crate) quarantines: u32,
    /// Its device's epoch when it started.
    epoch: u32,
    pub(super) result: Result<(), Fault>,
    pub(super) session: Option<VirtualSession>,
    /// Runs that follow it in the same slot, and land with it.
    pub(super) behind: Vec<usize>,
    pub(super) task_bytes: Option<Allocation>,
    /// Its references that are there, by their place in the task.
    pub(super) held: Vec<(usize, Rc<Allocation>)>,
    /// References that it has yet to prepare, by their place in the task.
    pub(crate) preparing: Vec<(usize, PreparedKey)>,
    pub(super) measured: Measured,
    /// Bytes it holds beyond what anybody could have known when it started.
    pub(crate) surprise: Bytes,
    /// It does not answer for a long time.
    pub(crate) hangs: bool,
    /// The check that its slot makes because memory ran out.
    pub(super) check: Check,
    /// Since when its result waits for a check of its device.
    pub(super) waits_since: Option<Moment>,
}

impl Flight {
    /// Its references, as one that stands behind it finds them.
    fn references(&self) -> impl Iterator<Item = ReferenceTurn<Rc<Allocation>>> + '_ {
        self.held.iter().map(|(_, held)| ReferenceTurn::Ready(Rc::clone(held)))
    }
}

/// A device's known answer, asked for after an out-of-memory.
#[derive(Copy, Clone, Debug)]
pub(super) enum Check {
    NotMade,
    /// It is under way; the quarantines of the device when it began.
    UnderWay(Suspicion, u32),
    Made,
}

/// A task that a slot was given, and the rung to do it on.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) task: TaskId,
    pub(crate) job: usize,
    /// Counted from the best.
    pub(crate) rung: usize,
}

impl Taken {
    pub(super) fn of(assignment: &Assignment<Pretend>) -> Self {
        Self { task: assignment.task, job: assignment.job, rung: assignment.rung }
    }
}

/// What an attempt begins with.
struct Start {
    run: RunId,
    taken: Taken,
    /// `None` if it uses the session and the memory of the one before it.
    session: Option<SessionTurn<VirtualSession, ()>>,
    references: Vec<ReferenceTurn<Rc<Allocation>>>,
}

impl World {
    /// A device goes away at this moment.
    pub fn lose_at(&mut self, at: Moment, device: DeviceId) {
        let generation = self.devices[device.index()].generation;
        self.plan(at, Happening::Lose(device, generation));
    }

    /// Other programs hold this much of a device from this moment on.
    pub fn others_at(&mut self, at: Moment, device: DeviceId, bytes: Bytes) {
        self.devices[device.index()].has_strangers = true;
        self.plan(at, Happening::Others(device, bytes));
    }

    /// A slot starts what it took, and sometimes takes more to run right behind it.
    pub(super) fn take_off(
        &mut self,
        device: DeviceId,
        slot: usize,
        assignment: Assignment<Pretend>,
    ) -> Result<(), String> {
        let (run, first) = (assignment.run, Taken::of(&assignment));
        let Assignment { discards, session, references, .. } = assignment;
        drop(discards);
        let start = Start { run, taken: first, session: Some(session), references: references.into_vec() };
        let (flight, mut lands_at) = self.fly(device, Some(slot), start)?;
        while self.rng.chance(self.batches) {
            let before = self.before_take(device);
            let Some(Behind { task, job, .. }) = self.scheduler.take_behind(self.now, run) else { break };
            let taken = Taken { task, job, rung: first.rung };
            self.after_take(before, taken)?;
            let references = self.flights[flight].iter().flat_map(Flight::references).collect();
            let (behind, ends_at) = self.fly(device, None, Start { run, taken, session: None, references })?;
            lands_at = lands_at + ends_at.since(self.now);
            if let Some(head) = &mut self.flights[flight] {
                head.behind.push(behind);
            }
        }
        self.plan(lands_at, Happening::Land(flight));
        Ok(())
    }

    /// Plays an attempt ahead: what it will hold, when it will be over and how.
    fn fly(&mut self, device: DeviceId, slot: Option<usize>, start: Start) -> Result<(usize, Moment), String> {
        let Start { run, taken: Taken { job, rung: at, .. }, session, references } = start;
        let is_first = session.is_some();
        if self.tasks[job].end.is_some() {
            return Err(format!("task {job} was started after it had ended"));
        }
        self.tasks[job].starts += 1;
        let spec = self.tasks[job].spec.clone();
        let rung = &spec.ladder.rungs()[at];
        let (session, opens) = self.check_session(device, &spec, rung.name, session)?;
        let stages = stages(opens, &references);
        let mishap = self.draw_mishap(device, job, rung.name, &stages);
        let state = &self.devices[device.index()];
        let (speed, generation, quarantines, epoch) =
            (state.gpu.speed, state.generation, state.quarantines, state.epoch);
        let mut flight = Flight {
            run,
            job,
            rung: at,
            device,
            slot,
            generation,
            quarantines,
            epoch,
            result: Ok(()),
            session,
            behind: Vec::new(),
            task_bytes: None,
            held: Vec::new(),
            preparing: to_prepare(&references).map(|place| (place, prepared_key(&spec, at, place))).collect(),
            measured: Measured::default(),
            surprise: if is_first { self.surprise(&spec, at, device) } else { Bytes::ZERO },
            hangs: mishap.as_ref().is_some_and(|mishap| mishap.hang > Nanos::ZERO),
            check: Check::NotMade,
            waits_since: None,
        };
        let cost = self.tasks[job].cost;
        let run_takes = self.draw_run_time(device, job);
        for (place, turn) in references.into_iter().enumerate() {
            if let ReferenceTurn::Ready(ready) = turn {
                self.check_reference(device, &prepared_key(&spec, at, place), &ready)?;
                flight.held.push((place, ready));
            }
        }
        let mut clock = self.now;
        for stage in stages {
            let (takes, bytes) = match stage {
                Stage::Open => (cost.open.scaled(1.0 / speed), rung.footprint.session),
                Stage::Prepare(_) => (cost.bring.scaled(1.0 / speed), rung.footprint.reference),
                Stage::Run if is_first => (run_takes, self.real_bytes(&spec, at) - kept_bytes(&spec, at)),
                // In the memory of the one before it.
                Stage::Run => (run_takes, Bytes::ZERO),
            };
            let (over_at, played) = self.play_stage(device, stage, clock, (takes, bytes), mishap.as_ref());
            let took = over_at.since(clock);
            clock = over_at;
            let allocation = match played {
                Ok(allocation) => allocation,
                Err(fault) => {
                    flight.result = Err(fault);
                    break;
                }
            };
            match stage {
                Stage::Open => {
                    flight.measured.open = Some(took);
                    let made_for = self.made_for(device, &spec, rung.name);
                    flight.session = Some(VirtualSession { _bytes: allocation, made_for });
                }
                Stage::Prepare(place) => {
                    flight.measured.bring += took;
                    flight.measured.brought += 1;
                    flight.held.push((place, Rc::new(allocation)));
                    self.plan(clock, Happening::Prepared { flight: self.flights.len(), at: place });
                }
                Stage::Run => {
                    flight.measured.run = took;
                    flight.measured.peak = Some(self.real_bytes(&spec, at));
                    flight.task_bytes = Some(allocation);
                }
            }
        }
        self.flights.push(Some(flight));
        Ok((self.flights.len() - 1, clock))
    }

    /// A warm session must be one of this very device, as it is now, opened for this very thing.
    fn check_session(
        &self,
        device: DeviceId,
        spec: &TaskSpec,
        rung: &'static str,
        turn: Option<SessionTurn<VirtualSession, ()>>,
    ) -> Result<(Option<VirtualSession>, bool), String> {
        match turn {
            None => Ok((None, false)),
            Some(SessionTurn::Open(_) | SessionTurn::Resume(..)) => Ok((None, true)),
            Some(SessionTurn::Warm(session)) if session.made_for == self.made_for(device, spec, rung) => {
                Ok((Some(session), false))
            }
            Some(SessionTurn::Warm(session)) => {
                Err(format!("{device} was given a session made for {:?}", session.made_for))
            }
        }
    }

    fn made_for(&self, device: DeviceId, spec: &TaskSpec, rung: &'static str) -> MadeFor {
        let epoch = self.devices[device.index()].epoch;
        MadeFor { device, epoch, workload: spec.workload, rung, shape: spec.session }
    }

    /// So must a reference that is said to be there.
    fn check_reference(&self, device: DeviceId, key: &PreparedKey, ready: &Rc<Allocation>) -> Result<(), String> {
        let state = &self.devices[device.index()];
        let known = state.prepared.iter().find(|prepared| std::ptr::eq(prepared.bytes.as_ptr(), Rc::as_ptr(ready)));
        match known {
            Some(known) if known.key == *key && known.epoch == state.epoch => Ok(()),
            Some(known) => Err(format!("{device}, epoch {}: {key:?} was answered by {known:?}", state.epoch)),
            None => Err(format!("{device}: {key:?} was answered by something that was not prepared there")),
        }
    }

    pub(super) fn prepared(&mut self, flight: usize, at: usize) {
        let Some(Some(state)) = self.flights.get_mut(flight) else { return };
        let Some(which) = state.preparing.iter().position(|(place, _)| *place == at) else { return };
        let (_, key) = state.preparing.remove(which);
        let device = &mut self.devices[state.device.index()];
        if state.generation == device.generation {
            let Some((_, made)) = state.held.iter().find(|(place, _)| *place == at) else { return };
            let (run, made) = (state.run, Rc::clone(made));
            device.note_prepared(key, state.epoch, &made);
            self.scheduler.prepared(run, at, made);
        }
    }

    /// Bytes beyond what the scheduler could know of before the first such run was measured.
    fn surprise(&self, spec: &TaskSpec, rung: usize, device: DeviceId) -> Bytes {
        let Some(checks) = &self.checks else { return Bytes::ZERO };
        self.real_bytes(spec, rung) - checks.known_bytes(spec, rung, device)
    }
}

fn stages(opens: bool, references: &[ReferenceTurn<Rc<Allocation>>]) -> Vec<Stage> {
    let open = opens.then_some(Stage::Open);
    open.into_iter().chain(to_prepare(references).map(Stage::Prepare)).chain([Stage::Run]).collect()
}

/// The places of the references that are not there yet.
fn to_prepare(references: &[ReferenceTurn<Rc<Allocation>>]) -> impl Iterator<Item = usize> + '_ {
    let missing = references.iter().enumerate().filter(|(_, turn)| matches!(turn, ReferenceTurn::Prepare));
    missing.map(|(place, _)| place)
}

/// Bytes of a run that outlive it: its session and its references.
fn kept_bytes(spec: &TaskSpec, rung: usize) -> Bytes {
    let footprint = spec.ladder.rungs()[rung].footprint;
    footprint.session + Bytes(footprint.reference.0 * spec.references.len() as u64)
}

pub(crate) fn prepared_key(spec: &TaskSpec, rung: usize, place: usize) -> PreparedKey {
    PreparedKey {
        content: spec.references[place].content,
        workload: spec.workload,
        rung: spec.ladder.rungs()[rung].name,
        params: spec.session.params,
    }
}
