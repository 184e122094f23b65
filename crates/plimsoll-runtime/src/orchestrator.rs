//! The orchestrator: what a program holds to hand in work.
//! Never decides or runs anything itself; `task_path` is the way of every task.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_core::health::Health;
use plimsoll_core::residency::ResidencyCounts;
use plimsoll_core::scheduler::Candidate;
use plimsoll_core::stats::DeviceReport;
use plimsoll_core::{
    Bytes, DeviceId, GrantError, GrantId, SequenceId, ShortfallError, StepError, SubmitErrorKind, TaskError, TaskId,
};

use crate::builder::Builder;
use crate::device::DeviceFacts;
use crate::grant::{self, Grant, GrantRequest, PendingGrant};
use crate::held::Held;
use crate::inbox::Inbox;
use crate::job::{ReplyChannel, RunError, TaskResult};
use crate::learnt::{self, Learning};
use crate::monitor::LockTimes;
use crate::pinner::ReferencePinner;
use crate::pipeline::{Flow, Pipeline, RunPipeline};
use crate::run_all::RunAll;
use crate::shared::{Shared, Stage, drop_quietly};
use crate::submission::{self, SubmitAsync};
use crate::task::{Reference, SetMember, Task};
use crate::task_path::{self, Known};
use crate::ticket::Ticket;
use crate::value::Value;
use crate::wait::Wait;
use crate::workload::Workload;

/// Loads every device to the line, never past it.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use plimsoll::{Orchestrator, Task, workload};
/// let orchestrator = Orchestrator::builder().cpu(2).build();
/// let count = orchestrator.register(workload::function("count", |text: &String| {
///     Ok::<_, std::io::Error>(text.split_whitespace().count())
/// }));
/// let texts = ["load to the line", "never past it"];
/// let tasks = texts.iter().map(|text| Task::new(text.to_string()));
/// let counts: Vec<usize> = orchestrator.run_all(&count, tasks).ordered().map(|done| done.unwrap().output).collect();
/// assert_eq!(counts, [4, 3]);
/// ```
pub struct Orchestrator {
    pub(crate) shared: Arc<Shared>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Those that read memory: a driver may keep one for ever.
    pub(crate) readers: Vec<JoinHandle<()>>,
    pub(crate) limits: Limits,
    pub(crate) learning: Option<Learning>,
}

impl fmt::Debug for Orchestrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orchestrator").field("devices", &self.shared.devices.len()).finish_non_exhaustive()
    }
}

/// Waits that have an end.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) submit_wait_max: Duration,
    pub(crate) window: usize,
    pub(crate) inbox: usize,
}

/// A workload that an orchestrator knows.
pub struct Registered<W: Workload> {
    pub(crate) known: Arc<Known<W>>,
}

impl<W: Workload> fmt::Debug for Registered<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("workload", &self.known.workload.name()).finish_non_exhaustive()
    }
}

impl<W: Workload> Clone for Registered<W> {
    fn clone(&self) -> Self {
        Self { known: Arc::clone(&self.known) }
    }
}

impl<W: Workload> Registered<W> {
    /// The workload itself.
    pub fn workload(&self) -> &W {
        &self.known.workload
    }
}

/// A task that was not taken in: it comes back whole, with the reason.
#[derive(thiserror::Error)]
#[error("{reason}")]
pub struct SubmitError<W: Workload> {
    /// The task.
    pub task: Box<Task<W>>,
    /// Why it was not taken in.
    pub reason: SubmitErrorKind,
}

impl<W: Workload> From<SubmitError<W>> for RunError {
    fn from(refused: SubmitError<W>) -> Self {
        Self::refused(0, task_path::refused(&refused.reason))
    }
}

impl<W: Workload> std::fmt::Debug for SubmitError<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubmitError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

/// A set that was not taken in: it comes back whole, with the reason.
#[derive(thiserror::Error)]
#[error("{reason}")]
pub struct SubmitSetError<W: Workload> {
    /// The set.
    pub set: Vec<SetMember<W>>,
    /// Why it was not taken in.
    pub reason: SubmitErrorKind,
}

