//! Submit: takes tasks in, or refuses with a reason; waits for predecessors.
//! Never chooses a device.
//! Invariant: unsettled tasks ≤ `queue_limit`.

use std::cmp::Reverse;

use super::choose::Choice;
use super::learnt::LoadedProfile;
use super::state::{Phase, TaskState};
use super::{Ending, Host, Scheduler};
use crate::error::{SubmitErrorKind, TaskError};
use crate::event::{End, What};
use crate::profile::Cell;
use crate::rung::same_name;
use crate::task::{Priority, Standing, TaskSpec};
use crate::{Bytes, DeviceId, Ladder, Moment, Nanos, TaskId, ValueId, WorkloadId};

/// A task that was refused: it comes back whole.
#[derive(Debug)]
pub struct NotTaken<J> {
    /// Why.
    pub refusal: SubmitErrorKind,
    /// The task.
    pub spec: TaskSpec,
    /// Its payload.
    pub job: J,
}

/// Who asked for a task.
enum Origin {
    Caller,
    /// A value that is needed was lost.
    Lost(ValueId),
    /// The rung of a held session was recalled.
    Recall,
}

/// The workloads and what their rungs cost on each device.
#[derive(Clone, Debug, Default)]
pub struct Workloads {
    known: Vec<Workload>,
    pub(super) loaded: LoadedProfile,
}

#[derive(Clone, Debug)]
struct Workload {
    name: String,
    rungs: Vec<&'static str>,
    /// By rung, then device.
    cells: Vec<Vec<CostCell>>,
    /// The ladder that was last seen to have all its cells, for so many devices.
    complete: Option<(Ladder, usize)>,
}

/// What one rung of one workload costs on one device.
#[derive(Clone, Debug, Default)]
pub(super) struct CostCell {
    pub(super) cost: Cell,
    /// Attempts under way that nothing is known about yet.
    pub(super) exploring: u32,
    /// Moving average of units per second of one slot.
    units_per_second: Option<f64>,
    /// How far the measured peak exceeded the predicted bytes, as a factor; 1 if the footprint is exact.
    pub(super) bytes_factor: f64,
    /// When it was last measured, or last begun to be.
    looked_at: Moment,
    /// It took far less than expected the last time.
    was_surprising: bool,
}

/// A rung that takes longer on a device than elsewhere is tried there again after so many times its time: of a device
/// that is idle anyway no more than this part goes into it.
const MEASURED_AGAIN_AFTER: f64 = 32.0;
/// What takes less than one part in this many of what was expected is looked into at once.
const SURPRISING: u64 = 2;

/// Weight of the latest sample in the moving average of throughput.
const THROUGHPUT_ALPHA: f64 = 0.1;

impl CostCell {
    /// A run of this many units took so long.
    #[inline]
    pub(super) fn ran(&mut self, units: u64, took: Nanos) {
        let rate = units.max(1) as f64 / took.as_secs_f64().max(1e-9);
        let average = self.units_per_second.unwrap_or(rate);
        self.units_per_second = Some(average + THROUGHPUT_ALPHA * (rate - average));
    }

    /// A run that was expected to take so long took this long.
    #[inline]
    pub(super) fn ended(&mut self, now: Moment, expected: Nanos, took: Nanos) {
        self.looked_at = now;
        self.was_surprising = took.0 < expected.0 / SURPRISING;
    }

    /// It is about to be measured.
    pub(super) fn begins(&mut self, now: Moment) {
        (self.looked_at, self.was_surprising) = (now, false);
    }

    /// Whether its figures are so old, for something that takes so long, that they may be wrong by now.
    pub(super) fn is_stale(&self, now: Moment, takes: Nanos) -> bool {
        self.was_surprising || now.since(self.looked_at) >= takes.scaled(MEASURED_AGAIN_AFTER)
    }

    /// Units per second of one slot, as measured lately, or before that as the profile has it.
    pub(super) fn throughput(&self, units: u64) -> Option<f64> {
        let by_profile = || Some(units.max(1) as f64 / self.cost.run(units)?.time.as_secs_f64().max(1e-9));
        self.units_per_second.or_else(by_profile)
    }

