//! The life of a task, from top to bottom. Every way of submitting work takes this path.
//!
//! ```text
//! submit    bounded queue; refuses with a reason            submit_all
//! admit     its turn: priority, age, deadline               (core) arbiter
//! choose    rung × device that finishes first               (core) scheduler::choose
//! reserve   leases for session, references and task         (core) scheduler::take, asked by `next_batch`
//! bring     discard what must go, open, prepare             attempt, bring
//! run       on the slot's own thread                        run_all
//! check     after an out-of-memory: the known answer        check_device, wait_until_checked
//! settle    leases back, costs learnt, dependents freed     delivery::Delivery::settle
//! recover   step down, move, or report                      (core) scheduler::recover
//! deliver   to whoever asked, and nobody else               delivery::Delivery::hand_over
//! ```
//!
//! Never decides: each step is either the scheduler's word or the carrying out of it.
//! Invariant: whatever `next_batch` hands out is settled or put back, even if a task panics.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use plimsoll_core::scheduler::{
    Assignment, Behind, Measured, Moved, NotTaken, Outcome, ReferenceTurn, RunId, SessionTurn, SetPlan, SetTask,
    ValueTurn,
};
use plimsoll_core::task::SessionShape;
use plimsoll_core::{
    Ailment, Bytes, DeviceId, Fault, MemoryMoment, Moment, Nanos, SubmitErrorKind, TaskError, TaskId, TaskSpec,
    ValueId, WorkloadId,
};
use smallvec::SmallVec;

use crate::backend::{Backend, Buffer};
use crate::delivery::{Attempted, Delivery, Failed, Finished};
use crate::gauge::Gauge;
use crate::job::{Job, OpenSession, Output, PreparedReference, Ran, ReplyChannel, Runtime, TypedJob};
use crate::monitor::Guard;
use crate::nested::Inside;
use crate::orchestrator::SubmitSetError;
use crate::pipeline::Item;
use crate::probe::check;
use crate::shared::{Shared, Stage, State, drop_quietly, quietly};
use crate::task::{NamedReferences, SetMember, Task};
use crate::value::{self, AtHand, KeptBuffers, Value};
use crate::wait::Wait;
use crate::workload::{AnyPrepared, Workload};

/// A slot takes several tasks at once only if together they are shorter than this: about what asking twice costs.
const BATCH_TIME: Nanos = Nanos::micros(50);
/// A batch that takes longer than this was predicted wrongly.
const BATCH_OVERRUN: Nanos = Nanos::millis(1);
/// A slot reads the clock after the first and then every so many tasks of a batch: reading it takes as long as the shortest
/// of them.
const LAP: usize = 8;
/// How long a result waits for the check of its device before it is not believed: longer than any check that still ends.
const CHECK_WAIT_MAX: Duration = Duration::from_secs(120);
/// How often a slot that waits for a check looks whether its device was quarantined meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Tasks a slot takes at once at the most, so that others are not kept waiting for work that is already there.
const BATCH_MAX: usize = 256;

// ---------------------------------------------------------------------------------------------------------- submit

/// A workload as the scheduler knows it.
pub(crate) struct Known<W> {
    pub(crate) workload: Arc<W>,
    pub(crate) id: WorkloadId,
    /// The orchestrator that knows it.
    pub(crate) owner: u64,
    /// Tells workloads of one name apart: they share what is learnt, but never a session.
    pub(crate) registration: u64,
}

impl<W> Known<W> {
    /// Its id here; one that nobody has, if it was registered with another orchestrator.
    pub(crate) fn id_at(&self, shared: &Shared) -> WorkloadId {
        if self.owner == shared.id { self.id } else { WorkloadId::NONE }
    }

    /// The session's key with everything in it that changes the answer, the workload itself included.
    fn shape(&self, shape: SessionShape) -> SessionShape {
        // Odd, and large: small numbers and hashes alike stay apart.
        let own = self.registration.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        SessionShape { params: shape.params.wrapping_add(own), ..shape }
    }
}

