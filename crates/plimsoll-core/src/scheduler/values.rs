//! Values: outputs that stay where they were made until their last reader has ended.
//! Never moves one: whoever runs a reader elsewhere copies it there, as part of bringing what the reader needs.
//! Invariant: a value that somebody still needs either lies on a device, or is being made, or will be made again before a
//! reader of it starts.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::state::{Phase, Run};
use super::{Host, Scheduler};
use crate::error::SubmitErrorKind;
use crate::health::Ailment;
use crate::ledger::{Holder, LeaseId};
use crate::profile::Cell;
use crate::task::TaskSpec;
use crate::{Bytes, DeviceId, Moment, Nanos, TaskId, ValueId};

/// What copying a value between two devices is taken to cost before it was measured: about what a slow bus gives.
const UNKNOWN_MOVE_BYTES_PER_MICROSECOND: u64 = 1_000;

/// A value for a run.
#[derive(Debug)]
pub enum ValueTurn<V> {
    /// It lies on the run's own device: use it where it is.
    Here(V),
    /// It lies on another device: copy it, and say with `Measured::moves` what that took.
    Fetch(DeviceId, V),
}

/// The values of a run, in the order of its task's.
pub(super) type ValueTurns<H> = SmallVec<[ValueTurn<<H as Host>::Value>; 1]>;

/// A copy that a run made of a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Where it lay.
    pub from: DeviceId,
    /// How much it was.
    pub bytes: Bytes,
    /// How long that took.
    pub took: Nanos,
}

/// A value that lies somewhere.
struct Lying<V> {
    device: DeviceId,
    bytes: Bytes,
    lease: LeaseId,
    content: V,
}

/// How to make a value again.
struct Recipe<J> {
    spec: TaskSpec,
    job: J,
}

struct Value<H: Host> {
    /// `None` while it is being made, and when it was lost.
    lying: Option<Lying<H::Value>>,
    /// `None` until it was made for the first time: until then its maker has not ended.
    recipe: Option<Recipe<H::Job>>,
    /// Tasks that take it and have not ended.
    readers: SmallVec<[TaskId; 2]>,
    /// Holders outside that may still name it to a task.
    handles: u32,
    /// Values whose recipes take this one: it may have to be made again for them, but need not lie anywhere for that.
    needed_again_by: u32,
    /// The task that makes it again.
    remaking: Option<TaskId>,
}

impl<H: Host> Value<H> {
    /// One that somebody named before it was made.
    fn promised() -> Self {
        let (lying, recipe, remaking) = (None, None, None);
        Self { lying, recipe, readers: SmallVec::new(), handles: 0, needed_again_by: 0, remaking }
    }

    fn is_wanted(&self) -> bool {
        !self.readers.is_empty() || self.handles > 0
    }
}

/// A value that runs have in hand.
struct Lent {
    device: DeviceId,
    runs: u32,
    /// Nobody needs it but those runs.
    is_gone: bool,
}

/// All values, and what copying one from device to device was measured to cost.
pub(super) struct Values<H: Host> {
    known: FxHashMap<ValueId, Value<H>>,
    /// What runs have in hand, by its lease: its bytes stay promised until the last of them is over.
    lent: FxHashMap<LeaseId, Lent>,
    moves: FxHashMap<(DeviceId, DeviceId), Cell>,
}

impl<H: Host> Default for Values<H> {
    fn default() -> Self {
        Self { known: FxHashMap::default(), lent: FxHashMap::default(), moves: FxHashMap::default() }
    }
}

impl<H: Host> Values<H> {
    fn lying(&self, id: ValueId) -> Option<&Lying<H::Value>> {
        self.known.get(&id)?.lying.as_ref()
    }

    /// What copying so many bytes should take.
    fn move_time(&self, from: DeviceId, to: DeviceId, bytes: Bytes) -> Nanos {
        let measured = self.moves.get(&(from, to)).and_then(|cell| cell.run(bytes.0));
        measured.map_or(Nanos::micros(bytes.0 / UNKNOWN_MOVE_BYTES_PER_MICROSECOND), |estimate| estimate.time)
    }

    pub(super) fn leases(&self) -> usize {
        let gone = self.lent.values().filter(|lent| lent.is_gone).count();
        self.known.values().filter(|value| value.lying.is_some()).count() + gone
    }
}

