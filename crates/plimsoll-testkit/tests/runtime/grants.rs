//! Grants as programs hold them: they wait, are recalled, step down, and are free when that is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use plimsoll_core::{
    Bytes, DeviceId, Footprint, GrantError, GrantOwner, GrantRung, Priority, Quality, ShortfallError, StepError,
};
use plimsoll_runtime::{Grant, GrantRequest, GrantWaitError, Orchestrator, PendingGrant, Registered, Shutdown, Task};

use crate::bounded::{Gate, PATIENCE, bounded, eventually, within};
use crate::scripted::{FIRST, Piece, SECOND, Scripted, anywhere, as_device, virtual_gpu};

const LONG: Duration = Duration::from_secs(600);
const NO_TIME: Duration = Duration::ZERO;

/// Two GPUs of 100 MiB each.
fn two_gpus() -> (Orchestrator, Registered<Scripted>) {
    two_gpus_with_recall_within(LONG)
}

fn two_gpus_with_recall_within(span: Duration) -> (Orchestrator, Registered<Scripted>) {
    let gpus = ["a", "b"].map(|name| virtual_gpu(name, |gpu| gpu.memory(Bytes::mib(100))));
    let builder = Orchestrator::builder().devices(gpus.iter().map(as_device)).margin(1.0);
    let orchestrator = builder.memory_wait_max(LONG).recall_within(span).build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

fn mib(device: DeviceId, bytes: u64) -> [(DeviceId, Bytes); 1] {
    [(device, Bytes::mib(bytes))]
}

fn promised(orchestrator: &Orchestrator) -> Vec<Bytes> {
    orchestrator.reports().iter().map(|report| report.promised).collect()
}

/// A task for the first device that holds so much while it runs.
fn task(value: u64, bytes: u64) -> Task<Scripted> {
    Task::new(Piece::new(value).ladder(anywhere(Footprint::task(Bytes::mib(bytes))))).devices([FIRST])
}

#[track_caller]
fn given(pending: PendingGrant) -> Grant {
    pending.wait(PATIENCE).unwrap_or_else(|not| panic!("{not:?}"))
}

#[track_caller]
fn still_waits(pending: PendingGrant) -> PendingGrant {
    match pending.wait(NO_TIME) {
        Err(GrantWaitError::StillWaiting(pending)) => pending,
        Err(GrantWaitError::Refused(refusal)) => panic!("{refusal}"),
        Ok(grant) => panic!("it is given: {grant:?}"),
    }
}

#[test]
fn the_best_rung_that_fits_is_given_and_dropping_it_gives_it_to_the_next() {
    bounded(|| {
        let (orchestrator, _work) = two_gpus();
        let half = GrantRung::new(&mib(FIRST, 50)).with_quality(Quality::new(0.5));
        let request = GrantRequest::new(&mib(FIRST, 80)).or_rung(half);
        let first = given(orchestrator.grant(GrantRequest::new(&mib(FIRST, 40))).unwrap());
        let second = given(orchestrator.grant(request.clone()).unwrap());
        assert_eq!((second.rung(), second.portions()), (1, mib(FIRST, 50).to_vec()));
        let third = still_waits(orchestrator.grant(request).unwrap());
        drop(first);
        let third = given(third);
        assert_eq!(third.rung(), 1);
        drop((second, third));
        assert_eq!(promised(&orchestrator), [Bytes::ZERO, Bytes::ZERO]);
    });
}

#[test]
fn a_grant_waits_for_the_run_that_holds_its_bytes() {
    bounded(|| {
        let (orchestrator, work) = two_gpus();
        let (entered, leave) = (Gate::default(), Gate::default());
        let piece = Piece::new(1).ladder(anywhere(Footprint::task(Bytes::mib(60)))).held(&entered, &leave);
        let busy = orchestrator.submit(&work, Task::new(piece).devices([FIRST])).unwrap();
        entered.pass();
        let pending = still_waits(orchestrator.grant(GrantRequest::new(&mib(FIRST, 70))).unwrap());
        let waiter = thread::spawn(move || given(pending).portions());
        leave.open();
        within(busy, "the run").unwrap();
        assert_eq!(waiter.join().unwrap(), mib(FIRST, 70));
    });
}

/// What had to go for it is closed before its owner may use the bytes.
#[test]
fn idle_sessions_are_closed_before_a_grant_is_handed_over() {
    bounded(|| {
        let (orchestrator, work) = two_gpus();
        let closed = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&closed);
        let footprint = Footprint { session: Bytes::mib(70), ..Footprint::default() };
        let piece = Piece::new(1).ladder(anywhere(footprint)).session_drop(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        orchestrator.run(&work, Task::new(piece).devices([FIRST])).unwrap();
        let pending = orchestrator.grant(GrantRequest::new(&mib(FIRST, 50))).unwrap();
        assert_eq!(promised(&orchestrator)[0], Bytes::mib(50));
        let _grant = given(pending);
        assert_eq!(closed.load(Ordering::SeqCst), 1);
    });
}

/// Nobody ever asks for it: what had to go is closed all the same.
#[test]
fn a_claim_that_is_dropped_closes_what_it_was_given() {
    bounded(|| {
        let (orchestrator, work) = two_gpus();
        let closed = Gate::default();
        let told = closed.clone();
        let footprint = Footprint { session: Bytes::mib(70), ..Footprint::default() };
        let piece = Piece::new(1).ladder(anywhere(footprint)).session_drop(move || told.open());
        orchestrator.run(&work, Task::new(piece).devices([FIRST])).unwrap();
        drop(orchestrator.grant(GrantRequest::new(&mib(FIRST, 50))).unwrap());
        closed.pass();
        assert_eq!(promised(&orchestrator)[0], Bytes::ZERO);
    });
}

#[test]
fn dropping_a_claim_lets_those_behind_it_go_on() {
    bounded(|| {
        let (orchestrator, work) = two_gpus();
        let held = given(orchestrator.grant(GrantRequest::new(&mib(FIRST, 50))).unwrap());
        let large = still_waits(orchestrator.grant(GrantRequest::new(&mib(FIRST, 90))).unwrap());
        let small = still_waits(orchestrator.grant(GrantRequest::new(&mib(FIRST, 20))).unwrap());
        drop(large);
        let small = given(small);
        within(orchestrator.submit(&work, task(3, 30)).unwrap(), "a task beside them").unwrap();
        drop((held, small));
    });
}

#[test]
fn a_wait_ends_though_nothing_else_happens() {
    bounded(|| {
        let (orchestrator, _work) = two_gpus();
        let _held = orchestrator.lease(&mib(FIRST, 100)).unwrap();
        let request = GrantRequest::new(&mib(FIRST, 1)).patience(Duration::from_millis(50));
        let GrantWaitError::Refused(refusal) = orchestrator.grant(request).unwrap().wait(PATIENCE).unwrap_err() else {
            panic!("it still waits")
        };
        assert!(matches!(refusal, GrantError::NotInTime(ShortfallError::Granted { .. })), "{refusal}");
        let request = GrantRequest::new(&mib(FIRST, 1)).deadline(Duration::from_millis(50));
        assert!(matches!(orchestrator.grant(request).unwrap().wait(PATIENCE), Err(GrantWaitError::Refused(_))));
        let never = orchestrator.grant(GrantRequest::new(&mib(FIRST, 101))).err().unwrap();
        assert!(matches!(never, GrantError::NeverFits(_)), "{never}");
    });
}

#[test]
fn a_task_has_a_less_urgent_grant_recalled_and_runs_when_its_owner_steps_down() {
    bounded(|| {
        let (orchestrator, work) = two_gpus();
        let request = GrantRequest::new(&mib(FIRST, 90)).or(&mib(FIRST, 40)).priority(Priority::Low);
        let grant = given(orchestrator.grant(request).unwrap());
        assert_eq!(grant.recalled(), None);
        let waiting = orchestrator.submit(&work, task(7, 50)).unwrap();
        let recall = grant.wait_for_recall(PATIENCE).expect("the task needs it");
        assert_eq!((recall.to, recall.overdue), (Some(1), false));
        assert_eq!(grant.recalled(), Some(recall), "it stays so until it has stepped down");
        grant.step_to(1).unwrap();
        assert_eq!((grant.recalled(), grant.portions()), (None, mib(FIRST, 40).to_vec()));
        assert_eq!(within(waiting, "the task").unwrap().output.value, 7);
    });
}

#[test]
fn whoever_wants_to_be_called_is_called() {
    bounded(|| {
        let (orchestrator, _work) = two_gpus();
        let (heard, hears) = channel();
        let grant = given(orchestrator.grant(GrantRequest::new(&mib(FIRST, 90)).or(&mib(FIRST, 10))).unwrap());
        grant.on_recall(move |recall| heard.send(recall.to).unwrap());
        orchestrator.recall(grant.id(), Some(1), LONG).unwrap();
        assert_eq!(hears.recv_timeout(PATIENCE), Ok(Some(1)));
        orchestrator.recall(grant.id(), None, LONG).unwrap();
        assert_eq!(hears.recv_timeout(PATIENCE), Ok(None));
        let (heard, hears) = channel();
        grant.on_recall(move |recall| heard.send(recall.to).unwrap());
        assert_eq!(hears.recv_timeout(PATIENCE), Ok(None), "what was missed is told at once");
    });
}

#[test]
fn an_owner_that_does_nothing_is_told_that_its_time_is_over_and_keeps_its_bytes() {
    bounded(|| {
        let (orchestrator, work) = two_gpus_with_recall_within(Duration::from_millis(50));
        let request = GrantRequest::new(&mib(FIRST, 90)).priority(Priority::Background);
        let grant = given(orchestrator.grant(request).unwrap());
        let waiting = orchestrator.submit(&work, task(7, 50)).unwrap();
        eventually("it is overdue", || grant.recalled().is_some_and(|recall| recall.overdue && recall.to.is_none()));
        assert_eq!(promised(&orchestrator)[0], Bytes::mib(90), "nothing is taken by force");
        drop(grant);
        assert_eq!(within(waiting, "the task").unwrap().output.value, 7);
    });
}

#[test]
fn a_grant_moves_to_another_device_and_back() {
    bounded(|| {
        let (orchestrator, _work) = two_gpus();
        let request = GrantRequest::new(&mib(FIRST, 90)).or(&mib(SECOND, 50)).may_rise();
        let grant = given(orchestrator.grant(request).unwrap());
        assert_eq!(grant.step_to(1), Err(StepError::NotReserved { device: SECOND }));
        orchestrator.recall(grant.id(), Some(1), LONG).unwrap();
        assert_eq!(promised(&orchestrator), [Bytes::mib(90), Bytes::mib(50)], "it has both while it moves");
        grant.step_to(1).unwrap();
        assert_eq!(promised(&orchestrator), [Bytes::ZERO, Bytes::mib(50)]);
        let mut better = None;
        eventually("it may rise", || {
            better = better.or(grant.may_rise());
            better.is_some()
        });
        assert_eq!(better, Some(0));
        grant.begin_step(0).unwrap();
        grant.step_to(0).unwrap();
        assert_eq!((grant.rung(), promised(&orchestrator)), (0, vec![Bytes::mib(90), Bytes::ZERO]));
    });
}

/// Another program's bytes are free when the driver says so, although nothing else is going on.
#[test]
fn what_another_program_gives_back_is_waited_for_until_the_driver_says_that_it_is_free() {
    bounded(|| {
        let gpu = virtual_gpu("shared", |gpu| gpu.memory(Bytes::mib(100)));
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).margin(1.0).return_wait_max(LONG).build();
        let request = GrantRequest::new(&mib(FIRST, 80)).owner(GrantOwner::Program(42));
        let program = given(orchestrator.grant(request).unwrap());
        gpu.occupy(Bytes::mib(80));
        let pending = orchestrator.grant(GrantRequest::new(&mib(FIRST, 90))).unwrap();
        drop(program);
        let pending = still_waits(pending);
        let reads = || orchestrator.reports()[0].line == Bytes::mib(100);
        eventually("what it uses is not counted twice", reads);
        let pending = still_waits(pending);
        gpu.occupy(Bytes::ZERO);
        assert_eq!(given(pending).portions(), mib(FIRST, 90));
    });
}