/// Makes a job of a task: its ladder, its place in the order, its references.
pub(crate) fn describe<W: Workload>(
    shared: &Shared,
    channel: &Arc<ReplyChannel<W>>,
    task: Task<W>,
    tag: u64,
    item: Option<Item>,
) -> (TaskSpec, Arc<TypedJob<W>>) {
    let Task { input, references, values, options } = task;
    let references = NamedReferences::new(references);
    let known = &channel.known;
    let workload = &known.workload;
    let spec = TaskSpec {
        workload: known.id_at(shared),
        ladder: workload.ladder(&input),
        units: workload.units(&input),
        session: known.shape(workload.shape(&input)),
        references: references.distinct().collect(),
        priority: options.priority,
        deadline: options.deadline.map(|deadline| shared.clock.at(deadline)),
        quality_min: options.quality_min,
        strict: options.strict,
        rung: options.rung,
        devices: options.devices,
        after: options.after,
        takes: values.iter().map(Value::id).collect(),
        is_claimed: options.is_claimed,
        item: item.map(Item::stage),
        holds: options.holds,
        drains: options.drains,
        sequence: options.sequence,
        explain: options.explain,
    };
    let (channel, stopped, raised) = (Arc::clone(channel), AtomicBool::new(false), AtomicU8::new(0));
    let inherited = OnceLock::new();
    (spec, Arc::new(TypedJob { channel, input, references, values, tag, item, raised, inherited, stopped }))
}

/// A task on its way in.
pub(crate) type Described = (TaskSpec, Arc<dyn Job>);

/// Submits tasks under one lock, first to last. What is refused, and all behind it, stay in `tasks`.
pub(crate) fn submit_all(shared: &Shared, tasks: &mut VecDeque<Described>) -> Result<Submitted, SubmitErrorKind> {
    let mut submitted = Submitted::default();
    let mut refusal = None;
    let mut state = shared.lock();
    let now = shared.now();
    let mut has_deadline = false;
    while let Some((spec, job)) = tasks.pop_front() {
        has_deadline |= spec.deadline.is_some();
        match submit_described(&mut state.scheduler, now, (spec, job)) {
            Ok(task) => submitted.took(task),
            Err(back) => {
                tasks.push_front((back.spec, back.job));
                refusal = Some(back.refusal);
                break;
            }
        }
    }
    if state.watchdog_dozes || has_deadline {
        state.notify_one(shared.watchdog_condvar());
    }
    shared.release(state);
    match refusal {
        Some(refusal) if submitted.count == 0 => Err(refusal),
        _ => Ok(submitted),
    }
}

/// Submits one task; its claims to values are then the scheduler's to count.
pub(crate) fn submit_described(
    scheduler: &mut crate::Core,
    now: Moment,
    (spec, job): Described,
) -> Result<TaskId, Box<NotTaken<Arc<dyn Job>>>> {
    let reader = (!spec.takes.is_empty()).then(|| Arc::clone(&job));
    let task = scheduler.submit(now, spec, job)?;
    if let Some(reader) = reader {
        reader.spend_values();
        // Its own table holds it as well.
        drop(reader);
    }
    Ok(task)
}

/// How many tasks were taken in, and the last of them.
#[derive(Default)]
pub(crate) struct Submitted {
    pub(crate) count: usize,
    pub(crate) last: Option<TaskId>,
}

impl Submitted {
    fn took(&mut self, task: TaskId) {
        self.count += 1;
        self.last = Some(task);
    }
}