impl<W: Workload> std::fmt::Debug for SubmitSetError<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubmitSetError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

/// How to shut down.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Take no more tasks in and wait for those that are, at most this long; then cancel the rest.
    Drain(Duration),
    /// Cancel everything that has not ended.
    Cancel,
}

/// How long shutting down waits for those that read memory, all together. A reading takes well below a millisecond; one
/// that a driver keeps for longer is left behind: it holds no lock.
const READER_WAIT_MAX: Duration = Duration::from_millis(100);

/// How long shutting down waits for all workers together. One that is stuck in a task that does not listen is then left
/// behind: it holds no lock.
const JOIN_WAIT_MAX: Duration = Duration::from_secs(5);
/// The longest pause between two looks at a thread that is to end, and the first.
const JOIN_PAUSE_MAX: Duration = Duration::from_millis(1);
const JOIN_PAUSE_MIN: Duration = Duration::from_micros(20);

impl Orchestrator {
    /// Starts describing an orchestrator.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Makes a workload known.
    pub fn register<W: Workload>(&self, workload: W) -> Registered<W> {
        let mut state = self.shared.lock();
        let id = state.scheduler.register(workload.name());
        drop(state);
        let (owner, registration) = (self.shared.id, self.shared.next_registration());
        Registered { known: Arc::new(Known { workload: Arc::new(workload), id, owner, registration }) }
    }

    /// Runs one task and waits for it.
    ///
    /// # Errors
    /// Why it gave no result.
    pub fn run<W: Workload>(&self, workload: &Registered<W>, task: Task<W>) -> TaskResult<W::Output> {
        self.submit(workload, task)?.wait()
    }

    /// Runs every task of an iterator: lazily, with a bounded number under way. Results come as tasks end;
    /// [`RunAll::ordered`] gives them in input order. Dropped before its end, it cancels what has not ended.
    pub fn run_all<W: Workload, I>(&self, workload: &Registered<W>, tasks: I) -> RunAll<W, I::IntoIter>
    where
        I: IntoIterator<Item = Task<W>>,
    {
        RunAll::new(tasks.into_iter(), self.inbox(workload), self.limits.window)
    }

    /// Submits a task; waits for queue space if there is none, but not for ever.
    ///
    /// # Errors
    /// The task and the reason, if there was no queue space for too long or the orchestrator is shutting down.
    pub fn submit<W: Workload>(
        &self,
        workload: &Registered<W>,
        task: Task<W>,
    ) -> Result<Ticket<W::Output>, SubmitError<W>> {
        self.submit_waiting(workload, task, Wait::at_most(self.limits.submit_wait_max))
    }

    /// Submits a task as [`Orchestrator::submit`] does, and claims what it [keeps](crate::Context::keep) before it has kept
    /// it: tasks that take it can be submitted at once, and run after this one. If it keeps nothing, or fails, they end
    /// with an error.
    ///
    /// # Errors
    /// As [`Orchestrator::submit`].
    pub fn submit_for_value<W: Workload>(
        &self,
        workload: &Registered<W>,
        mut task: Task<W>,
    ) -> Result<(Ticket<W::Output>, Value), SubmitError<W>> {
        task.options.is_claimed = true;
        let ticket = self.submit(workload, task)?;
        let value = Value::claimed(ticket.id(), &self.shared);
        Ok((ticket, value))
    }

    /// Submits a task if there is queue space.
    ///
    /// # Errors
    /// The task and the reason, if there is not.
    pub fn try_submit<W: Workload>(
        &self,
        workload: &Registered<W>,
        task: Task<W>,
    ) -> Result<Ticket<W::Output>, SubmitError<W>> {
        self.submit_waiting(workload, task, Wait::Try)
    }

