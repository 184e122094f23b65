//! Idle sessions and references make way for a task: which of them, how many, and who holds their bytes meanwhile.

use super::*;
use crate::event::What;
use crate::task::{ReferenceUse, SessionShape};
use crate::{ContentKey, WorkloadId};

/// A CPU of 1000 bytes without a margin.
fn machine() -> Scheduler<Nothing> {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let device = scheduler.add_device(exact(DeviceKind::Cpu, 2, 1_000));
    scheduler.device_opened(Moment::START, device);
    scheduler
}

fn taking(workload: WorkloadId, session: u64, task: u64, reference: u64) -> TaskSpec {
    let footprint = Footprint { session: Bytes(session), task: Bytes(task), reference: Bytes(reference) };
    TaskSpec::new(workload, Ladder::from(vec![Rung::new("any", Place::Anywhere, footprint)]), 10)
}

fn using(spec: &TaskSpec, contents: &[u128]) -> TaskSpec {
    let used = contents.iter().map(|content| ReferenceUse { content: ContentKey(*content), pinned: false });
    TaskSpec { references: used.collect(), ..spec.clone() }
}

fn shaped(spec: &TaskSpec, shape: u64) -> TaskSpec {
    TaskSpec { session: SessionShape { params: 0, shape }, ..spec.clone() }
}

fn begin(scheduler: &mut Scheduler<Nothing>, spec: TaskSpec) -> Option<Assignment<Nothing>> {
    let references = spec.references.len();
    scheduler.submit(Moment(1), spec, ()).unwrap();
    let run = scheduler.take(Moment(1), CPU)?;
    (0..references).for_each(|at| scheduler.prepared(run.run, at, ()));
    Some(run)
}

fn run(scheduler: &mut Scheduler<Nothing>, spec: TaskSpec) {
    let run = begin(scheduler, spec).expect("it fits");
    settle(scheduler, Moment(1), &run, None);
}

#[test]
fn a_task_needs_its_session_and_every_reference_that_is_not_there() {
    for (outside, starts) in [(0, true), (1, false)] {
        let mut scheduler = machine();
        let spec = taking(scheduler.register("w"), 300, 300, 200);
        let (_lease, _) = scheduler.lease(Moment(1), &[(CPU, Bytes(outside))]).unwrap();
        let run = begin(&mut scheduler, using(&spec, &[1, 2]));
        assert_eq!(run.is_some(), starts, "1000 of {}", 1_000 - outside);
        let promised = if starts { 1_000 } else { outside };
        assert_eq!(scheduler.ledger().promised(CPU), Bytes(promised));
    }
}

#[test]
fn sessions_and_references_go_together_if_they_must_and_listeners_hear_of_it() {
    let mut scheduler = machine();
    let spec = taking(scheduler.register("w"), 300, 0, 200);
    run(&mut scheduler, using(&spec, &[1, 2]));
    let large = taking(scheduler.register("large"), 0, 1_000, 0);
    scheduler.listen(true);
    let large = begin(&mut scheduler, large).expect("once everything idle is gone");
    assert_eq!((large.discards.sessions.len(), large.discards.references.len()), (1, 2));
    let evicted = What::Evicted { device: CPU, sessions: 1, references: 2 };
    let events = scheduler.drain_events();
    assert_eq!(events.iter().filter(|event| event.what == evicted).count(), 1);
    settle(&mut scheduler, Moment(2), &large, None);
    let small = taking(scheduler.register("small"), 0, 1, 0);
    begin(&mut scheduler, small).expect("it fits");
    let is_eviction = |what: &What| matches!(what, What::Evicted { .. });
    assert!(!scheduler.drain_events().iter().any(|event| is_eviction(&event.what)), "nothing had to go");
}

/// The bytes come back only when the run has closed what it was told to: until then nobody else may use them.
#[test]
fn whoever_evicts_holds_all_that_this_frees_until_it_settles() {
    let mut scheduler = machine();
    let spec = taking(scheduler.register("w"), 300, 0, 0);
    run(&mut scheduler, spec);
    let large = taking(scheduler.register("large"), 0, 800, 0);
    let run = begin(&mut scheduler, large).expect("it fits once the session is gone");
    assert_eq!(
        scheduler.ledger().promised(CPU),
        Bytes(1_000),
        "800, and 200 that the session held beyond what was missing"
    );
    settle(&mut scheduler, Moment(2), &run, None);
    assert_eq!(scheduler.ledger().promised(CPU), Bytes::ZERO);
}