/// Where the values of a task stand as seen from a device.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Distance {
    /// Time to copy those that lie elsewhere.
    pub(super) bring: Nanos,
    /// Bytes that the copies need while the task runs.
    pub(super) copies: Bytes,
}

impl<H: Host> Scheduler<H> {
    /// How many values are known.
    pub fn values(&self) -> usize {
        self.values.known.len()
    }

    /// Where a value lies; `None` if it is being made or does not exist.
    pub fn value_lies_on(&self, value: ValueId) -> Option<DeviceId> {
        self.values.lying(value).map(|lying| lying.device)
    }

    /// One more holder may name this value to a task: also one that its maker has yet to make.
    pub fn share_value(&mut self, id: ValueId) {
        let is_to_be_made = self.tasks.get(id.maker()).is_some_and(|maker| maker.remakes.is_none());
        match self.values.known.get_mut(&id) {
            Some(value) => value.handles += 1,
            None if is_to_be_made => {
                let value = Value { handles: 1, ..Value::promised() };
                self.values.known.insert(id, value);
            }
            None => {}
        }
    }

    /// A holder gave its handle up.
    pub fn drop_value(&mut self, now: Moment, id: ValueId) {
        if let Some(value) = self.values.known.get_mut(&id) {
            value.handles = value.handles.saturating_sub(1);
            self.let_go_of_value(now, id);
        }
    }

    /// Whether every value that a task takes was made, or is yet to be made by a task that has not ended.
    pub(super) fn are_known(&self, takes: &[ValueId]) -> Result<(), SubmitErrorKind> {
        match takes.iter().find(|id| !self.values.known.contains_key(id)) {
            Some(&value) => Err(SubmitErrorKind::UnknownValue { value }),
            None => Ok(()),
        }
    }

    /// A task that takes what is yet to be made comes after whoever makes it.
    pub(super) fn wait_for_makers(&self, spec: &mut TaskSpec) {
        let is_unmade = |id: &&ValueId| self.values.known.get(id).is_some_and(|value| value.recipe.is_none());
        let makers = spec.takes.iter().filter(is_unmade).map(|id| id.maker());
        spec.after.extend(makers);
    }

    /// A task that takes these values was taken in; the handles that named them to it are spent.
    pub(super) fn reads(&mut self, task: TaskId) {
        let Some(state) = self.tasks.get(task) else { return };
        for id in &state.spec.takes {
            if let Some(value) = self.values.known.get_mut(id) {
                value.readers.push(task);
                value.handles = value.handles.saturating_sub(1);
            }
        }
    }

    /// A task that takes these values has ended.
    pub(super) fn no_longer_reads(&mut self, now: Moment, task: TaskId, takes: &[ValueId]) {
        for &id in takes {
            if let Some(value) = self.values.known.get_mut(&id) {
                value.readers.retain(|reader| *reader != task);
                self.let_go_of_value(now, id);
            }
        }
    }

    /// What nobody reads gives its bytes back; what nobody can ever need again is forgotten, and with it what it was
    /// made from.
    fn let_go_of_value(&mut self, now: Moment, id: ValueId) {
        let mut unneeded: SmallVec<[ValueId; 4]> = SmallVec::from_slice(&[id]);
        while let Some(id) = unneeded.pop() {
            let Some(value) = self.values.known.get_mut(&id) else { continue };
            if value.is_wanted() || value.recipe.is_none() {
                continue;
            }
            let is_needed_again = value.needed_again_by > 0;
            if let Some(lying) = value.lying.take() {
                self.drop_lying(now, lying);
            }
            if is_needed_again {
                continue;
            }
            let Some(value) = self.values.known.remove(&id) else { continue };
            if let Some(task) = value.remaking {
                self.stop(now, task, crate::TaskError::Cancelled);
            }
            let Some(Recipe { spec, job }) = value.recipe else { continue };
            self.discarded.jobs.push(job);
            for source in spec.takes {
                if let Some(source) = self.values.known.get_mut(&source) {
                    source.needed_again_by -= 1;
                }
                unneeded.push(source);
            }
        }
    }

    fn drop_lying(&mut self, now: Moment, lying: Lying<H::Value>) {
        let device = lying.device;
        if self.no_longer_lies(lying) {
            self.wakes = self.wakes.with(device);
            self.memory_freed(now);
        }
    }

