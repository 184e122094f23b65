//! Memo: the candidates of the task that was chosen for last. Tasks come in runs of the same kind, and between two of
//! them, handed in together, nothing but the queues has changed.
//! Never outlives a change of anything else a choice depends on: whoever changes it calls `things_changed`. Time alone
//! does not: a remembered failure that expires counts until the next run starts or ends.
//! Invariant: with or without the memo the choice is the same (`tests::the_memo_never_changes_a_choice`).

use smallvec::SmallVec;

use super::choose::{Choice, Possible, guesses_hold};
use super::state::TaskState;
use super::{Host, Scheduler};
use crate::task::{Priority, SessionShape, TaskSpec};
use crate::{DeviceSet, Ladder, Moment, Quality, WorkloadId};

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

/// The candidates of one kind of task, all of them with free memory and with figures that hold.
#[derive(Clone, Debug)]
pub(super) struct Memo {
    kind: Kind,
    candidates: SmallVec<[Choice; 4]>,
}

impl<H: Host> Scheduler<H> {
    /// Something changed that candidates depend on beyond the queues.
    pub(super) fn things_changed(&mut self) {
        self.memo = None;
    }

    /// Whether all that this task's candidates depend on is in its kind.
    fn is_plain(state: &TaskState<H::Job>) -> bool {
        state.spec.references.is_empty() && state.attempts.is_empty() && state.spec.sequence.is_none()
    }

    /// The choice from the memo, if it is of this kind; only how long each device would keep it waiting is asked anew.
    pub(super) fn recall_choice(&self, now: Moment, state: &TaskState<H::Job>) -> Option<Choice> {
        let memo = self.memo.as_ref().filter(|memo| Self::is_plain(state) && memo.kind.is(&state.spec))?;
        let mut best: Option<Choice> = None;
        for &candidate in &memo.candidates {
            let mut choice = candidate;
            choice.estimate.wait = self.device(choice.device).wait(now, state.spec.priority);
            if best.is_none_or(|best| choice.order() < best.order()) {
                best = Some(choice);
            }
        }
        best
    }

    /// What to remember of these candidates, and of the ladder they are on. Worth it only for the second task of a kind
    /// in a row, and only if none of them would have to wait for memory or is about to be tried.
    pub(super) fn memo_of(&self, state: &TaskState<H::Job>, possible: &[Possible]) -> (Option<Memo>, Option<usize>) {
        let ladder = Some(state.spec.ladder.address());
        let candidates = possible.iter().map(|possible| possible.choice);
        let fits = |choice: Choice| choice.estimate.bytes <= self.ledger.free(choice.device);
        let worth_it = ladder == self.memo_hint
            && Self::is_plain(state)
            && guesses_hold(possible)
            && !state.spec.ladder.has_several_qualities()
            && candidates.clone().all(fits);
        (worth_it.then(|| Memo { kind: Kind::of(&state.spec), candidates: candidates.collect() }), ladder)
    }
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
        scheduler.memo.is_some()
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
                        let memo = scheduler.memo.take();
                        prop_assert_eq!(scheduler.choose(now, id), remembered);
                        scheduler.memo = memo;
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