/// Submits a known set as a whole, so that it can be planned ahead. A refused set comes back whole.
pub(crate) fn submit_set<W: Workload>(
    shared: &Shared,
    channels: &[Arc<ReplyChannel<W>>],
    set: Vec<SetMember<W>>,
) -> Result<Vec<TaskId>, SubmitSetError<W>> {
    shared.refresh_memory();
    let mut jobs = Vec::with_capacity(set.len());
    let mut described = Vec::with_capacity(set.len());
    for (SetMember { task, after }, channel) in set.into_iter().zip(channels) {
        let options = task.options.clone();
        let (spec, job) = describe(shared, channel, task, 0, None);
        let after: SmallVec<[u32; 4]> = after.into_iter().map(|before| before as u32).collect();
        described.push(SetTask { spec, job: Arc::clone(&job) as Arc<dyn Job>, after: after.clone() });
        jobs.push((job, options, after));
    }
    let plan = plan_ahead(shared, &described);
    let mut state = shared.lock();
    let result = state.scheduler.submit_planned(shared.now(), described, plan);
    state.notify_one(shared.watchdog_condvar());
    shared.release(state);
    let (reason, described) = match result {
        Ok(ids) => {
            jobs.iter().for_each(|(job, ..)| job.spend_values());
            quietly(move || drop(jobs));
            return Ok(ids);
        }
        Err(refused) => refused,
    };
    drop(described);
    let members = jobs.into_iter().map(|(job, options, after)| {
        let job = Arc::into_inner(job).expect("a refused job is nobody else's");
        let task = Task { input: job.input, references: job.references.into_named(), values: job.values, options };
        SetMember { task, after: after.into_iter().map(|before| before as usize).collect() }
    });
    Err(SubmitSetError { set: members.collect(), reason })
}

/// A plan for a set that is about to be handed in. The search is done without the lock.
fn plan_ahead(shared: &Shared, set: &[SetTask<Arc<dyn Job>>]) -> Option<SetPlan> {
    let mut state = shared.lock();
    let outlook = state.scheduler.outlook(shared.now(), set);
    shared.release(state);
    outlook?.plan()
}

/// Waits until a task may have ended; `false` if the time is over.
pub(crate) fn wait_for_queue_space(shared: &Shared, wait: Wait) -> bool {
    let Some(nap) = wait.nap() else { return false };
    let state = shared.lock();
    if !state.scheduler.is_full() {
        return true;
    }
    drop(state.wait(shared.queue_space_condvar(), Some(nap)));
    true
}

// ----------------------------------------------------------------------------------------------- take: choose, reserve

/// One slot of one device, on its own thread.
pub(crate) struct Slot {
    shared: Arc<Shared>,
    device: DeviceId,
    /// Counted from 0. Only as many as the scheduler wants are in use: see [`Slot::is_spare`].
    index: usize,
    backend: Option<(u32, Box<dyn Backend>)>,
    gauge: Arc<Gauge>,
    /// The run taken and not yet settled, so that nothing is lost if this thread's own code panics.
    in_hand: Option<RunId>,
}

impl Slot {
    pub(crate) fn new(shared: Arc<Shared>, device: DeviceId, index: usize) -> Self {
        Self { shared, device, index, backend: None, gauge: Arc::default(), in_hand: None }
    }

    /// Works until the orchestrator closes.
    pub(crate) fn work(&mut self) {
        let mut batch = Batch::default();
        let mut delivery = Delivery::default();
        let mut attempted = None;
        while self.next_batch(attempted.take(), &mut batch, &mut delivery) {
            attempted = self.attempt(&mut batch);
        }
    }