#[test]
fn what_fits_exactly_evicts_nothing() {
    let mut scheduler = machine();
    let spec = taking(scheduler.register("w"), 300, 0, 0);
    run(&mut scheduler, spec);
    let exact = taking(scheduler.register("exact"), 0, 700, 0);
    assert!(begin(&mut scheduler, exact).expect("it fits").discards.is_empty());
}

/// Whether the session goes before the reference, when either would do.
fn session_goes_first(uses: impl FnOnce(&mut Scheduler<Nothing>, [TaskSpec; 2])) -> bool {
    let mut scheduler = machine();
    let with_session = taking(scheduler.register("session"), 400, 0, 0);
    let with_reference = using(&taking(scheduler.register("reference"), 0, 0, 400), &[1]);
    uses(&mut scheduler, [with_session, with_reference]);
    let other = taking(scheduler.register("other"), 0, 500, 0);
    let discards = begin(&mut scheduler, other).expect("it fits once one is gone").discards;
    assert_eq!(discards.sessions.len() + discards.references.len(), 1);
    discards.references.is_empty()
}

#[test]
fn what_was_used_longest_ago_goes_first_unless_a_handle_holds_it() {
    assert!(session_goes_first(|scheduler, [session, reference]| {
        run(scheduler, session);
        run(scheduler, reference);
    }));
    assert!(!session_goes_first(|scheduler, [session, reference]| {
        run(scheduler, reference);
        run(scheduler, session);
    }));
    assert!(session_goes_first(|scheduler, [session, reference]| {
        run(scheduler, reference);
        scheduler.pin(ContentKey(1));
        run(scheduler, session);
    }));
}

/// The next task of its kind would have to open it again, and must count with that.
#[test]
fn a_session_that_went_costs_its_opening_again() {
    let mut scheduler = machine();
    let spec = taking(scheduler.register("w"), 600, 0, 0);
    for _ in 0..3 {
        let run = begin(&mut scheduler, spec.clone()).expect("it fits");
        let measured = Measured { run: Nanos(1_000), open: Some(Nanos(500)), ..Measured::default() };
        scheduler.settle(Moment(1), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    }
    let other = shaped(&taking(scheduler.register("other"), 0, 600, 0), 1);
    let other = begin(&mut scheduler, other).expect("it fits once the session is gone");
    settle(&mut scheduler, Moment(2), &other, None);
    assert_eq!(begin(&mut scheduler, spec).expect("it fits").estimate.open, Nanos(500));
}

#[test]
fn references_beyond_the_window_are_given_out_to_be_dropped() {
    let mut scheduler = machine();
    let spec = taking(scheduler.register("w"), 0, 0, 1);
    let contents: Vec<u128> = (0..crate::residency::WINDOW as u128 + 3).collect();
    run(&mut scheduler, using(&spec, &contents));
    assert!(scheduler.has_news());
    assert_eq!(scheduler.drain_discards().references.len(), 3);
}

/// A grant over two devices makes room on one after the other, and of each it is told what went there.
#[test]
fn what_went_is_told_for_each_device_by_itself() {
    let mut scheduler = a_box(Strategy::default(), 1);
    let spec = taking(scheduler.register("w"), 200, 0, 600);
    for device in [CPU, GPU] {
        scheduler
            .submit(Moment(1), TaskSpec { devices: crate::DeviceSet::only(device), ..using(&spec, &[1]) }, ())
            .unwrap();
        let run = scheduler.take(Moment(1), device).expect("it fits");
        scheduler.prepared(run.run, 0, ());
        settle(&mut scheduler, Moment(1), &run, None);
    }
    scheduler.listen(true);
    scheduler.lease(Moment(2), &[(CPU, Bytes(800)), (GPU, Bytes(800))]).unwrap();
    let went = |event: &crate::event::Event| match event.what {
        What::Evicted { device, sessions, references } => Some((device, sessions, references)),
        _ => None,
    };
    let went: Vec<_> = scheduler.drain_events().iter().filter_map(went).collect();
    assert_eq!(went, [(CPU, 1, 1), (GPU, 1, 1)]);
}