#[test]
fn a_program_that_never_frees_what_it_gave_back_is_a_stranger_after_a_while() {
    bounded(|| {
        let gpu = virtual_gpu("shared", |gpu| gpu.memory(Bytes::mib(100)));
        let builder = Orchestrator::builder().device(as_device(&gpu)).margin(1.0);
        let orchestrator = builder.return_wait_max(Duration::from_millis(300)).build();
        let request = GrantRequest::new(&mib(FIRST, 80)).owner(GrantOwner::Program(42));
        let program = given(orchestrator.grant(request).unwrap());
        gpu.occupy(Bytes::mib(80));
        drop(program);
        eventually("the line shows what it has", || {
            let report = &orchestrator.reports()[0];
            (report.promised, report.line) == (Bytes::ZERO, Bytes::mib(20))
        });
    });
}

#[test]
fn shutting_down_refuses_those_who_wait_and_leaves_what_is_held() {
    bounded(|| {
        let (orchestrator, _work) = two_gpus();
        let held = given(orchestrator.grant(GrantRequest::new(&mib(FIRST, 60))).unwrap());
        let pending = still_waits(orchestrator.grant(GrantRequest::new(&mib(FIRST, 60))).unwrap());
        let waiter = thread::spawn(move || pending.wait(PATIENCE).map(|grant| grant.portions()));
        orchestrator.shutdown(Shutdown::Cancel);
        let refused = waiter.join().unwrap().unwrap_err();
        assert!(matches!(refused, GrantWaitError::Refused(GrantError::ShuttingDown)), "{refused:?}");
        assert_eq!(held.portions(), mib(FIRST, 60));
        drop(held);
    });
}