    /// Settles what was attempted and takes what is next, under one lock; sleeps while there is nothing.
    fn next_batch(&mut self, attempted: Option<Attempted>, batch: &mut Batch, delivery: &mut Delivery) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if attempted.as_ref().is_some_and(Attempted::has_result) {
            state = self.wait_until_checked(&shared, state);
        }
        let mut now = shared.now();
        if let Some(attempted) = attempted {
            delivery.settle(&mut state.scheduler, now, attempted);
            self.in_hand = None;
            shared.notify_queue_space(&mut state);
        }
        loop {
            let is_spare = self.is_spare(&state.scheduler);
            if !is_spare {
                self.take(&mut state.scheduler, now, batch);
            }
            if batch.is_taken() || state.stage == Stage::Closing || !delivery.is_empty() {
                break;
            }
            state = if is_spare { self.sleep_as_spare(&shared, state) } else { self.sleep(&shared, state) };
            now = shared.now();
        }
        let go_on = state.stage != Stage::Closing || batch.is_taken() || !delivery.is_empty();
        shared.release(state);
        delivery.hand_over();
        go_on
    }

    /// A result of a device that ran out of memory a moment ago, on another slot, counts only once that has been
    /// checked. The check ends by itself or is given up on as a stall; after [`CHECK_WAIT_MAX`] the result is not believed.
    fn wait_until_checked<'a>(&self, shared: &'a Shared, mut state: Guard<'a, State>) -> Guard<'a, State> {
        let until = Instant::now() + CHECK_WAIT_MAX;
        while state.scheduler.is_suspect(self.device) && state.stage != Stage::Closing {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = shared.release_to_wait(state, shared.checked_condvar(self.device), Some(left.min(LOOK_AGAIN)));
        }
        state
    }

    /// Whether the scheduler wants fewer slots of this device in use than come before this one.
    fn is_spare(&self, scheduler: &crate::Core) -> bool {
        self.index >= scheduler.slots_wanted(self.device)
    }

    fn sleep<'a>(&self, shared: &'a Shared, state: Guard<'a, State>) -> Guard<'a, State> {
        shared.release_to_wait(state, self.device.index(), None)
    }

    /// A slot that is not in use holds no memory of its device. What it held goes outside the lock, then it looks again.
    fn sleep_as_spare<'a>(&mut self, shared: &'a Shared, state: Guard<'a, State>) -> Guard<'a, State> {
        let Some(held) = self.backend.take() else {
            return shared.release_to_wait(state, shared.spare_condvar(self.device), None);
        };
        shared.release(state);
        quietly(move || drop(held));
        shared.lock()
    }

    fn take(&mut self, scheduler: &mut crate::Core, now: Moment, batch: &mut Batch) {
        let Some(first) = scheduler.take(now, self.device) else { return };
        let head = first.run;
        let mut together = first.estimate.occupies();
        let short = first.estimate.measured;
        self.in_hand = Some(head);
        batch.first = Some(first);
        while short && together < BATCH_TIME && batch.behind.len() + 1 < BATCH_MAX {
            let Some(next) = scheduler.take_behind(now, head) else { break };
            together += next.run;
            batch.behind.push(next);
        }
    }

    // ------------------------------------------------------------------------------------------------ bring and run

    /// One attempt at all that was taken: discard what must go, open, prepare, run one after the other. Never panics,
    /// whatever a task does.
    fn attempt(&mut self, batch: &mut Batch) -> Option<Attempted> {
        let Assignment { run, task, job, discards, session: turn, leaves, references, values, value, .. } =
            batch.first.take()?;
        let inside = Inside::of(&self.shared);
        drop_quietly(discards);
        let mut attempted = Attempted::of(run);
        let mut times = Times { last: Instant::now() };
        let brought = self.bring(&job, turn, references, &mut attempted, &mut times).and_then(|brought| {
            let values = self.fetch_values(values, &mut attempted, &mut times)?;
            Ok(Brought { values, ..brought })
        });
        match brought {
            Ok(mut brought) if leaves => {
                match caught(|| self.leave(&job, &mut brought)) {
                    Ok(state) => attempted.left(Finished { task, job, output: Output::Last(Box::new(())) }, state),
                    Err(fault) => attempted.fail(job, fault, &mut times),
                }
                quietly(move || drop(brought));
            }
            Ok(mut brought) => {
                let behind = batch.behind.drain(..).map(|each| (each.task, ValueId::of(each.task), each.job));
                let tasks = std::iter::once((task, value, job)).chain(behind);
                self.run_all(tasks, &mut brought, &mut attempted, &mut times);
                // What a failed run leaves in a session is anyone's guess.
                match attempted.failed {
                    None => attempted.session = Some(brought.session),
                    Some(_) => quietly(move || drop(brought)),
                }
            }
            Err(fault) => {
                attempted.fail(job, fault, &mut times);
                attempted.not_started.extend(batch.behind.drain(..).map(|each| each.job));
            }
        }
        if let Some(Failed { fault, .. }) = &attempted.failed {
            // What it recorded is not the next task's, nor the check's, to hear of.
            if let Some((_, backend)) = &mut self.backend {
                backend.abandon();
            }
            self.check_after(fault);
        }
        drop(inside);
        Some(attempted)
    }

    /// Runs tasks one after the other until one fails, or they have taken far longer than a batch may. Each comes with the
    /// name of what it may keep.
    fn run_all(
        &mut self,
        tasks: impl Iterator<Item = (TaskId, ValueId, Arc<dyn Job>)>,
        brought: &mut Brought,
        attempted: &mut Attempted,
        times: &mut Times,
    ) {
        self.gauge.reset_peak();
        let mut tasks = tasks.enumerate().peekable();
        while let Some((at, (task, value, job))) = tasks.next() {
            let is_overrun = attempted.measured.run > BATCH_OVERRUN;
            if attempted.failed.is_some() || is_overrun {
                attempted.not_started.push(job);
                continue;
            }
            match caught(|| self.run(&job, value, brought)) {
                Ok(Ran { output, kept }) => {
                    attempted.finished.push(Finished { task, job, output });
                    attempted.value = kept;
                    if at % LAP == 0 || tasks.peek().is_none() {
                        attempted.measured.run += times.lap();
                    }
                }
                Err(fault) => attempted.fail(job, fault, times),
            }
        }
        if attempted.has_result() {
            attempted.measured.peak = Some(brought.bytes() + self.gauge.peak());
        }
    }

    /// The backend, opened anew if the device was.
    fn ready_backend(&mut self) -> Result<(), Fault> {
        let opened = &self.shared.devices[self.device.index()];
        let generation = opened.generation.load(Ordering::Acquire);
        if self.backend.as_ref().is_none_or(|(made, _)| *made != generation) {
            self.backend = None;
            let mut backend = opened.device.open_backend()?;
            backend.charge_to(Arc::clone(&self.gauge));
            self.backend = Some((generation, backend));
        }
        Ok(())
    }

    /// The session and the references that a run needs.
    fn bring(
        &mut self,
        job: &Arc<dyn Job>,
        turn: SessionTurn<OpenSession, Box<dyn Any + Send>>,
        references: SmallVec<[ReferenceTurn<PreparedReference>; 1]>,
        attempted: &mut Attempted,
        times: &mut Times,
    ) -> Result<Brought, Fault> {
        caught(|| {
            self.ready_backend()?;
            let mut session = match turn {
                SessionTurn::Warm(warm) => warm,
                SessionTurn::Open(rung) => {
                    let opened = self.open_session(|backend| job.open_session(&rung, backend));
                    attempted.measured.open = Some(times.lap());
                    opened?
                }
                SessionTurn::Resume(rung, state) => {
                    // It goes back if it cannot go on here.
                    let state = &**attempted.state.insert(state);
                    let resumed = self.open_session(|backend| job.resume_session(&rung, state, backend));
                    attempted.measured.open = Some(times.lap());
                    let resumed = resumed?;
                    let gone = attempted.state.take();
                    quietly(move || drop(gone));
                    resumed
                }
            };
            let references =
                self.prepare(job, attempted.run, &mut session, references, &mut attempted.measured, times)?;
            let prepared = references.iter().map(|each| Arc::clone(&each.prepared)).collect();
            Ok(Brought { session, references, prepared, values: SmallVec::new() })
        })
    }

    /// The values that a run takes, each on this device: copies of those that lie elsewhere.
    fn fetch_values(
        &mut self,
        turns: SmallVec<[ValueTurn<KeptBuffers>; 1]>,
        attempted: &mut Attempted,
        times: &mut Times,
    ) -> Result<SmallVec<[KeptBuffers; 1]>, Fault> {
        let mut values = SmallVec::new();
        for turn in turns {
            values.push(match turn {
                ValueTurn::Here(value) => value,
                ValueTurn::Fetch(from, value) => {
                    let copied = caught(|| self.copy(from, &value))?;
                    let bytes = copied.0.iter().map(Buffer::bytes).sum();
                    attempted.moves.push(Moved { from, bytes, took: times.lap() });
                    copied
                }
            });
        }
        Ok(values)
    }

    fn copy(&mut self, from: DeviceId, value: &KeptBuffers) -> Result<KeptBuffers, Fault> {
        let source = &self.shared.devices[from.index()].device;
        let (_, backend) = self.backend.as_mut().expect("made ready before anything is opened");
        let copied = value::copy(&**source, from, value, &mut **backend).map_err(while_opening)?;
        backend.finish().map(|()| copied)
    }

    /// A session whose memory counts for itself.
    fn open_session(
        &mut self,
        open: impl FnOnce(&mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault>,
    ) -> Result<OpenSession, Fault> {
        let gauge = Arc::new(Gauge::default());
        let opened = self.charged_to(&gauge, open).map_err(while_opening);
        Ok(OpenSession { session: opened?, gauge })
    }

    fn leave(&mut self, job: &Arc<dyn Job>, brought: &mut Brought) -> Result<Box<dyn Any + Send>, Fault> {
        let (_, backend) = self.backend.as_mut().expect("made ready before anything is opened");
        let state = job.leave(&mut brought.session, &mut **backend)?;
        backend.finish().map(|()| state)
    }

    fn prepare(
        &mut self,
        job: &Arc<dyn Job>,
        run: RunId,
        session: &mut OpenSession,
        turns: SmallVec<[ReferenceTurn<PreparedReference>; 1]>,
        measured: &mut Measured,
        times: &mut Times,
    ) -> Result<SmallVec<[PreparedReference; 1]>, Fault> {
        let mut references = SmallVec::new();
        for (at, turn) in turns.into_iter().enumerate() {
            references.push(match turn {
                ReferenceTurn::Ready(ready) => ready,
                ReferenceTurn::Prepare => {
                    let gauge = Arc::new(Gauge::default());
                    let made = self.charged_to(&gauge, |backend| job.prepare(session, at, backend));
                    measured.bring += times.lap();
                    measured.brought += 1;
                    let ready = PreparedReference { prepared: made.map_err(while_opening)?, gauge };
                    self.announce(run, at, ready.clone());
                    ready
                }
            });
        }
        Ok(references)
    }

    /// Others may use the reference from now on, before this run is over.
    fn announce(&self, run: RunId, at: usize, ready: PreparedReference) {
        let mut state = self.shared.lock();
        state.scheduler.prepared(run, at, ready);
        self.shared.release(state);
    }

    fn run(&mut self, job: &Arc<dyn Job>, value: ValueId, brought: &mut Brought) -> Result<Ran, Fault> {
        if job.is_stopped() {
            return Err(Fault::Cancelled);
        }
        let (_, backend) = self.backend.as_mut().expect("made ready before anything is opened");
        let values = AtHand { taken: &brought.values, kept: None, value, shared: &self.shared };
        let ran = job.run(&mut brought.session, &brought.prepared, values, &mut **backend)?;
        backend.finish().map(|()| ran)
    }

    /// Does a piece of work whose memory counts on `gauge`. Whatever it recorded is handed over before it counts as done.
    fn charged_to<T>(
        &mut self,
        gauge: &Arc<Gauge>,
        work: impl FnOnce(&mut dyn Backend) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (_, backend) = self.backend.as_mut().expect("made ready before anything is opened");
        let own = backend.charge_to(Arc::clone(gauge));
        let result = catch_unwind(AssertUnwindSafe(|| {
            let made = work(&mut **backend)?;
            backend.finish().map(|()| made)
        }));
        backend.charge_to(own);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// After any memory fault the device must give its known answer again before anything of it counts, on any slot;
    /// after a loss or a wrong answer the backend is of no more use.
    fn check_after(&mut self, fault: &Fault) {
        match fault {
            Fault::OutOfMemory { .. } => self.check_device(),
            Fault::DeviceLost { .. } | Fault::WrongAnswer { .. } | Fault::Stalled { .. } => self.backend = None,
            _ => {}
        }
    }

    fn check_device(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let suspicion = state.scheduler.suspect(self.device);
        shared.release(state);
        let answered = catch_unwind(AssertUnwindSafe(|| {
            self.ready_backend()?;
            let (_, backend) = self.backend.as_mut().expect("just made ready");
            check::known_answer(&mut **backend)
        }));
        let answered = answered.unwrap_or_else(|panic| Err(Fault::Panicked { message: panic_message(&*panic) }));
        let mut state = shared.lock();
        match &answered {
            Ok(()) => state.scheduler.cleared(suspicion),
            Err(fault) => state.scheduler.check_failed(shared.now(), suspicion, ailment_shown_by(fault)),
        }
        state.notify_all(shared.checked_condvar(self.device));
        shared.release(state);
        if answered.is_err() {
            self.backend = None;
        }
    }

    /// This thread's own code panicked: nothing it had in hand may be lost.
    pub(crate) fn give_up_what_is_in_hand(&mut self, message: &str) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let now = shared.now();
        if let Some(run) = self.in_hand.take() {
            let result = Err(Fault::Panicked { message: message.to_owned() });
            let outcome = Outcome { result, session: None, measured: Measured::default() };
            state.scheduler.settle(now, run, outcome);
        }
        self.backend = None;
        shared.release(state);
    }
}

