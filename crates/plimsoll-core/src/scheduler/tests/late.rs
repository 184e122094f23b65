//! Faults that come when nobody waits for the result any more, or while other runs are under way.

use super::*;
use crate::error::{Attempt, Setback};
use crate::event::{FaultKind, What};
use crate::scheduler::{Order, Settled};
use crate::{Ailment, MemoryMoment, TaskId};

fn wrong() -> Fault {
    Fault::WrongAnswer { detail: "known to be wrong".to_owned() }
}

fn lost() -> Fault {
    Fault::DeviceLost { detail: "gone".to_owned() }
}

fn out_of_memory() -> Fault {
    Fault::OutOfMemory { moment: MemoryMoment::Run, wanted: Bytes(10) }
}

fn reopened_after(end: impl FnOnce(&mut Scheduler<Nothing>, Moment, TaskId), fault: Fault) -> bool {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = TaskSpec { deadline: Some(Moment(50)), ..spec(&mut scheduler, on_gpu(10)) };
    let task = scheduler.submit(Moment(1), spec, ()).unwrap();
    let run = start(&mut scheduler, Moment(2), GPU.0);
    end(&mut scheduler, Moment(60), task);
    settle(&mut scheduler, Moment(61), &run, Some(fault));
    scheduler.check_invariants().unwrap();
    !scheduler.health(GPU).is_well() && scheduler.drain_orders() == [Order::Reopen(GPU)]
}

#[test]
fn a_fault_of_the_device_counts_though_nobody_waits_for_the_result() {
    let cancel = |scheduler: &mut Scheduler<Nothing>, now, task| assert!(scheduler.cancel(now, task));
    let deadline = |scheduler: &mut Scheduler<Nothing>, now, _: TaskId| scheduler.tick(now);
    assert!(reopened_after(cancel, wrong()));
    assert!(reopened_after(cancel, lost()));
    assert!(reopened_after(deadline, wrong()));
    assert!(!reopened_after(cancel, Fault::Cancelled));
}

/// A GPU with two slots, and the CPU; two tasks run on the GPU.
fn two_runs() -> (Scheduler<Nothing>, [Assignment<Nothing>; 2]) {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    for kind in [DeviceKind::Cpu, DeviceKind::Gpu] {
        let device = scheduler.add_device(exact(kind, 2, 1_000));
        scheduler.device_opened(Moment::START, device);
    }
    let spec = spec(&mut scheduler, gpu_or_cpu());
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::micros(1));
    scheduler.teach(spec.workload, "cpu", CPU, 10, Nanos::seconds(1));
    let runs = [1, 2].map(|at| {
        scheduler.submit(Moment(at), spec.clone(), ()).unwrap();
        start(&mut scheduler, Moment(at), GPU.0)
    });
    (scheduler, runs)
}

fn settled(scheduler: &mut Scheduler<Nothing>, now: u64, run: &Assignment<Nothing>, result: Result<(), Fault>) -> bool {
    let measured = Measured { run: Nanos(1_000), ..Measured::default() };
    let settled = scheduler.settle(Moment(now), run.run, Outcome { result, session: None, measured });
    scheduler.check_invariants().unwrap();
    matches!(settled, Settled::Done(_))
}

#[test]
fn a_run_under_way_when_its_device_answered_wrongly_does_not_count() {
    let (mut scheduler, [first, second]) = two_runs();
    assert!(!settled(&mut scheduler, 3, &first, Err(wrong())));
    assert!(!settled(&mut scheduler, 4, &second, Ok(())), "who knows what it computed");
    assert_eq!(depths(&scheduler), [2, 0], "both are done again elsewhere");
    assert_eq!(scheduler.unsettled(), 2);
}

#[test]
fn a_run_under_way_when_its_device_stalled_elsewhere_counts() {
    let (mut scheduler, [_, second]) = two_runs();
    scheduler.device_faulted(Moment(3), GPU, Ailment::Stalled);
    assert!(settled(&mut scheduler, 4, &second, Ok(())));
}

