//! Held sessions step down for what is more urgent, lose nothing, and rise again.

use super::holds::{HELD, NOW, end, held, submit, take};
use super::{CPU, GPU, Nothing};
use crate::grant::{GrantOwner, GrantPhase, GrantRung, GrantSpec};
use crate::scheduler::SessionTurn;
use crate::{
    Bytes, DeviceKind, DeviceSet, Footprint, Ladder, Moment, Nanos, Place, Priority, Rung, Scheduler, TaskSpec,
};

/// After the pause that a session which stepped down has to keep.
const LATER: Moment = Moment(3_000_000_000);

/// A session of 400 bytes is open on the GPU, which has 1000.
fn open_at_depth_two() -> (Scheduler<Nothing>, TaskSpec) {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    assert!(end(&mut scheduler, &run, None));
    assert_eq!(scheduler.ledger().promised(GPU), Bytes(400));
    (scheduler, spec)
}

/// A task of the GPU alone.
fn large(spec: &TaskSpec, bytes: u64, priority: Priority) -> TaskSpec {
    let rung = Rung::new("large", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)));
    TaskSpec { ladder: Ladder::from(vec![rung]), sequence: None, holds: false, priority, ..spec.clone() }
}

/// The run that takes the state out of the held session.
fn step_down(scheduler: &mut Scheduler<Nothing>) {
    let leave = take(scheduler, GPU);
    assert!(leave.leaves, "the state is taken out first");
    end(scheduler, &leave, None);
}

#[test]
fn an_urgent_task_makes_a_held_session_step_down_one_rung_and_no_further() {
    let (mut scheduler, spec) = open_at_depth_two();
    let urgent = submit(&mut scheduler, &large(&spec, 700, Priority::High), 1)[0];
    step_down(&mut scheduler);
    let run = take(&mut scheduler, GPU);
    assert_eq!(run.task, urgent);
    // Its next task resumes on the rung below, beside the urgent one.
    submit(&mut scheduler, &spec, 1);
    let held = take(&mut scheduler, GPU);
    assert!(matches!(&held.session, SessionTurn::Resume(rung, ()) if rung.name == "depth 1"));
    end(&mut scheduler, &held, None);
    end(&mut scheduler, &run, None);
    assert_eq!(scheduler.ledger().holds(GPU), Bytes(200));
}

#[test]
fn a_task_that_is_no_more_urgent_steps_over_nobody() {
    let (mut scheduler, spec) = open_at_depth_two();
    submit(&mut scheduler, &large(&spec, 700, Priority::Normal), 1);
    assert!(scheduler.take(NOW, GPU).is_none());
    assert!(scheduler.take(NOW, GPU).is_none(), "the session was not asked");
    assert_eq!(scheduler.ledger().holds(GPU), Bytes(400));
}

#[test]
fn a_waiting_grant_is_given_what_a_session_gives_back() {
    let (mut scheduler, _) = open_at_depth_two();
    let ladder = vec![GrantRung::new(&[(GPU, Bytes(900))])];
    let wanted = GrantSpec { priority: Priority::Critical, ..GrantSpec::new(GrantOwner::Caller, ladder) };
    let grant = scheduler.request(NOW, wanted).unwrap();
    assert_eq!(scheduler.grant(grant).unwrap().phase, GrantPhase::Waiting);
    step_down(&mut scheduler);
    assert_eq!(scheduler.grant(grant).unwrap().phase, GrantPhase::Held, "depth 1 is not enough, so it went to the CPU");
    scheduler.check_invariants().unwrap();
}

#[test]
fn nobody_is_asked_where_no_lower_rung_can_run() {
    let (mut scheduler, spec) = held();
    let only_gpu = TaskSpec { devices: DeviceSet::only(GPU), ..spec.clone() };
    submit(&mut scheduler, &only_gpu, 1);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    submit(&mut scheduler, &large(&spec, 900, Priority::High), 1);
    assert!(scheduler.take(NOW, GPU).is_none());
    assert!(scheduler.take(NOW, GPU).is_none(), "depth 1 would not be enough, and the CPU is not allowed");
    assert_eq!(scheduler.ledger().holds(GPU), Bytes(400));
}

#[test]
fn a_session_rises_again_once_there_is_room() {
    let (mut scheduler, spec) = open_at_depth_two();
    submit(&mut scheduler, &large(&spec, 700, Priority::High), 1);
    step_down(&mut scheduler);
    let urgent = take(&mut scheduler, GPU);
    submit(&mut scheduler, &spec, 3);
    let low = take(&mut scheduler, GPU);
    end(&mut scheduler, &low, None);
    end(&mut scheduler, &urgent, None);
    let run = take(&mut scheduler, GPU);
    assert!(matches!(run.session, SessionTurn::Warm(())), "not at once: whoever needed the bytes may be back");
    let outcome = crate::scheduler::Outcome { result: Ok(()), session: Some(()), measured: Default::default() };
    scheduler.settle(LATER, run.run, outcome);
    let leave = scheduler.take(LATER, GPU).unwrap();
    assert!(leave.leaves);
    end(&mut scheduler, &leave, None);
    let run = take(&mut scheduler, GPU);
    assert!(matches!(&run.session, SessionTurn::Resume(rung, ()) if rung.name == "depth 2"));
}

#[test]
fn what_a_sequence_holds_itself_is_not_held_by_others() {
    let (mut scheduler, mut spec) = held();
    let footprint = Footprint { session: Bytes(600), task: Bytes(300), reference: Bytes::ZERO };
    spec.ladder = Ladder::from(vec![Rung::new("all", Place::On(DeviceKind::Gpu), footprint)]);
    scheduler.teach(spec.workload, "all", GPU, 10, Nanos::millis(1));
    submit(&mut scheduler, &spec, 2);
    for _ in 0..2 {
        let run = take(&mut scheduler, GPU);
        let why = scheduler.why(NOW, &spec);
        assert!(why.iter().any(|candidate| candidate.estimate.is_some()), "{why:?}");
        end(&mut scheduler, &run, None);
    }
    assert!(scheduler.take(NOW, CPU).is_none());
    scheduler.close_hold(NOW, HELD);
    scheduler.check_at_rest().unwrap();
}

#[test]
fn what_others_need_never_leaves_a_sequence_without_a_rung() {
    let (mut scheduler, spec) = open_at_depth_two();
    submit(&mut scheduler, &large(&spec, 950, Priority::High), 1);
    step_down(&mut scheduler);
    let urgent = take(&mut scheduler, GPU);
    end(&mut scheduler, &urgent, None);
    // The CPU, where it should have gone on, is no longer there.
    scheduler.device_faulted(NOW, CPU, crate::Ailment::Lost);
    let next = submit(&mut scheduler, &spec, 1)[0];
    let run = take(&mut scheduler, GPU);
    assert_eq!(run.task, next);
    assert!(matches!(&run.session, SessionTurn::Resume(rung, ()) if rung.name == "depth 2"));
}
