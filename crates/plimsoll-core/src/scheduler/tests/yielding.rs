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

/// A held session on the first of these GPU rungs, each with so many bytes, and then perhaps one on the CPU.
fn open_on(rungs: &[(&'static str, u64)], cpu: Option<u64>) -> Scheduler<Nothing> {
    let (mut scheduler, mut spec) = held();
    let rung = |name, kind, session| {
        let footprint = Footprint { session: Bytes(session), ..Footprint::default() };
        Rung::new(name, Place::On(kind), footprint)
    };
    let on_gpu = rungs.iter().map(|&(name, bytes)| rung(name, DeviceKind::Gpu, bytes));
    let rungs: Vec<Rung> = on_gpu.chain(cpu.map(|bytes| rung("cpu", DeviceKind::Cpu, bytes))).collect();
    spec.ladder = Ladder::from(rungs);
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    scheduler
}

#[test]
fn a_session_goes_no_further_down_than_is_needed_and_never_for_nothing() {
    let step = |scheduler: &Scheduler<Nothing>, missing: u64| {
        scheduler.yield_step(HELD, GPU, Bytes(missing)).map(|step| (step.to, step.frees.1.0))
    };
    let rungs = [("wide", 400), ("as wide", 400), ("narrow", 200), ("as narrow", 200)];
    let scheduler = open_on(&rungs, Some(1_000));
    assert_eq!(step(&scheduler, 150), Some(("narrow", 200)));
    assert_eq!(step(&scheduler, 200), Some(("narrow", 200)), "just enough");
    assert_eq!(step(&scheduler, 201), Some(("cpu", 400)), "all of the CPU's memory is enough for it");
    let scheduler = open_on(&rungs, Some(1_001));
    assert_eq!(step(&scheduler, 201), Some(("narrow", 200)), "what never fits on the CPU is no way out");
    let scheduler = open_on(&rungs[..2], None);
    assert_eq!(step(&scheduler, 1), None);
}

#[test]
fn what_a_session_was_asked_for_is_known_to_come_back() {
    let (mut scheduler, spec) = open_at_depth_two();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    assert_eq!(scheduler.coming_back_from_holds(GPU), Bytes::ZERO);
    assert!(scheduler.make_yield(NOW, HELD, "depth 1"));
    assert_eq!([GPU, CPU].map(|device| scheduler.coming_back_from_holds(device)), [Bytes(200), Bytes::ZERO]);
    end(&mut scheduler, &run, None);
}

const PAUSE: u64 = 1_000_000_000;

/// A session that stepped down from 400 to 200 bytes at `NOW`, and whose owner goes on with it.
fn stepped_down() -> (Scheduler<Nothing>, TaskSpec) {
    let (mut scheduler, spec) = open_at_depth_two();
    assert!(scheduler.make_yield(NOW, HELD, "depth 1"));
    step_down(&mut scheduler);
    (scheduler, spec)
}

/// Whether the session takes its state out again after one more task that ends at a moment.
fn rises_after(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec, now: u64) -> bool {
    submit(scheduler, spec, 1);
    let run = take(scheduler, GPU);
    let outcome = crate::scheduler::Outcome { result: Ok(()), session: Some(()), measured: Default::default() };
    scheduler.settle(Moment(now), run.run, outcome);
    scheduler.holds.get(HELD).expect("it is held").leaving.is_some()
}

#[test]
fn a_session_that_stepped_down_stays_there_for_a_second() {
    for (now, rises) in [(PAUSE, false), (NOW.0 + PAUSE, true)] {
        let (mut scheduler, spec) = stepped_down();
        assert_eq!(rises_after(&mut scheduler, &spec, now), rises, "at {now}");
    }
}

/// The better rung takes 410 of 1000, and what the session has now comes back.
#[test]
fn a_session_rises_only_where_the_better_rung_fits_beside_what_others_hold() {
    for (others, rises) in [(700, false), (500, true)] {
        let (mut scheduler, spec) = stepped_down();
        scheduler.lease(NOW, &[(GPU, Bytes(others))]).unwrap();
        assert_eq!(rises_after(&mut scheduler, &spec, NOW.0 + PAUSE), rises, "{others} held by others");
    }
}

#[test]
fn a_session_that_found_no_room_asks_again_after_another_second() {
    let (mut scheduler, spec) = stepped_down();
    let (lease, _) = scheduler.lease(NOW, &[(GPU, Bytes(700))]).unwrap();
    assert!(!rises_after(&mut scheduler, &spec, NOW.0 + PAUSE));
    scheduler.return_grant(NOW, lease);
    assert!(!rises_after(&mut scheduler, &spec, NOW.0 + 2 * PAUSE - 1));
    assert!(rises_after(&mut scheduler, &spec, NOW.0 + 2 * PAUSE));
}
