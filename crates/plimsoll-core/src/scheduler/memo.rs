//! Memo: the candidates of the kinds of task that were chosen for last. Tasks come in many of a few kinds, and between two
//! of a kind hardly anything has changed but the queues.
//! Never outlives a change of anything else a choice depends on: whoever changes it calls `things_changed`, or
//! `costs_changed` where only times did. Free bytes and waits are asked anew each time.
//! Invariant: with or without the memo the choice is the same (`tests::the_memo_never_changes_a_choice`).

use smallvec::SmallVec;

use super::choose::{Choice, Possible, Possibles, guess_unmeasured, guesses_hold};
use super::state::TaskState;
use super::{Host, Scheduler};
use crate::task::{Priority, SessionShape, TaskSpec};
use crate::{DeviceSet, Ladder, Moment, Quality, TaskId, WorkloadId};

/// Everything in a task that its candidates depend on.
#[derive(Clone, Debug)]
struct Kind {
    workload: WorkloadId,
    ladder: Ladder,
    units: u64,
    session: SessionShape,
    priority: Priority,
    quality_min: Quality,
    strict: bool,
    rung: Option<&'static str>,
    devices: DeviceSet,
}

impl Kind {
    fn of(spec: &TaskSpec) -> Self {
        Self {
            workload: spec.workload,
            ladder: spec.ladder.clone(),
            units: spec.units,
            session: spec.session,
            priority: spec.priority,
            quality_min: spec.quality_min,
            strict: spec.strict,
            rung: spec.rung,
            devices: spec.devices,
        }
    }

    fn is(&self, spec: &TaskSpec) -> bool {
        self.ladder.address() == spec.ladder.address()
            && self.workload == spec.workload
            && self.units == spec.units
            && self.session == spec.session
            && self.priority == spec.priority
            && self.quality_min == spec.quality_min
            && self.strict == spec.strict
            && self.rung == spec.rung
            && self.devices == spec.devices
    }
}

/// The candidates of one kind of task, all of them with figures that hold.
#[derive(Clone, Debug)]
struct Memo {
    kind: Kind,
    candidates: Possibles,
    /// The best of them on each device: what keeps one waiting there keeps all.
    best: SmallVec<[Choice; 4]>,
    /// What its rungs take was measured anew.
    is_stale: bool,
}

/// Kinds remembered at once: the stages of a pipeline, the metrics of a sweep.
const KINDS_MAX: usize = 8;

/// The kinds that were chosen for last.
#[derive(Clone, Debug, Default)]
pub(super) struct Memos {
    known: SmallVec<[Memo; KINDS_MAX]>,
    /// The ladders of the tasks that were chosen for last: what is not seen twice is not worth remembering.
    seen: [usize; KINDS_MAX],
    seen_next: usize,
    replaced_next: usize,
}

impl Memos {
    fn position(&self, spec: &TaskSpec) -> Option<usize> {
        self.known.iter().position(|memo| memo.kind.is(spec))
    }

    /// Whether a task on this ladder was chosen for lately.
    fn saw(&mut self, ladder: &Ladder) -> bool {
        let address = ladder.address();
        if self.seen.contains(&address) {
            return true;
        }
        self.seen[self.seen_next] = address;
        self.seen_next = (self.seen_next + 1) % KINDS_MAX;
        false
    }

    fn remember(&mut self, memo: Memo) {
        if self.known.len() < KINDS_MAX {
            return self.known.push(memo);
        }
        self.known[self.replaced_next] = memo;
        self.replaced_next = (self.replaced_next + 1) % KINDS_MAX;
    }
}

impl<H: Host> Scheduler<H> {
    /// Something changed that candidates depend on beyond queues, free bytes and times.
    pub(super) fn things_changed(&mut self) {
        self.memos.known.clear();
    }

    /// What rungs of this workload take was measured anew.
    pub(super) fn costs_changed(&mut self, workload: WorkloadId) {
        for memo in self.memos.known.iter_mut().filter(|memo| memo.kind.workload == workload) {
            memo.is_stale = true;
        }
    }