    /// Submits a task when the future is awaited; while there is no queue space it waits without blocking its thread, in
    /// the order in which they came. The ticket that it gives is a future too.
    ///
    /// ```
    /// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
    /// use plimsoll::{Orchestrator, Task, workload};
    /// # #[cfg(not(loom))]
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let orchestrator = Orchestrator::builder().cpu(1).build();
    /// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
    /// let ticket = orchestrator.submit_async(&square, Task::new(12)).await?;
    /// assert_eq!(ticket.cancel_on_drop().await?.output, 144);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit_async<W: Workload>(&self, workload: &Registered<W>, task: Task<W>) -> SubmitAsync<W> {
        SubmitAsync::new(&self.shared, ReplyChannel::new(&workload.known), task)
    }

    fn submit_waiting<W: Workload>(
        &self,
        workload: &Registered<W>,
        task: Task<W>,
        wait: Wait,
    ) -> Result<Ticket<W::Output>, SubmitError<W>> {
        let channel = ReplyChannel::new(&workload.known);
        let id = submission::submit_one(&self.shared, &channel, task, wait, (0, None))?;
        Ok(self.ticket(id, &channel))
    }

    /// Submits a set of tasks that is known as a whole, all or nothing. Where their costs are known, schedules are
    /// simulated before the first task is committed, so that the whole set ends sooner than task by task; and again as
    /// more is learnt of them.
    ///
    /// ```
    /// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
    /// use plimsoll::{Orchestrator, SetMember, Task, workload};
    /// let orchestrator = Orchestrator::builder().cpu(2).build();
    /// let double = orchestrator.register(workload::function("double", |n: &u64| Ok::<_, std::io::Error>(n * 2)));
    /// let first = SetMember { task: Task::new(1), after: vec![] };
    /// let second = SetMember { task: Task::new(2), after: vec![0] };
    /// let tickets = orchestrator.submit_set(&double, vec![first, second]).expect("there is queue space");
    /// for ticket in tickets {
    ///     assert!(ticket.wait().is_ok());
    /// }
    /// ```
    ///
    /// # Errors
    /// The set and the reason, if there is no queue space for all of it.
    pub fn submit_set<W: Workload>(
        &self,
        workload: &Registered<W>,
        set: Vec<SetMember<W>>,
    ) -> Result<Vec<Ticket<W::Output>>, SubmitSetError<W>> {
        let channels: Vec<_> = set.iter().map(|_| ReplyChannel::new(&workload.known)).collect();
        let ids = task_path::submit_set(&self.shared, &channels, set)?;
        Ok(ids.into_iter().zip(&channels).map(|(id, channel)| self.ticket(id, channel)).collect())
    }

    fn ticket<W: Workload>(&self, id: TaskId, channel: &ReplyChannel<W>) -> Ticket<W::Output> {
        Ticket::new(id, &channel.reply, &self.shared)
    }

    /// A sequence of its own, for tasks that stay together: see [`Task::sequence`].
    pub fn sequence(&self) -> SequenceId {
        SequenceId(self.shared.next_registration())
    }

    /// A sequence of tasks that owns its session: state from task to task.
    pub fn hold<W: Workload>(&self, workload: &Registered<W>) -> Held<W> {
        Held::new(&self.shared, &workload.known, self.limits)
    }

    /// Begins work on items of a pipeline.
    pub fn flow<First: Workload, O, End>(&self, pipeline: &Pipeline<First, O, End>) -> Flow<First, O> {
        Flow::new(&self.shared, pipeline, self.limits)
    }

    /// Takes every input through a pipeline; results come as they end. Inputs are pulled while there is room.
    pub fn run_pipeline<First: Workload, O, End, I>(
        &self,
        pipeline: &Pipeline<First, O, End>,
        inputs: I,
    ) -> RunPipeline<First, O, I::IntoIter>
    where
        I: IntoIterator<Item = Task<First>>,
    {
        RunPipeline::new(self.flow(pipeline), inputs.into_iter())
    }

    /// A place to submit many tasks and take their results out as they end. Whoever drops it wants nothing more of it:
    /// tasks that have not ended are cancelled.
    pub fn inbox<W: Workload>(&self, workload: &Registered<W>) -> Inbox<W> {
        Inbox::new(Arc::clone(&self.shared), workload, self.limits)
    }

    /// Hands over a reference that many tasks will share, hashed once. It is prepared on a device the first time a task
    /// needs it there, and kept before all others as long as a clone of the handle lives.
    pub fn pin_reference<W: Workload>(
        &self,
        workload: &Registered<W>,
        reference: impl Into<Arc<W::Reference>>,
    ) -> Reference<W> {
        self.reference_pinner().pin_reference(workload, reference)
    }

    /// Pins references where the orchestrator itself is not at hand.
    pub fn reference_pinner(&self) -> ReferencePinner {
        ReferencePinner { shared: Arc::downgrade(&self.shared) }
    }

    /// Every rung on every device for this task as things stand, with the reason for each refusal. None, if the workload
    /// was not registered here.
    pub fn why<W: Workload>(&self, workload: &Registered<W>, task: Task<W>) -> Vec<Candidate> {
        self.shared.refresh_memory();
        let (spec, _job) = task_path::describe(&self.shared, &ReplyChannel::new(&workload.known), task, 0, None);
        let mut state = self.shared.lock();
        let candidates = state.scheduler.why(self.shared.now(), &spec);
        drop(state);
        candidates
    }

    /// Promises bytes of devices to the caller at once, all or nothing: tasks are kept out of them until the grant is
    /// dropped. It is never recalled for anybody else; [`Orchestrator::grant`] waits, steps down and is recalled.
    ///
    /// # Errors
    /// Where and why they do not fit.
    pub fn lease(&self, portions: &[(DeviceId, Bytes)]) -> Result<Grant, ShortfallError> {
        grant::lease(&self.shared, portions)
    }

    /// Asks for bytes of devices for as long as they are held: the best rung of the request that fits, now or when its
    /// turn comes.
    ///
    /// # Errors
    /// Why it can never be given.
    pub fn grant(&self, request: GrantRequest) -> Result<PendingGrant, GrantError> {
        grant::request(&self.shared, request)
    }

    /// Asks the owner of a grant to step down to a rung of its ladder, or to leave, whatever its priority.
    ///
    /// # Errors
    /// Why that is no step, or where the lower rung does not fit.
    pub fn recall(&self, grant: GrantId, to: Option<usize>, within: Duration) -> Result<(), StepError> {
        grant::recall(&self.shared, grant, to, within)
    }

    /// Every device with its id.
    pub fn devices(&self) -> impl Iterator<Item = (DeviceId, &DeviceFacts)> {
        self.shared.devices.iter().zip(0..).map(|(opened, at)| (DeviceId(at), opened.device.facts()))
    }

    /// How often the scheduler's lock was taken since the start, and how long it is held: what limits how many workers
    /// can be kept busy with short tasks.
    pub fn lock_times(&self) -> LockTimes {
        self.shared.lock_times()
    }

    /// Every device's figures since the start.
    pub fn reports(&self) -> Vec<DeviceStatus> {
        let state = self.shared.lock();
        let now = self.shared.now();
        let ids = (0..self.shared.devices.len() as u16).map(DeviceId);
        ids.map(|device| DeviceStatus {
            device,
            health: state.scheduler.health(device),
            figures: state.scheduler.report(now, device),
            residency: state.scheduler.residency(device),
            line: state.scheduler.ledger().measured(device),
            promised: state.scheduler.ledger().promised(device),
            promised_peak: state.scheduler.ledger().promised_peak(device),
        })
        .collect()
    }

    /// Tasks taken in and not yet ended.
    pub fn unsettled(&self) -> usize {
        self.shared.lock().scheduler.unsettled()
    }

    /// Writes what was learnt into the profile file now. Says what went wrong, if anything did.
    ///
    /// # Errors
    /// Why the profile could not be saved.
    pub fn save_profile(&self) -> Result<(), crate::profile_file::ProfileFileError> {
        match &self.learning {
            Some(learning) => learning.save(&self.shared),
            None => Ok(()),
        }
    }

    /// Forgets where memory ran out and what devices cannot do, in the profile file too: everything is tried again.
    ///
    /// # Errors
    /// Why the profile could not be changed; here it is forgotten all the same.
    pub fn forget_failures(&self) -> Result<(), crate::profile_file::ProfileFileError> {
        learnt::forget_failures(&self.shared, self.learning.as_ref(), None)
    }

    /// The same of one workload only.
    ///
    /// # Errors
    /// As [`Orchestrator::forget_failures`].
    pub fn forget_failures_of<W: Workload>(
        &self,
        workload: &Registered<W>,
    ) -> Result<(), crate::profile_file::ProfileFileError> {
        let of = (workload.known.id_at(&self.shared), workload.workload().name());
        learnt::forget_failures(&self.shared, self.learning.as_ref(), Some(of))
    }

    /// Stops: takes no more tasks in, lets those that are here end as asked, and waits for the workers.
    pub fn shutdown(mut self, how: Shutdown) {
        self.close(how);
    }

    fn close(&mut self, how: Shutdown) {
        self.shared.lock().scheduler.stop_accepting();
        if let Shutdown::Drain(at_most) = how {
            self.wait_until_settled(at_most);
        }
        self.cancel_rest();
        // A profile that cannot be written on the way out is no reason to lose results: the next run measures again.
        // Who wants to know calls `save_profile` first.
        let _ = self.save_profile();
        let mut state = self.shared.lock();
        state.stage = Stage::Closing;
        for condvar in 0..self.shared.condvar_count() {
            state.notify_all(condvar);
        }
        self.shared.release(state);
        self.shared.ring_keeper();
        self.shared.devices.iter().for_each(|opened| opened.memory.close());
        join_all(&mut self.threads, JOIN_WAIT_MAX);
        join_all(&mut self.readers, READER_WAIT_MAX);
        // A ticket, an inbox or a grant may live on; what was warm must not live on with it.
        let mut state = self.shared.lock();
        state.scheduler.discard_warm();
        let to_close = grant::left_to_close(&mut state);
        self.shared.release(state);
        drop_quietly(to_close);
    }

    fn wait_until_settled(&self, at_most: Duration) {
        let wait = Wait::at_most(at_most);
        let mut state = self.shared.lock();
        while state.scheduler.unsettled() > 0 {
            let Some(nap) = wait.nap() else { break };
            state = self.shared.release_to_wait(state, self.shared.queue_space_condvar(), Some(nap));
        }
        self.shared.release(state);
    }

    fn cancel_rest(&self) {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        state.scheduler.end_all(now, &TaskError::ShutDown);
        state.scheduler.refuse_waiting_grants(now);
        self.shared.release(state);
    }
}