/// Many owners over crossing sets of devices, with tasks beside them: everybody gets his turn, and all comes back.
#[test]
fn many_owners_and_tasks_get_their_turns() {
    bounded(|| {
        let (orchestrator, work) = two_gpus_with_recall_within(Duration::from_millis(1));
        thread::scope(|scope| {
            for owner in 0..8_u64 {
                let orchestrator = &orchestrator;
                scope.spawn(move || {
                    let priority = [Priority::Low, Priority::Normal, Priority::High][owner as usize % 3];
                    let (one, other) = if owner % 2 == 0 { (FIRST, SECOND) } else { (SECOND, FIRST) };
                    for _ in 0..20 {
                        let request = GrantRequest::new(&[(one, Bytes::mib(60)), (other, Bytes::mib(30 + owner))]);
                        let request = request.or(&mib(one, 20 + owner)).priority(priority);
                        let grant = given(orchestrator.grant(request).unwrap());
                        if let Some(to) = grant.recalled().and_then(|recall| recall.to) {
                            grant.step_to(to).unwrap();
                        }
                    }
                });
            }
            let (orchestrator, work) = (&orchestrator, &work);
            scope.spawn(move || {
                for value in 0..100 {
                    let ticket = orchestrator.submit(work, task(value, 50)).unwrap();
                    assert_eq!(within(ticket, "a task beside grants").unwrap().output.value, value);
                }
            });
        });
        assert_eq!(promised(&orchestrator), [Bytes::ZERO, Bytes::ZERO]);
    });
}
