//! Memo: the candidates of the kinds of task that were chosen for last. Tasks come in many of a few kinds, and between two
//! of a kind hardly anything has changed but the queues.
//! Never outlives a change of anything else a choice depends on: whoever changes it calls `things_changed`, or
//! `costs_changed` where only times did. Free bytes and waits are asked anew each time.
//! Invariant: with or without the memo the choice is the same (`tests::the_memo_never_changes_a_choice`).

use smallvec::SmallVec;

use super::choose::{Choice, Possibles};
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

/// The candidates of one kind of task, all of them measured.
#[derive(Clone, Debug)]
struct Memo {
    kind: Kind,
    /// One a device: of rungs that fit, `choose` leaves the best.
    candidates: SmallVec<[Choice; 4]>,
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
    #[inline]
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
        for choice in &self.memos.known[at].candidates {
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
        for choice in &mut memo.candidates {
            let cell = self.workloads.cell(kind.workload, kind.ladder.rungs()[choice.rung].name, choice.device);
            if let Some(run) = cell.and_then(|cell| cell.cost.run(kind.units)) {
                choice.estimate.run = run.time;
            }
        }
    }

    /// Remembers these candidates, if another task of this kind is to be expected, and nothing but queues, free bytes and
    /// times can change them: none is closed by a failure that will be forgotten, about to be tried, or there only
    /// because a better one does not fit now.
    pub(super) fn remember_candidates(&mut self, task: TaskId, possible: &Possibles) {
        let Some(state) = self.tasks.get(task).filter(|state| Self::is_plain(state)) else { return };
        if !self.memos.saw(&state.spec.ladder) {
            return;
        }
        let holds = !possible.is_empty()
            && possible.iter().all(|each| each.fits_now && each.choice.estimate.measured)
            && !state.spec.ladder.has_several_qualities()
            && !self.has_failed_anywhere(&state.spec)
            && self.memos.position(&state.spec).is_none();
        if holds {
            let candidates = possible.iter().map(|each| each.choice).collect();
            self.memos.remember(Memo { kind: Kind::of(&state.spec), candidates, is_stale: false });
        }
    }

