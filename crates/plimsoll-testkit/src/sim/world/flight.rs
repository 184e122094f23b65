//! An attempt in virtual time: a slot opens, prepares and runs.
//! Never tells the scheduler more than a real attempt could.

use std::rc::Rc;

use plimsoll_core::residency::PreparedKey;
use plimsoll_core::scheduler::{
    Assignment, Behind, Measured, Moved, ReferenceTurn, RunId, SessionTurn, Suspicion, ValueTurn,
};
use plimsoll_core::{Bytes, DeviceId, Fault, Moment, Nanos, TaskId, TaskSpec};

use super::mishap::{Mishap, Stage};
use super::{Happening, Pretend, World};
use crate::sim::truth::{Allocation, Held, MadeFor, VirtualSession, VirtualValue};

/// What an attempt is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Its task.
    Asked,
    /// To make a value again that was lost: nobody is told of it.
    Again,
    /// To take what a held session holds out of it: nobody is told of that either.
    Leave,
}

/// One attempt under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(super) run: RunId,
    pub(crate) errand: Errand,
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
    /// The values that it reads, copies of those that lie elsewhere, and what copying took.
    pub(super) reads: Vec<Rc<VirtualValue>>,
    pub(super) copies: Vec<Allocation>,
    pub(super) moves: Vec<Moved>,
    /// From where it copies, and until when.
    pub(super) fetches: Vec<(DeviceId, Moment)>,
    /// What it makes, if that stays.
    pub(super) makes: Option<Rc<VirtualValue>>,
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
    /// Whether it reads this value, or makes it.
    pub(crate) fn has_in_hand(&self, value: &Rc<VirtualValue>) -> bool {
        self.reads.iter().chain(&self.makes).any(|other| Rc::ptr_eq(other, value))
    }

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
    errand: Errand,
    /// `None` if it uses the session and the memory of the one before it.
    session: Option<SessionTurn<VirtualSession, Held>>,
    references: Vec<ReferenceTurn<Rc<Allocation>>>,
    values: Vec<ValueTurn<Rc<VirtualValue>>>,
}

/// What all stages of an attempt have to know.
struct FlightPlan<'a> {
    spec: &'a TaskSpec,
    /// It stands behind no other.
    is_first: bool,
    /// What a session that it opens goes on with.
    resumes: Held,
    /// Where each value has to be copied from.
    sources: Vec<Option<DeviceId>>,
    run_takes: Nanos,
}

impl FlightPlan<'_> {
    /// Where a stage copies from.
    fn source(&self, stage: Stage) -> Option<DeviceId> {
        if let Stage::Fetch(which) = stage { self.sources[which] } else { None }
    }
}

/// The session of an attempt.
struct Bring {
    session: Option<VirtualSession>,
    opens: bool,
    /// What the session that is opened goes on with.
    resumes: Held,
}

impl World {
    /// A device is so fast from now on.
    pub fn set_speed(&mut self, device: DeviceId, speed: f64) {
        self.devices[device.index()].gpu.speed = speed;
    }

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
        let errand = match self.jobs.get(&first.task) {
            _ if assignment.leaves => Errand::Leave,
            Some(_) => Errand::Asked,
            None => Errand::Again,
        };
        let Assignment { discards, session, references, values, .. } = assignment;
        self.discard(discards)?;
        let (references, values) = (references.into_vec(), values.into_vec());
        let start = Start { run, taken: first, errand, session: Some(session), references, values };
        let (flight, mut lands_at) = self.fly(device, Some(slot), start)?;
        while self.rng.chance(self.batches) {
            let before = self.before_take(device);
            let Some(Behind { task, job, .. }) = self.scheduler.take_behind(self.now, run) else { break };
            let name = self.tasks[first.job].spec.ladder.rungs()[first.rung].name;
            let rungs = self.tasks[job].spec.ladder.rungs();
            let Some(rung) = rungs.iter().position(|rung| rung.name == name) else {
                return Err(format!("task {job} stands behind one on {name}, which it has not"));
            };
            let taken = Taken { task, job, rung };
            self.after_take(before, taken)?;
            let references = self.flights[flight].iter().flat_map(Flight::references).collect();
            let (errand, values) = (Errand::Asked, Vec::new());
            let start = Start { run, taken, errand, session: None, references, values };
            let (behind, ends_at) = self.fly(device, None, start)?;
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
        let spec = self.check_start(device, &start)?;
        let Start { run, taken: Taken { job, rung: at, .. }, errand, session, references, values } = start;
        let is_first = session.is_some();
        let rung = &spec.ladder.rungs()[at];
        let Bring { session, opens, resumes } = self.check_session(device, &spec, rung.name, session)?;
        let stages = stages(opens, &references, &values);
        let mishap = self.draw_mishap(device, (job, errand), rung.name, &stages);
        let state = &self.devices[device.index()];
        let mut flight = Flight {
            run,
            errand,
            job,
            rung: at,
            device,
            slot,
            generation: state.generation,
            quarantines: state.quarantines,
            epoch: state.epoch,
            result: Ok(()),
            session,
            behind: Vec::new(),
            task_bytes: None,
            held: Vec::new(),
            preparing: to_prepare(&references).map(|place| (place, prepared_key(&spec, at, place))).collect(),
            reads: Vec::new(),
            copies: Vec::new(),
            moves: Vec::new(),
            fetches: Vec::new(),
            makes: None,
            measured: Measured::default(),
            surprise: if is_first { self.surprise(&spec, at, device) } else { Bytes::ZERO },
            hangs: mishap.as_ref().is_some_and(|mishap| mishap.hang > Nanos::ZERO),
            check: Check::NotMade,
            waits_since: None,
        };
        let run_takes = self.draw_run_time(device, job);
        for (place, turn) in references.into_iter().enumerate() {
            if let ReferenceTurn::Ready(ready) = turn {
                self.check_reference(device, &prepared_key(&spec, at, place), &ready)?;
                flight.held.push((place, ready));
            }
        }
        let sources = values.iter().map(source).collect();
        flight.reads.extend(values.into_iter().map(content_of));
        let plan = FlightPlan { spec: &spec, is_first, resumes, sources, run_takes };
        let lands_at = self.play(&mut flight, &plan, stages, mishap.as_ref());
        flight.makes.iter().for_each(|value| self.note_made(job, value));
        self.flights.push(Some(flight));
        if errand == Errand::Asked && rung.value > Bytes::ZERO {
            self.give_up_before_it_is_made(job);
        }
        Ok((self.flights.len() - 1, lands_at))
    }