    /// Whether all that this task's candidates depend on is in its kind.
    fn is_plain(state: &TaskState<H::Job>) -> bool {
        let TaskSpec { references, sequence, takes, .. } = &state.spec;
        references.is_empty() && sequence.is_none() && takes.is_empty() && state.attempts.is_empty()
    }

    /// The choice from the memo, if there is one of this kind.
    pub(super) fn recall_choice(&mut self, now: Moment, task: TaskId) -> Option<Choice> {
        let state = self.tasks.get(task).filter(|state| Self::is_plain(state))?;
        let (at, priority) = (self.memos.position(&state.spec)?, state.spec.priority);
        if self.memos.known[at].is_stale {
            self.renew(at);
        }
        let mut best: Option<Choice> = None;
        for choice in &self.memos.known[at].best {
            if choice.estimate.bytes > self.ledger.free(choice.device) {
                return None;
            }
            let mut choice = *choice;
            choice.estimate.wait = self.device(choice.device).wait(now, priority);
            if best.is_none_or(|best| choice.order() < best.order()) {
                best = Some(choice);
            }
        }
        best
    }

    /// Asks anew what the candidates take.
    fn renew(&mut self, at: usize) {
        let memo = &mut self.memos.known[at];
        memo.is_stale = false;
        let kind = &memo.kind;
        for Possible { choice, .. } in &mut memo.candidates {
            let cell = self.workloads.cell(kind.workload, kind.ladder.rungs()[choice.rung].name, choice.device);
            if let Some(run) = cell.and_then(|cell| cell.cost.run(kind.units)) {
                (choice.estimate.run, choice.estimate.measured) = (run.time, true);
            }
        }
        guess_unmeasured(&mut memo.candidates);
        memo.best = best_by_device(&memo.candidates);
    }

    /// Remembers these candidates, if another task of this kind is to be expected, and nothing but queues, free bytes and
    /// times can change them: none is closed by a failure that will be forgotten, about to be tried, or there only
    /// because a better one does not fit now.
    pub(super) fn remember_candidates(&mut self, task: TaskId, possible: &Possibles) {
        let Some(state) = self.tasks.get(task).filter(|state| Self::is_plain(state)) else { return };
        if !self.memos.saw(&state.spec.ladder) {
            return;
        }
        let holds = guesses_hold(possible)
            && !possible.is_empty()
            && possible.iter().all(|each| each.fits_now)
            && !state.spec.ladder.has_several_qualities()
            && !self.has_failed_anywhere(&state.spec)
            && self.memos.position(&state.spec).is_none();
        if holds {
            let (kind, candidates) = (Kind::of(&state.spec), possible.clone());
            let best = best_by_device(&candidates);
            self.memos.remember(Memo { kind, candidates, best, is_stale: false });
        }
    }

    /// Whether a failure is remembered of any rung on any device: those are forgotten as time goes by.
    fn has_failed_anywhere(&self, spec: &TaskSpec) -> bool {
        let mut rungs = spec.ladder.rungs().iter();
        rungs.any(|rung| self.workloads.row(spec.workload, rung.name).iter().any(|cell| cell.cost.has_failed()))
    }
}