    /// What a run was seen to take beyond a declared footprint of this size.
    pub(super) fn excess(&self, declared: Bytes) -> Bytes {
        if self.bytes_factor <= 1.0 {
            return Bytes::ZERO;
        }
        Bytes((declared.0 as f64 * (self.bytes_factor - 1.0)).ceil() as u64)
    }
}

impl Workloads {
    pub(super) fn contains(&self, workload: WorkloadId) -> bool {
        (workload.0 as usize) < self.known.len()
    }

    /// The names in order of registration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|workload| workload.name.as_str())
    }

    pub(super) fn name(&self, workload: WorkloadId) -> &str {
        &self.known[workload.0 as usize].name
    }

    /// Every cell with its workload, rung and device.
    pub(super) fn cells_mut(&mut self) -> impl Iterator<Item = (&str, &'static str, DeviceId, &mut Cell)> {
        self.known.iter_mut().flat_map(|workload| {
            let (name, rungs) = (workload.name.as_str(), &workload.rungs);
            workload.cells.iter_mut().zip(rungs).flat_map(move |(cells, rung)| {
                cells.iter_mut().zip(0..).map(move |(cell, at)| (name, *rung, DeviceId(at), &mut cell.cost))
            })
        })
    }

    /// How many tries of each rung on each device count as under way.
    pub(super) fn exploring(&self) -> impl Iterator<Item = (WorkloadId, &'static str, DeviceId, u32)> + '_ {
        self.known.iter().zip(0..).flat_map(|(workload, id)| {
            workload.cells.iter().zip(&workload.rungs).flat_map(move |(cells, rung)| {
                cells.iter().zip(0..).map(move |(cell, at)| (WorkloadId(id), *rung, DeviceId(at), cell.exploring))
            })
        })
    }

    #[inline]
    pub(super) fn cell(&self, workload: WorkloadId, rung: &'static str, device: DeviceId) -> Option<&CostCell> {
        self.row(workload, rung).get(device.index())
    }

    /// What a rung costs on each device.
    #[inline]
    pub(super) fn row(&self, workload: WorkloadId, rung: &'static str) -> &[CostCell] {
        let workload = &self.known[workload.0 as usize];
        let at = workload.rungs.iter().position(|known| same_name(known, rung));
        at.map_or(&[], |at| &workload.cells[at])
    }

    #[inline]
    pub(super) fn cell_mut(&mut self, workload: WorkloadId, rung: &'static str, device: DeviceId) -> &mut CostCell {
        let at = self.rung_at(workload, rung, device.index() + 1);
        &mut self.known[workload.0 as usize].cells[at][device.index()]
    }

    /// Makes sure that there is a cell for each rung on each device, with whatever the loaded profile knows.
    #[inline]
    pub(super) fn ensure_cells(&mut self, workload: WorkloadId, ladder: &Ladder, devices: usize) {
        let complete = &self.known[workload.0 as usize].complete;
        let is_known =
            complete.as_ref().is_some_and(|(known, to)| known.address() == ladder.address() && *to == devices);
        if !is_known {
            self.add_cells(workload, ladder, devices);
        }
    }

    fn add_cells(&mut self, workload: WorkloadId, ladder: &Ladder, devices: usize) {
        for rung in ladder.rungs() {
            self.rung_at(workload, rung.name, devices);
        }
        self.known[workload.0 as usize].complete = Some((ladder.clone(), devices));
    }

    #[inline]
    fn rung_at(&mut self, id: WorkloadId, rung: &'static str, devices: usize) -> usize {
        let workload = &mut self.known[id.0 as usize];
        let at = workload.rungs.iter().position(|known| same_name(known, rung)).unwrap_or_else(|| {
            workload.rungs.push(rung);
            workload.cells.push(Vec::new());
            workload.rungs.len() - 1
        });
        while workload.cells[at].len() < devices {
            let device = DeviceId(workload.cells[at].len() as u16);
            let cost = self.loaded.cell(&workload.name, rung, device);
            workload.cells[at].push(CostCell { cost, ..CostCell::default() });
        }
        at
    }
}