#[test]
fn a_suspect_device_starts_and_delivers_nothing_until_it_is_cleared() {
    let (mut scheduler, [first, second]) = two_runs();
    let spec = spec(&mut scheduler, gpu_or_cpu());
    scheduler.submit(Moment(3), spec, ()).unwrap();
    let suspicion = scheduler.suspect(GPU);
    assert!(!settled(&mut scheduler, 4, &first, Err(out_of_memory())));
    assert!(scheduler.is_suspect(GPU));
    assert!(scheduler.take(Moment(4), GPU).is_none(), "nothing starts");
    scheduler.cleared(suspicion);
    assert!(scheduler.drain_wakes().contains(GPU));
    assert!(settled(&mut scheduler, 6, &second, Ok(())), "the check was passed, so it counts");
    assert!(scheduler.take(Moment(6), GPU).is_some());
}

#[test]
fn a_result_that_comes_while_its_device_is_suspect_does_not_count() {
    let (mut scheduler, [_, second]) = two_runs();
    let _ = scheduler.suspect(GPU);
    assert!(!settled(&mut scheduler, 4, &second, Ok(())));
    assert_eq!(scheduler.unsettled(), 2, "it is done again");
}

/// Two slots ran out of memory: both checks must be passed.
#[test]
fn every_check_must_be_passed() {
    let (mut scheduler, runs) = two_runs();
    let suspicions = runs.map(|run| {
        let suspicion = scheduler.suspect(GPU);
        settled(&mut scheduler, 4, &run, Err(out_of_memory()));
        suspicion
    });
    scheduler.cleared(suspicions[0]);
    assert!(scheduler.is_suspect(GPU));
    scheduler.cleared(suspicions[1]);
    assert!(!scheduler.is_suspect(GPU));
}

#[test]
fn a_device_that_fails_its_check_is_opened_again_and_is_then_no_longer_suspect() {
    let (mut scheduler, [first, second]) = two_runs();
    let suspicion = scheduler.suspect(GPU);
    settled(&mut scheduler, 4, &first, Err(out_of_memory()));
    scheduler.check_failed(Moment(5), suspicion, Ailment::Unproven);
    assert_eq!(scheduler.drain_orders(), [Order::Reopen(GPU)]);
    scheduler.device_opened(Moment(6), GPU);
    assert!(!scheduler.is_suspect(GPU) && scheduler.health(GPU).is_well());
    assert!(!settled(&mut scheduler, 7, &second, Ok(())), "it ran while nobody knew");
    let _ = scheduler.suspect(GPU);
    scheduler.cleared(suspicion);
    assert!(scheduler.is_suspect(GPU), "an old check says nothing of a new suspicion");
    scheduler.check_failed(Moment(8), suspicion, Ailment::WrongAnswer);
    assert!(scheduler.health(GPU).is_well(), "nor against it");
}

/// A run of before the quarantine ran out of memory, and its slot checks a device that is not well.
#[test]
fn a_check_that_fails_in_quarantine_leaves_no_suspicion_behind() {
    let (mut scheduler, [first, second]) = two_runs();
    assert!(!settled(&mut scheduler, 3, &first, Err(lost())));
    let suspicion = scheduler.suspect(GPU);
    scheduler.check_failed(Moment(4), suspicion, Ailment::Lost);
    assert!(!settled(&mut scheduler, 5, &second, Err(out_of_memory())));
    scheduler.device_opened(Moment(6), GPU);
    assert!(!scheduler.is_suspect(GPU), "it has proved itself since");
}

/// What was done while the device was under suspicion is done again, and the task's report says so.
#[test]
fn a_result_that_is_not_believed_is_an_attempt_like_others() {
    let (mut scheduler, [first, _]) = two_runs();
    let suspicion = scheduler.suspect(GPU);
    scheduler.listen(true);
    assert!(!settled(&mut scheduler, 3, &first, Ok(())));
    let is_told = |what: &What| matches!(what, What::AttemptFailed { fault: FaultKind::Distrusted, .. });
    assert!(scheduler.drain_events().iter().any(|event| is_told(&event.what)));
    scheduler.cleared(suspicion);
    let again = start(&mut scheduler, Moment(4), GPU.0);
    assert_eq!(again.task, first.task);
    let outcome = Outcome { result: Ok(()), session: None, measured: Measured::default() };
    let Settled::Done(report) = scheduler.settle(Moment(5), again.run, outcome) else { panic!("it is done") };
    assert!(matches!(report.attempts[..], [Attempt { device: GPU, setback: Setback::Distrusted, .. }]));
}