/// What a slot took at once: tasks of one kind, to be run one after the other.
#[derive(Default)]
struct Batch {
    first: Option<Assignment<Runtime>>,
    behind: Vec<Behind<Arc<dyn Job>>>,
}

impl Batch {
    fn is_taken(&self) -> bool {
        self.first.is_some()
    }
}

/// What a run needs beside its tasks.
struct Brought {
    session: OpenSession,
    references: SmallVec<[PreparedReference; 1]>,
    /// What was made of each reference.
    prepared: SmallVec<[AnyPrepared; 1]>,
    values: SmallVec<[KeptBuffers; 1]>,
}

impl Brought {
    fn bytes(&self) -> Bytes {
        self.session.gauge.now() + self.references.iter().map(PreparedReference::bytes).sum()
    }
}

/// The clock of an attempt. Each lap ends where the next begins, so that one reading serves both.
pub(crate) struct Times {
    last: Instant,
}

impl Times {
    pub(crate) fn lap(&mut self) -> Nanos {
        let now = Instant::now();
        let span = now.saturating_duration_since(self.last);
        self.last = now;
        Nanos::from(span)
    }
}

/// A panic of a workload's code is its task's fault.
fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let result = catch_unwind(AssertUnwindSafe(work));
    result.unwrap_or_else(|panic| Err(Fault::Panicked { message: panic_message(&*panic) }))
}