impl<H: Host> Scheduler<H> {
    /// Makes a workload known. The same name gives the same id.
    pub fn register(&mut self, name: &str) -> WorkloadId {
        let known = self.workloads.known.iter().position(|workload| workload.name == name);
        let at = known.unwrap_or_else(|| {
            let workload = Workload { name: name.to_owned(), rungs: Vec::new(), cells: Vec::new(), complete: None };
            self.workloads.known.push(workload);
            self.workloads.known.len() - 1
        });
        WorkloadId(u32::try_from(at).expect("fewer workloads than there is memory for"))
    }

    /// The workloads and what is known of them.
    pub fn workloads(&self) -> &Workloads {
        &self.workloads
    }

    /// What a rung of a workload is known to take on a device, from before anything ran.
    pub fn teach(&mut self, workload: WorkloadId, rung: &'static str, device: DeviceId, units: u64, run: Nanos) {
        self.things_changed();
        self.workloads.cell_mut(workload, rung, device).cost.learn_run(units, run);
    }

    /// Stops taking tasks in.
    pub fn stop_accepting(&mut self) {
        self.accepting = false;
    }

    /// Takes a task in.
    ///
    /// # Errors
    /// The reason and the task, if it was refused.
    #[inline]
    pub fn submit(&mut self, now: Moment, spec: TaskSpec, job: H::Job) -> Result<TaskId, Box<NotTaken<H::Job>>> {
        match self.enter(now, spec, job) {
            Ok(task) => {
                self.start_if_ready(now, task);
                Ok(task)
            }
            refused => refused,
        }
    }

    /// Puts a task into the table without choosing anything for it.
    #[inline]
    pub(super) fn enter(
        &mut self,
        now: Moment,
        mut spec: TaskSpec,
        job: H::Job,
    ) -> Result<TaskId, Box<NotTaken<H::Job>>> {
        if let Err(refusal) = self.may_enter(&spec) {
            return Err(Box::new(NotTaken { refusal, spec, job }));
        }
        self.wait_for_makers(&mut spec);
        let is_claimed = spec.is_claimed;
        let task = self.insert(now, spec, job, Origin::Caller);
        if is_claimed {
            self.share_value(ValueId::of(task));
        }
        self.reads(task);
        self.join_hold(task);
        self.block_on_predecessors(now, task);
        Ok(task)
    }

    /// Puts the task into the table that makes a lost value again. It may exceed the limit: whoever reads the value was
    /// taken in.
    pub(super) fn enter_again(&mut self, now: Moment, spec: TaskSpec, job: H::Job, value: ValueId) -> TaskId {
        self.insert(now, spec, job, Origin::Lost(value))
    }

    /// Puts the task into the table that takes what a session holds out of it.
    pub(super) fn enter_leaving(&mut self, now: Moment, spec: TaskSpec, job: H::Job) -> TaskId {
        self.insert(now, spec, job, Origin::Recall)
    }

    #[inline]
    fn insert(&mut self, now: Moment, spec: TaskSpec, job: H::Job, origin: Origin) -> TaskId {
        let (remakes, leaves) = match origin {
            Origin::Caller => (None, false),
            Origin::Lost(value) => (Some(value), false),
            Origin::Recall => (None, true),
        };
        self.workloads.ensure_cells(spec.workload, &spec.ladder, self.devices.len());
        self.order += 1;
        let (workload, units, deadline) = (spec.workload, spec.units, spec.deadline);
        if let Some(sequence) = spec.sequence {
            self.sequences.joined(sequence);
        }
        let submitted_at = spec.item.map_or(now, |item| item.since);
        let task = self.tasks.insert(TaskState {
            spec,
            job,
            phase: Phase::Blocked,
            ready_at: now,
            submitted_at,
            order: self.order,
            blockers: 0,
            dependents: Vec::new(),
            attempts: Vec::new(),
            bypassed: 0,
            short: None,
            moved_at: None,
            stranded_since: None,
            planned: None,
            set: None,
            remakes,
            leaves,
            why: Vec::new(),
        });
        if let Some(deadline) = deadline {
            self.deadlines.push(Reverse((deadline, task)));
            self.forget_old_deadlines();
        }
        self.note(now, || What::Submitted { task, workload, units });
        task
    }