    /// Whether an attempt may start with what it was given; says what it is to do.
    fn check_start(&mut self, device: DeviceId, start: &Start) -> Result<TaskSpec, String> {
        let Start { run, taken: Taken { job, rung, .. }, errand, session, values, .. } = start;
        let (job, rung, errand) = (*job, *rung, *errand);
        if self.tasks[job].end.is_some() && errand == Errand::Asked {
            return Err(format!("task {job} was started after it had ended"));
        }
        self.tasks[job].starts += usize::from(errand == Errand::Asked);
        let spec = self.spec_of(job, errand);
        let stays = spec.ladder.rungs()[rung].value > Bytes::ZERO;
        if session.is_none() && (stays || !spec.takes.is_empty() || spec.holds) {
            return Err(format!("task {job} stands behind another, which has no room for what it keeps or reads"));
        }
        if session.is_some() {
            self.checked(|_, world| super::super::checks::values_at_hand(world, device, (job, errand), values))?;
        }
        self.check_held(&spec, errand, (job, rung, *run), session.as_ref())?;
        Ok(spec)
    }

    /// Plays one stage after the other until one fails; says when that is.
    fn play(
        &mut self,
        flight: &mut Flight,
        plan: &FlightPlan<'_>,
        stages: Vec<Stage>,
        mishap: Option<&Mishap>,
    ) -> Moment {
        let mut clock = self.now;
        for stage in stages {
            let (takes, bytes) = self.demand(flight, plan, stage);
            let gone = plan.source(stage).filter(|from| self.devices[from.index()].is_lost);
            let (over_at, played) = match gone {
                Some(device) => (clock, Err(source_lost(device))),
                None => self.play_stage(flight.device, stage, clock, (takes, bytes), mishap),
            };
            let took = over_at.since(clock);
            clock = over_at;
            match played {
                Ok(allocation) => self.stage_is_over(flight, plan, stage, (took, clock), allocation),
                Err(fault) => {
                    flight.result = Err(fault);
                    break;
                }
            }
        }
        clock
    }

    /// The time and the bytes that a stage takes.
    fn demand(&self, flight: &Flight, plan: &FlightPlan<'_>, stage: Stage) -> (Nanos, Bytes) {
        let (cost, speed) = (self.tasks[flight.job].cost, self.devices[flight.device.index()].gpu.speed);
        let footprint = plan.spec.ladder.rungs()[flight.rung].footprint;
        match stage {
            Stage::Open => (cost.open.scaled(1.0 / speed), footprint.session),
            Stage::Prepare(_) => (cost.bring.scaled(1.0 / speed), footprint.reference),
            Stage::Fetch(which) => (cost.bring, flight.reads[which].bytes.bytes()),
            Stage::Run if plan.is_first && flight.errand != Errand::Leave => {
                let beside = self.real_bytes(plan.spec, flight.rung) - kept_bytes(plan.spec, flight.rung);
                (plan.run_takes, beside)
            }
            // In the memory of the one before it, or of the session that it leaves.
            Stage::Run => (plan.run_takes, Bytes::ZERO),
        }
    }