    /// Whether a failure is remembered of any rung on any device: those are forgotten as time goes by.
    fn has_failed_anywhere(&self, spec: &TaskSpec) -> bool {
        let mut rungs = spec.ladder.rungs().iter();
        rungs.any(|rung| self.workloads.row(spec.workload, rung.name).iter().any(|cell| cell.cost.has_failed()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::{Attempt, Setback};
    use crate::scheduler::choose::session_key;
    use crate::scheduler::{Config, DeviceSpec, Measured, Outcome};
    use crate::task::ReferenceUse;
    use crate::{
        Bytes, ContentKey, DeviceId, DeviceKind, Footprint, MemoryMoment, Nanos, Place, Rung, SequenceId, ValueId,
    };

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

    /// Every rung that is chosen from has figures.
    const EVERYTHING: u8 = 0b11_11_10;

    fn submit(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec) {
        scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    }

    /// A task that nothing was chosen for.
    fn entered(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec) -> TaskId {
        scheduler.enter(Moment::START, spec.clone(), ()).unwrap()
    }

    fn recalled(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec) -> Option<Choice> {
        let task = entered(scheduler, spec);
        scheduler.recall_choice(Moment::START, task)
    }

    /// What is chosen where nothing is remembered.
    fn chosen_anew(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec) -> Option<Choice> {
        let task = entered(scheduler, spec);
        let memos = std::mem::take(&mut scheduler.memos);
        let chosen = scheduler.choose(Moment::START, task);
        scheduler.memos = memos;
        chosen.map(|chosen| chosen.choice)
    }

    #[test]
    fn a_kind_is_recalled_once_it_was_seen_twice_and_no_other_is() {
        let (mut scheduler, specs) = scheduler(EVERYTHING);
        let (spec, workload) = (&specs[0], scheduler.register("v"));
        submit(&mut scheduler, spec);
        assert_eq!(recalled(&mut scheduler, spec), None, "it may be the only one");
        submit(&mut scheduler, spec);
        let anew = chosen_anew(&mut scheduler, spec);
        assert!(anew.is_some());
        assert_eq!(recalled(&mut scheduler, spec), anew);
        let pinned = ReferenceUse { content: ContentKey(1), pinned: true };
        let others = [
            TaskSpec { workload, ..spec.clone() },
            TaskSpec { ladder: Ladder::from(spec.ladder.rungs().to_vec()), ..spec.clone() },
            TaskSpec { units: 20, ..spec.clone() },
            TaskSpec { session: SessionShape { params: 1, shape: 0 }, ..spec.clone() },
            TaskSpec { priority: Priority::High, ..spec.clone() },
            TaskSpec { quality_min: Quality::ANY, ..spec.clone() },
            TaskSpec { strict: true, ..spec.clone() },
            TaskSpec { rung: Some("any"), ..spec.clone() },
            TaskSpec { devices: DeviceSet::only(DeviceId(1)), ..spec.clone() },
            TaskSpec { sequence: Some(SequenceId(1)), ..spec.clone() },
            TaskSpec { references: [pinned].into_iter().collect(), ..spec.clone() },
        ];
        for other in others {
            assert_eq!(recalled(&mut scheduler, &other), None, "{other:?}");
        }
        let (reads, failed) = (entered(&mut scheduler, spec), entered(&mut scheduler, spec));
        scheduler.tasks.get_mut(reads).unwrap().spec.takes.push(ValueId::of(failed));
        let attempt = Attempt { rung: "any", device: DeviceId(0), setback: Setback::Distrusted };
        scheduler.tasks.get_mut(failed).unwrap().attempts.push(attempt);
        assert_eq!([reads, failed].map(|task| scheduler.recall_choice(Moment::START, task)), [None, None]);
    }

    #[test]
    fn what_was_measured_anew_is_recalled_as_measured() {
        let (mut scheduler, specs) = scheduler(EVERYTHING);
        let (spec, workload) = (&specs[0], scheduler.register("v"));
        for (rung, device) in [("any", 0), ("full", 1), ("full", 2)] {
            scheduler.teach(workload, rung, DeviceId(device), 10, Nanos(500));
        }
        let other = TaskSpec { workload, ..spec.clone() };
        for spec in [spec, spec, &other] {
            submit(&mut scheduler, spec);
        }
        let before = recalled(&mut scheduler, spec);
        for device in [1, 2] {
            let cell = scheduler.workloads.cell_mut(spec.workload, "full", DeviceId(device));
            (0..20).for_each(|_| cell.cost.learn_run(10, Nanos(4_000)));
        }
        scheduler.costs_changed(spec.workload);
        let stale = |scheduler: &Scheduler<Nothing>| -> Vec<(WorkloadId, bool)> {
            scheduler.memos.known.iter().map(|memo| (memo.kind.workload, memo.is_stale)).collect()
        };
        assert_eq!(stale(&scheduler), [(spec.workload, true), (workload, false)]);
        let after = recalled(&mut scheduler, spec);
        assert_ne!(after, before);
        assert_eq!(after, chosen_anew(&mut scheduler, spec));
        assert_eq!(stale(&scheduler), [(spec.workload, false), (workload, false)], "it is asked once");
    }

    #[test]
    fn a_kind_is_recalled_as_long_as_it_fits_wherever_it_could_go() {
        let (mut scheduler, specs) = scheduler(EVERYTHING);
        (0..2).for_each(|_| submit(&mut scheduler, &specs[0]));
        let gpu = DeviceId(1);
        let rest = scheduler.ledger.free(gpu) - Bytes(300);
        scheduler.lease(Moment::START, &[(gpu, rest)]).unwrap();
        assert!(recalled(&mut scheduler, &specs[0]).is_some(), "all of what is free is enough");
        scheduler.lease(Moment::START, &[(gpu, Bytes(1))]).unwrap();
        assert_eq!(recalled(&mut scheduler, &specs[0]), None);
    }

    #[test]
    fn kinds_that_take_turns_are_all_remembered_and_of_too_many_the_latest() {
        let (mut scheduler, specs) = scheduler(EVERYTHING);
        let other = TaskSpec { ladder: Ladder::from(specs[0].ladder.rungs().to_vec()), ..specs[0].clone() };
        for (spec, known) in [(&specs[0], 0), (&other, 0), (&specs[0], 1), (&other, 2)] {
            submit(&mut scheduler, spec);
            assert_eq!(scheduler.memos.known.len(), known);
        }
        scheduler.things_changed();
        for params in 1..=10 {
            submit(&mut scheduler, &TaskSpec { session: SessionShape { params, shape: 0 }, ..specs[0].clone() });
        }
        let mut known: Vec<u64> = scheduler.memos.known.iter().map(|memo| memo.kind.session.params).collect();
        known.sort_unstable();
        assert_eq!(known, [3, 4, 5, 6, 7, 8, 9, 10]);
    }

    /// As time goes by it is forgotten, and nobody would say so.
    #[test]
    fn a_kind_of_which_a_failure_is_known_is_not_remembered() {
        let (mut scheduler, specs) = scheduler(EVERYTHING);
        let (key, gpu) = (session_key(&specs[0], &specs[0].ladder.rungs()[0]), DeviceId(1));
        assert!(scheduler.learn_ran_out(Moment::START, key, gpu, 1_000, Bytes(800), MemoryMoment::Run));
        (0..2).for_each(|_| submit(&mut scheduler, &specs[0]));
        assert!(scheduler.memos.known.is_empty());
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