    pub(super) fn start_if_ready(&mut self, now: Moment, task: TaskId) {
        if self.end_if_expired(now, task) {
            return;
        }
        if self.tasks.get(task).is_some_and(|state| state.blockers == 0) {
            self.place(now, task);
        }
    }

    /// Ends a task whose deadline has passed before it was started; says whether it did.
    pub(super) fn end_if_expired(&mut self, now: Moment, task: TaskId) -> bool {
        let deadline = self.tasks.get(task).and_then(|state| state.spec.deadline);
        let expired = deadline.is_some_and(|deadline| deadline <= now);
        expired && self.stop(now, task, TaskError::DeadlinePassed { started: false })
    }

    pub(super) fn may_enter(&self, spec: &TaskSpec) -> Result<(), SubmitErrorKind> {
        if !self.accepting {
            return Err(SubmitErrorKind::ShuttingDown);
        }
        if !self.workloads.contains(spec.workload) {
            return Err(SubmitErrorKind::UnknownWorkload);
        }
        let limit = self.config.queue_limit;
        if self.tasks.len() >= limit {
            return Err(SubmitErrorKind::QueueFull { limit });
        }
        self.may_join(spec)?;
        self.are_known(&spec.takes)?;
        spec.after.iter().try_for_each(|before| self.may_come_first(*before))
    }

    /// What is not known to have succeeded never counts as if it had.
    fn may_come_first(&self, task: TaskId) -> Result<(), SubmitErrorKind> {
        match self.tasks.standing(task) {
            Standing::Live | Standing::Ended => Ok(()),
            Standing::Unknown => Err(SubmitErrorKind::UnknownPredecessor { task }),
            Standing::Forgotten => Err(SubmitErrorKind::ForgottenPredecessor { task }),
        }
    }

    /// Waits for predecessors that have not ended; one that failed ends the task.
    fn block_on_predecessors(&mut self, now: Moment, task: TaskId) {
        let Some(state) = self.tasks.get(task) else { return };
        if state.spec.after.is_empty() {
            return;
        }
        let mut blockers = 0;
        let (priority, after) = (state.spec.priority, state.spec.after.clone());
        for &predecessor in &after {
            if let Some(before) = self.tasks.get_mut(predecessor) {
                before.dependents.push(task);
                blockers += 1;
            } else if let Some(error) = self.failed_lately.error(predecessor) {
                let error = after_failure(predecessor, &error);
                return self.end_without_result(now, task, error);
            }
        }
        if let Some(state) = self.tasks.get_mut(task) {
            state.blockers += blockers;
        }
        for predecessor in after {
            self.raise(now, predecessor, priority);
        }
    }

    /// Makes a task at least this urgent, and whatever it waits for.
    pub fn raise(&mut self, now: Moment, task: TaskId, priority: Priority) {
        let mut raised = vec![task];
        while let Some(task) = raised.pop() {
            let Some(state) = self.tasks.get(task).filter(|state| state.spec.priority < priority) else { continue };
            let (phase, after) = (state.phase, state.spec.after.clone());
            self.dequeue(task);
            if let Some(state) = self.tasks.get_mut(task) {
                (state.spec.priority, state.phase) = (priority, phase);
            }
            if let Phase::Queued { device, rung, estimate, .. } = phase {
                self.enqueue(now, task, Choice { device, rung, estimate });
            }
            raised.extend(after);
        }
    }

    /// Makes every task whose payload is one of those meant at least this urgent, and whatever it waits for.
    pub fn raise_those(&mut self, now: Moment, priority: Priority, meant: impl Fn(&H::Job) -> bool) {
        let is_meant = |task: &TaskId| self.tasks.get(*task).is_some_and(|state| meant(&state.job));
        let found: Vec<TaskId> = self.tasks.ids().filter(is_meant).collect();
        for task in found {
            self.raise(now, task, priority);
        }
    }