    fn stage_is_over(
        &mut self,
        flight: &mut Flight,
        plan: &FlightPlan<'_>,
        stage: Stage,
        (took, now): (Nanos, Moment),
        allocation: Allocation,
    ) {
        let spec = plan.spec;
        match stage {
            Stage::Open => {
                flight.measured.open = Some(took);
                let made_for = self.made_for(flight.device, spec, spec.ladder.rungs()[flight.rung].name);
                let holds = spec.sequence.filter(|_| spec.holds).map(|sequence| (sequence, plan.resumes.clone()));
                flight.session = Some(VirtualSession { _bytes: allocation, made_for, holds });
            }
            Stage::Prepare(place) => {
                flight.measured.bring += took;
                flight.measured.brought += 1;
                flight.held.push((place, Rc::new(allocation)));
                self.plan(now, Happening::Prepared { flight: self.flights.len(), at: place });
            }
            Stage::Fetch(_) => {
                let (from, bytes) = (plan.source(stage), allocation.bytes());
                flight.copies.push(allocation);
                flight.moves.extend(from.map(|from| Moved { from, bytes, took }));
                flight.fetches.extend(from.map(|from| (from, now)));
            }
            Stage::Run => {
                flight.measured.run = took;
                let copies: Bytes = flight.copies.iter().map(Allocation::bytes).sum();
                flight.measured.peak = Some(self.real_bytes(spec, flight.rung) + copies);
                self.keep_output(flight, spec, allocation);
            }
        }
    }

    /// What a run has beside its session goes with it, but for an output that stays.
    fn keep_output(&self, flight: &mut Flight, spec: &TaskSpec, allocation: Allocation) {
        let value = spec.ladder.rungs()[flight.rung].value;
        let stays = if flight.errand == Errand::Leave { Bytes::ZERO } else { value };
        let (account, bytes) = (&self.devices[flight.device.index()].account, allocation.bytes());
        drop(allocation);
        flight.task_bytes = Some(account.allocate(bytes - stays));
        let content = Self::content(flight.job, flight.reads.iter().map(|value| value.content));
        let Flight { device, generation, epoch, .. } = *flight;
        flight.makes = (stays > Bytes::ZERO).then(|| {
            let bytes = account.allocate(stays);
            Rc::new(VirtualValue { bytes, device, generation, epoch, content })
        });
    }

    /// What the scheduler carries out for this errand.
    fn spec_of(&self, job: usize, errand: Errand) -> TaskSpec {
        let mut spec = self.tasks[job].spec.clone();
        match errand {
            Errand::Leave => (spec.references, spec.drains) = (Default::default(), false),
            Errand::Asked | Errand::Again => spec.takes = self.values_of(job),
        }
        spec
    }

    /// A warm session must be one of this very device, as it is now, opened for this very thing.
    fn check_session(
        &self,
        device: DeviceId,
        spec: &TaskSpec,
        rung: &'static str,
        turn: Option<SessionTurn<VirtualSession, Held>>,
    ) -> Result<Bring, String> {
        let owner = spec.sequence.filter(|_| spec.holds);
        let bring = |session, opens, resumes| Ok(Bring { session, opens, resumes });
        match turn {
            None => bring(None, false, Held::default()),
            Some(SessionTurn::Open(_)) => bring(None, true, Held::default()),
            Some(SessionTurn::Resume(_, held)) => bring(None, true, held),
            Some(SessionTurn::Warm(session)) if session.holds.as_ref().map(|(by, _)| *by) != owner => {
                Err(format!("{device} was given a session that belongs to {:?} for {owner:?}", session.holds))
            }
            Some(SessionTurn::Warm(session)) if session.made_for == self.made_for(device, spec, rung) => {
                bring(Some(session), false, Held::default())
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

fn stages(
    opens: bool,
    references: &[ReferenceTurn<Rc<Allocation>>],
    values: &[ValueTurn<Rc<VirtualValue>>],
) -> Vec<Stage> {
    let open = opens.then_some(Stage::Open);
    let elsewhere = values.iter().enumerate().filter(|(_, turn)| source(turn).is_some());
    let fetches = elsewhere.map(|(which, _)| Stage::Fetch(which));
    open.into_iter().chain(to_prepare(references).map(Stage::Prepare)).chain(fetches).chain([Stage::Run]).collect()
}

/// Where a value has to be copied from.
fn source(turn: &ValueTurn<Rc<VirtualValue>>) -> Option<DeviceId> {
    match turn {
        ValueTurn::Here(_) => None,
        ValueTurn::Fetch(from, _) => Some(*from),
    }
}

fn content_of(turn: ValueTurn<Rc<VirtualValue>>) -> Rc<VirtualValue> {
    match turn {
        ValueTurn::Here(value) | ValueTurn::Fetch(_, value) => value,
    }
}

pub(super) fn source_lost(device: DeviceId) -> Fault {
    Fault::SourceLost { device, detail: "simulated".into() }
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