/// Waits for threads, all of them together at most this long.
fn join_all(threads: &mut Vec<JoinHandle<()>>, at_most: Duration) {
    let until = Instant::now() + at_most;
    threads.drain(..).for_each(|thread| join_until(thread, until));
}

fn join_until(thread: JoinHandle<()>, until: Instant) {
    // Mostly it ends in a moment, and a short run would be most of a millisecond longer for nothing.
    let mut pause = JOIN_PAUSE_MIN;
    while !thread.is_finished() && Instant::now() < until {
        std::thread::sleep(pause);
        pause = (2 * pause).min(JOIN_PAUSE_MAX);
    }
    if thread.is_finished() {
        // A panic of a worker was already reported where it happened.
        let _ = thread.join();
    }
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.close(Shutdown::Cancel);
        }
    }
}

/// A device as it stands.
#[derive(Clone, Debug)]
pub struct DeviceStatus {
    /// Which.
    pub device: DeviceId,
    /// Whether it takes work.
    pub health: Health,
    /// What it did.
    pub figures: DeviceReport,
    /// Its references.
    pub residency: ResidencyCounts,
    /// Its line.
    pub line: Bytes,
    /// What is promised now.
    pub promised: Bytes,
    /// The most that was ever promised at once.
    pub promised_peak: Bytes,
}