    /// Ends a task without a result; its dependents end with it, and the first cause is kept.
    pub(super) fn end_without_result(&mut self, now: Moment, task: TaskId, error: TaskError) {
        let mut ending = vec![(task, error)];
        while let Some((task, error)) = ending.pop() {
            let Some(state) = self.tasks.remove(task) else { continue };
            if let Some(sequence) = state.spec.sequence {
                self.sequences.left(sequence);
            }
            let end = match &error {
                TaskError::Cancelled | TaskError::ShutDown => End::Cancelled,
                TaskError::DeadlinePassed { .. } => End::DeadlinePassed,
                _ => End::Failed,
            };
            self.note(now, || What::Ended { task, end });
            self.no_longer_makes(task);
            self.no_longer_reads(now, task, &state.spec.takes);
            self.leave_hold(task, &state.spec);
            if let Some(set) = state.set {
                self.ended_of_set(now, set, state.planned, None);
            }
            let was_asked_for = state.was_asked_for();
            for dependent in state.dependents {
                ending.push((dependent, after_failure(task, &error)));
            }
            if let Some(forgotten) = self.failed_lately.remember(task, &error) {
                self.tasks.forget(forgotten);
            }
            match was_asked_for {
                true => self.endings.push(Ending { task, job: state.job, error }),
                false => self.discarded.jobs.push(state.job),
            }
        }
    }

    /// A predecessor succeeded: those that waited only for it can start.
    pub(super) fn unblock(&mut self, now: Moment, dependents: Vec<TaskId>) {
        for dependent in dependents {
            let Some(state) = self.tasks.get_mut(dependent) else { continue };
            state.blockers = state.blockers.saturating_sub(1);
            if state.blockers == 0 {
                state.ready_at = now;
                self.start_if_ready(now, dependent);
            }
        }
    }
}

/// The error of a task whose predecessor failed: the first cause is kept, however long the chain.
fn after_failure(predecessor: TaskId, error: &TaskError) -> TaskError {
    let (task, cause) = match error {
        TaskError::PredecessorFailed { task, cause } => (*task, cause.clone()),
        first => (predecessor, Box::new(first.clone())),
    };
    TaskError::PredecessorFailed { task, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_a_moving_average_of_units_per_second() {
        let mut cell = CostCell::default();
        assert_eq!(cell.throughput(10), None);
        let mut average_after = |units, took| {
            cell.ran(units, took);
            cell.throughput(1).expect("it ran").round()
        };
        assert_eq!(average_after(100, Nanos::millis(100)), 1_000.0);
        assert_eq!(average_after(200, Nanos::millis(100)), 1_100.0, "a tenth of the way to 2,000");
        assert_eq!(average_after(0, Nanos::seconds(1)), 990.0, "no units count as one");
        let mut too_short_to_measure = CostCell::default();
        too_short_to_measure.ran(5, Nanos::ZERO);
        assert!(too_short_to_measure.throughput(1).is_some_and(f64::is_finite));
    }

    #[test]
    fn what_a_run_takes_beyond_its_footprint_grows_with_the_footprint() {
        let excess = |bytes_factor, bytes| CostCell { bytes_factor, ..CostCell::default() }.excess(Bytes(bytes));
        assert_eq!([excess(1.5, 100), excess(1.5, 3), excess(1.0, 100), excess(0.0, 100)], [50, 2, 0, 0].map(Bytes));
    }

    #[test]
    fn figures_are_looked_into_when_they_are_old_or_surprised() {
        let (at, takes) = (Moment(1_000), Nanos(10));
        let mut cell = CostCell::default();
        cell.ended(at, Nanos(100), Nanos(50));
        assert!(!cell.is_stale(at, takes), "half of what was expected is no surprise");
        assert!(!cell.is_stale(Moment(1_319), takes) && cell.is_stale(Moment(1_320), takes));
        cell.ended(at, Nanos(100), Nanos(49));
        assert!(cell.is_stale(at, takes));
        cell.begins(Moment(2_000));
        assert!(!cell.is_stale(Moment(2_000), takes), "it is being looked into");
        assert!(!cell.is_stale(Moment(2_319), takes) && cell.is_stale(Moment(2_320), takes));
    }
}