    /// Nobody needs it any more, or it is lost. Says whether its bytes are free: not while a run has it in hand.
    fn no_longer_lies(&mut self, lying: Lying<H::Value>) -> bool {
        self.discarded.values.push(lying.content);
        match self.values.lent.get_mut(&lying.lease) {
            Some(lent) => {
                lent.is_gone = true;
                // It comes back with the runs from now on, not with its readers.
                self.ledger.passes_to(lying.lease, Holder::Own);
                false
            }
            None => {
                self.give_back(lying.lease);
                true
            }
        }
    }

    /// A run is over: it has its values in hand no more. Settling offers what that frees to grants.
    pub(super) fn return_values(&mut self, run: &Run) {
        for lease in &run.reads {
            let Some(lent) = self.values.lent.get_mut(lease) else { continue };
            lent.runs -= 1;
            if lent.runs > 0 {
                continue;
            }
            let (device, is_gone) = (lent.device, lent.is_gone);
            self.values.lent.remove(lease);
            if is_gone {
                self.give_back(*lease);
                self.wakes = self.wakes.with(device);
            }
        }
    }

    /// The name of what a task keeps, if it keeps something.
    pub(super) fn value_made_by(&self, task: TaskId) -> ValueId {
        self.tasks.get(task).and_then(|state| state.remakes).unwrap_or(ValueId::of(task))
    }

    /// A task has ended: what it has not made by now never will be.
    pub(super) fn no_longer_makes(&mut self, task: TaskId) {
        if self.values.known.is_empty() {
            return;
        }
        let id = ValueId::of(task);
        if self.values.known.get(&id).is_some_and(|value| value.recipe.is_none()) {
            self.values.known.remove(&id);
        }
    }

    /// A run gave a result that counts, and its output stays.
    pub(super) fn keep_value(&mut self, now: Moment, run: &Run, content: H::Value, lease: LeaseId) {
        let value_id = self.value_made_by(run.head());
        let Some(state) = self.tasks.get(run.head()) else { return };
        let (remakes, spec, job) = (state.remakes, state.spec.clone(), state.job.clone());
        let (device, epoch, bytes) = (run.device, run.epoch, run.value_bytes);
        for source in spec.takes.iter().filter(|_| remakes.is_none()) {
            if let Some(source) = self.values.known.get_mut(source) {
                source.needed_again_by += 1;
            }
        }
        self.ledger.passes_to(lease, Holder::Value);
        let lying = Lying { device, bytes, lease, content };
        // What a device made before it was lost is lost with it.
        let is_there = epoch == self.device(device).epoch;
        let gone = match self.values.known.get_mut(&value_id) {
            Some(value) => {
                value.remaking = None;
                value.recipe.get_or_insert(Recipe { spec, job });
                if is_there { value.lying.replace(lying) } else { Some(lying) }
            }
            None => Some(lying),
        };
        if let Some(gone) = gone {
            self.drop_lying(now, gone);
        }
        self.let_go_of_value(now, value_id);
    }

    /// How far the values of a task lie from a device.
    pub(super) fn distance(&self, spec: &TaskSpec, to: DeviceId) -> Distance {
        let mut distance = Distance::default();
        for lying in spec.takes.iter().filter_map(|id| self.values.lying(*id)) {
            if lying.device != to {
                distance.bring += self.values.move_time(lying.device, to, lying.bytes);
                distance.copies += lying.bytes;
            }
        }
        distance
    }

    /// The values of a task for a run on a device, and the leases that it has in hand with them.
    pub(super) fn hold_values(&mut self, task: TaskId, on: DeviceId) -> (ValueTurns<H>, SmallVec<[LeaseId; 1]>) {
        let (mut turns, mut leases) = (SmallVec::new(), SmallVec::new());
        let Some(state) = self.tasks.get(task) else { return (turns, leases) };
        let Values { known, lent, .. } = &mut self.values;
        for lying in state.spec.takes.iter().filter_map(|id| known.get(id)?.lying.as_ref()) {
            turns.push(match lying.device == on {
                true => ValueTurn::Here(lying.content.clone()),
                false => ValueTurn::Fetch(lying.device, lying.content.clone()),
            });
            let unlent = Lent { device: lying.device, runs: 0, is_gone: false };
            lent.entry(lying.lease).or_insert(unlent).runs += 1;
            leases.push(lying.lease);
        }
        (turns, leases)
    }