/// What a check that was not passed says of its device. No memory even for that is no proof that it works.
fn ailment_shown_by(fault: &Fault) -> Ailment {
    match fault {
        Fault::DeviceLost { .. } => Ailment::Lost,
        Fault::WrongAnswer { .. } => Ailment::WrongAnswer,
        Fault::Stalled { .. } => Ailment::Stalled,
        _ => Ailment::Unproven,
    }
}

fn while_opening(fault: Fault) -> Fault {
    match fault {
        Fault::OutOfMemory { wanted, .. } => Fault::OutOfMemory { moment: MemoryMoment::Open, wanted },
        other => other,
    }
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

/// Ends a task, wherever it is; its result, if it still comes, counts no more.
pub(crate) fn cancel(shared: &Shared, task: TaskId) -> bool {
    let mut state = shared.lock();
    let now = shared.now();
    let was_there = state.scheduler.cancel(now, task);
    shared.release(state);
    was_there
}

/// Ends all tasks whose results go to this caller: nobody wants them any more.
pub(crate) fn cancel_all(shared: &Shared, address: usize) {
    let mut state = shared.lock();
    let now = shared.now();
    state.scheduler.end_those(now, &TaskError::Cancelled, |job| job.reply_address() == address);
    shared.release(state);
}

/// The error of a task that was refused because the orchestrator is closing.
pub(crate) fn refused(refusal: &SubmitErrorKind) -> TaskError {
    match refusal {
        SubmitErrorKind::ShuttingDown => TaskError::ShutDown,
        other => TaskError::WorkFailed(plimsoll_core::Cause::new(other.clone())),
    }
}