/// The candidate of each device that occupies it for the shortest time, in the order in which they come.
fn best_by_device(candidates: &Possibles) -> SmallVec<[Choice; 4]> {
    let choices = candidates.iter().map(|possible| possible.choice);
    let order = |choice: &Choice| (choice.estimate.occupies(), choice.estimate.measured);
    let is_best = |(at, choice): &(usize, Choice)| {
        let mut rivals = choices.clone().enumerate().filter(|(_, rival)| rival.device == choice.device);
        rivals.all(|(place, rival)| (order(choice), *at) <= (order(&rival), place))
    };
    choices.clone().enumerate().filter(is_best).map(|(_, choice)| choice).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheduler::{Config, DeviceSpec, Measured, Outcome};
    use crate::{Bytes, DeviceId, DeviceKind, Footprint, Nanos, Place, Rung, SequenceId};

    struct Nothing;

    impl Host for Nothing {
        type Job = ();
        type Session = ();
        type Prepared = ();
        type Value = ();
        type State = ();
    }

    /// Three devices and two rungs; `taught` says what was measured: a bit for each rung of each device.
    fn scheduler(taught: u8) -> (Scheduler<Nothing>, Vec<TaskSpec>) {
        let mut scheduler = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
        for (kind, slots) in [(DeviceKind::Cpu, 2), (DeviceKind::Gpu, 1), (DeviceKind::Gpu, 1)] {
            let device = scheduler.add_device(DeviceSpec::new(kind, slots, Bytes(1_000)));
            scheduler.device_opened(Moment::START, device);
        }
        let ladder = Ladder::from(vec![
            Rung::new("full", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(300))),
            Rung::new("any", Place::Anywhere, Footprint::task(Bytes(100))),
        ]);
        let workload = scheduler.register("w");
        for device in 0..3 {
            let costs = [("full", Nanos(400)), ("any", Nanos(900 + 100 * u64::from(device)))];
            for (at, (rung, run)) in costs.into_iter().enumerate() {
                if taught >> (2 * usize::from(device) + at) & 1 == 1 {
                    scheduler.teach(workload, rung, DeviceId(device), 10, run);
                }
            }
        }
        let mut specs = [10, 10, 20, 10].map(|units| TaskSpec::new(workload, ladder.clone(), units));
        specs[3].sequence = Some(SequenceId(1));
        (scheduler, specs.into())
    }

    /// Whether the second of two equal tasks leaves a memo.
    fn is_remembered(taught: u8) -> bool {
        let (mut scheduler, specs) = scheduler(taught);
        for _ in 0..2 {
            scheduler.submit(Moment::START, specs[0].clone(), ()).unwrap();
        }
        !scheduler.memos.known.is_empty()
    }

    #[test]
    fn a_fallback_that_was_never_measured_is_remembered_but_not_a_device_to_be_tried() {
        assert!(is_remembered(0b11_11_10), "everything measured");
        assert!(is_remembered(0b01_01_10), "both GPUs without figures for their lower rung");
        assert!(!is_remembered(0b10_11_10), "a GPU without figures for its better rung");
        assert!(!is_remembered(0b11_11_00), "a CPU without figures");
    }

    proptest! {
        #[test]
        fn the_memo_never_changes_a_choice(
            taught in 0..64_u8,
            steps in proptest::collection::vec((0..4_usize, 0..4_u8, 0..3_u16), 1..60),
        ) {
            let (mut scheduler, specs) = scheduler(taught);
            let mut runs = Vec::new();
            for (at, (kind, act, device)) in steps.into_iter().enumerate() {
                let now = Moment(at as u64 * 50);
                match act {
                    0 | 1 => {
                        let id = scheduler.enter(now, specs[kind].clone(), ()).map_err(|_| TestCaseError::fail("full"))?;
                        let remembered = scheduler.choose(now, id);
                        let memos = std::mem::take(&mut scheduler.memos);
                        prop_assert_eq!(scheduler.choose(now, id), remembered);
                        scheduler.memos = memos;
                        scheduler.start_if_ready(now, id);
                    }
                    2 => runs.extend(scheduler.take(now, DeviceId(device)).map(|assignment| assignment.run)),
                    _ => {
                        if let Some(run) = runs.pop() {
                            // Opening costs so much that a fallback seems better wherever the session is not kept.
                            let measured = Measured { run: Nanos(400), open: Some(Nanos(3_200)), ..Measured::default() };
                            let session = (kind == 0).then_some(());
                            scheduler.settle(now, run, Outcome { result: Ok(()), session, measured });
                        }
                    }
                }
            }
        }
    }
}