    /// What copying values took.
    pub(super) fn learn_moves(&mut self, to: DeviceId, moves: &[Moved]) {
        for moved in moves {
            self.values.moves.entry((moved.from, to)).or_default().learn_run(moved.bytes.0, moved.took);
        }
    }

    /// Whether a task has to wait until a value that it takes was made again; sees to it that it is.
    pub(super) fn waits_for_values(&mut self, now: Moment, task: TaskId) -> bool {
        let Some(state) = self.tasks.get(task) else { return false };
        if state.spec.takes.is_empty() {
            return false;
        }
        if let Err(kept_none) = self.are_known(&state.spec.takes) {
            self.end_without_result(now, task, crate::TaskError::WorkFailed(crate::Cause::new(kept_none)));
            return true;
        }
        let is_missing = |id: &&ValueId| self.values.known.get(id).is_some_and(|value| value.lying.is_none());
        let missing: SmallVec<[ValueId; 2]> = state.spec.takes.iter().filter(is_missing).copied().collect();
        let mut begun: SmallVec<[TaskId; 2]> = SmallVec::new();
        for &value in &missing {
            let (maker, is_new) = self.maker_of(now, value);
            if let Some(maker) = self.tasks.get_mut(maker) {
                maker.dependents.push(task);
            }
            if let Some(state) = self.tasks.get_mut(task) {
                state.phase = Phase::Blocked;
                state.blockers += 1;
            }
            begun.extend(is_new.then_some(maker));
        }
        // Only now: one that no device can do any more ends at once, and with it whoever waits for it.
        for maker in begun {
            self.start_if_ready(now, maker);
        }
        !missing.is_empty()
    }

    /// The task that makes a lost value again, and whether it was entered just now.
    fn maker_of(&mut self, now: Moment, id: ValueId) -> (TaskId, bool) {
        let value = self.values.known.get(&id).expect("it was just found missing");
        if let Some(task) = value.remaking.filter(|task| self.tasks.get(*task).is_some()) {
            return (task, false);
        }
        let recipe = value.recipe.as_ref().expect("a task takes only what was made once");
        let (mut spec, job) = (recipe.spec.clone(), recipe.job.clone());
        // How long its result is of use is its readers' to say.
        spec.deadline = None;
        let sources = spec.takes.clone();
        let task = self.enter_again(now, spec, job, id);
        for source in &sources {
            if let Some(source) = self.values.known.get_mut(source) {
                source.readers.push(task);
            }
        }
        if let Some(value) = self.values.known.get_mut(&id) {
            value.remaking = Some(task);
        }
        (task, true)
    }

    /// What lay on a device is lost with it. Whoever is queued to read it waits until it was made again.
    pub(super) fn lose_values(&mut self, now: Moment, device: DeviceId) {
        let lost: Vec<ValueId> = {
            let lies_here = |value: &Value<H>| value.lying.as_ref().is_some_and(|lying| lying.device == device);
            let mut lost: Vec<ValueId> =
                self.values.known.iter().filter(|(_, value)| lies_here(value)).map(|(id, _)| *id).collect();
            // The order of a hash map never shows.
            lost.sort_unstable();
            lost
        };
        let mut readers: Vec<TaskId> = Vec::new();
        for id in lost {
            let Some(value) = self.values.known.get_mut(&id) else { continue };
            let Some(lying) = value.lying.take() else { continue };
            readers.extend(&value.readers);
            self.no_longer_lies(lying);
        }
        readers.sort_unstable();
        readers.dedup();
        for task in readers {
            let queued = self.tasks.get(task).is_some_and(|state| matches!(state.phase, Phase::Queued { .. }));
            if queued {
                self.leave_queue(task);
                self.place(now, task);
            }
        }
    }

    /// A device from which a value was to be copied is lost. Of one that was opened anew since, that says nothing.
    pub(super) fn source_lost(&mut self, now: Moment, task: TaskId, source: DeviceId) {
        let takes = self.tasks.get(task).map(|state| state.spec.takes.clone()).unwrap_or_default();
        if takes.iter().any(|id| self.value_lies_on(*id) == Some(source)) {
            self.quarantine(now, source, Ailment::Lost, None);
        }
    }
}
