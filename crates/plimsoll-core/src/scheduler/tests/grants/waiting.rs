//! Who waits, in which order, and beside tasks.

use super::*;
use crate::{GrantError, ShortfallError};

#[test]
fn a_grant_that_fits_is_given_at_once_and_returned_once() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, on_a(&[600]));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
    assert_eq!((phase(&scheduler, id), promised(&scheduler)), (Some(GrantPhase::Held), [600, 0, 0]));
    assert!(scheduler.return_grant(Moment(2), id));
    assert!(!scheduler.return_grant(Moment(2), id), "a second return changes nothing");
    assert_eq!((phase(&scheduler, id), promised(&scheduler)), (None, [0, 0, 0]));
    let next = ask(&mut scheduler, 3, on_a(&[600]));
    assert!(!scheduler.return_grant(Moment(4), id), "an old id never means a new grant");
    assert_eq!(phase(&scheduler, next), Some(GrantPhase::Held));
}

#[test]
fn the_best_rung_that_fits_is_given() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, on_a(&[600]));
    let id = ask(&mut scheduler, 2, on_a(&[900, 500, 300, 200]));
    assert_eq!(heard(&mut scheduler)[1..], ["grant 2 holds rung 2"]);
    let status = scheduler.grant(id).unwrap();
    assert_eq!((status.rung, &status.promised[..]), (Some(2), &[(A, Bytes(300))][..]));
}

#[test]
fn those_who_wait_are_given_in_the_order_of_priority_age_and_deadline() {
    let mut scheduler = three_gpus();
    let first = ask(&mut scheduler, 0, on_a(&[1_000]));
    let second = Moment(Nanos::seconds(1).0);
    ask(&mut scheduler, 1, on_a(&[700]));
    ask(&mut scheduler, 3, with(Priority::High, on_a(&[700])));
    ask(&mut scheduler, 5, GrantSpec { deadline: Some(second), ..on_a(&[700]) });
    ask(&mut scheduler, 6, on_a(&[700]));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0", "grant 1 should leave"], "for the urgent one");
    let mut order = Vec::new();
    let mut holds = Some(first);
    while let Some(id) = holds {
        scheduler.return_grant(Moment(9), id);
        order.extend(heard(&mut scheduler));
        holds = scheduler.grants().find(|id| phase(&scheduler, *id) == Some(GrantPhase::Held));
    }
    // A deadline counts as one level at the most, so it comes between.
    assert_eq!(order, [3, 4, 2, 5].map(|id| format!("grant {id} holds rung 0")));
}

/// What is free is not enough for the first; a later one that would fit does not go before it on the same device.
#[test]
fn nobody_overtakes_on_a_device_that_somebody_waits_for() {
    let mut scheduler = three_gpus();
    let held = ask(&mut scheduler, 1, on_a(&[500]));
    let large = ask(&mut scheduler, 2, on_a(&[900]));
    let small = ask(&mut scheduler, 3, on_a(&[100]));
    let elsewhere = ask(&mut scheduler, 4, GrantSpec::new(GrantOwner::Caller, vec![rung(&[(B, 100)])]));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0", "grant 4 holds rung 0"]);
    assert!(scheduler.cancel_grant(Moment(5), large));
    assert_eq!(heard(&mut scheduler), ["grant 3 holds rung 0"], "it waited for the large one alone");
    assert!(!scheduler.cancel_grant(Moment(6), small), "it is given already");
    for id in [held, small, elsewhere] {
        assert!(scheduler.return_grant(Moment(7), id));
    }
    assert_eq!(promised(&scheduler), [0, 0, 0]);
}

#[test]
fn two_grants_over_crossing_sets_of_devices_both_get_theirs_in_turn() {
    let mut scheduler = three_gpus();
    let over =
        |devices: [DeviceId; 2]| GrantSpec::new(GrantOwner::Caller, vec![rung(&devices.map(|device| (device, 600)))]);
    let held = ask(&mut scheduler, 1, over([B, A]));
    let first = ask(&mut scheduler, 2, over([C, B]));
    let second = ask(&mut scheduler, 3, over([A, C]));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
    assert_eq!(promised(&scheduler), [600, 600, 0], "who waits holds nothing");
    scheduler.return_grant(Moment(4), held);
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
    assert_eq!(promised(&scheduler), [0, 600, 600]);
    scheduler.return_grant(Moment(5), first);
    assert_eq!(heard(&mut scheduler), ["grant 3 holds rung 0"]);
    assert_eq!((phase(&scheduler, second), promised(&scheduler)), (Some(GrantPhase::Held), [600, 0, 600]));
}

/// However many small tasks come after it: what becomes free is kept for the grant.
#[test]
fn a_stream_of_small_tasks_does_not_starve_a_grant() {
    let mut scheduler = three_gpus();
    let small = task_on_a(&mut scheduler, 300);
    let mut runs = std::collections::VecDeque::new();
    for _ in 0..2 {
        scheduler.submit(Moment(1), small.clone(), ()).unwrap();
        runs.push_back(start(&mut scheduler, Moment(1), A.0));
    }
    ask(&mut scheduler, 2, on_a(&[900]));
    assert!(heard(&mut scheduler).is_empty());
    let mut given_after = None;
    for at in 3..10 {
        scheduler.submit(Moment(at), small.clone(), ()).unwrap();
        let run = runs.pop_front().expect("two ran");
        settle(&mut scheduler, Moment(at), &run, None);
        runs.extend(scheduler.take(Moment(at), A));
        if !heard(&mut scheduler).is_empty() {
            given_after = Some(at);
            break;
        }
    }
    assert_eq!(given_after, Some(4), "when the two that ran before it have ended");
    assert!(scheduler.take(Moment(11), A).is_none(), "300 do not fit beside it");
}

/// Nothing stays kept for somebody who has gone.
#[test]
fn a_wait_that_is_cancelled_lets_tasks_go_on() {
    let mut scheduler = three_gpus();
    let work = task_on_a(&mut scheduler, 500);
    scheduler.submit(Moment(1), work.clone(), ()).unwrap();
    let _run = start(&mut scheduler, Moment(1), A.0);
    let id = ask(&mut scheduler, 2, on_a(&[900]));
    scheduler.submit(Moment(3), work, ()).unwrap();
    assert!(scheduler.take(Moment(3), A).is_none());
    scheduler.drain_wakes();
    scheduler.cancel_grant(Moment(4), id);
    assert!(scheduler.drain_wakes().contains(A));
    assert!(scheduler.take(Moment(4), A).is_some());
}

/// A task that fits beside what is kept need not wait.
#[test]
fn what_fits_beside_a_grant_that_waits_starts() {
    let mut scheduler = three_gpus();
    let (large, small) = (task_on_a(&mut scheduler, 500), task_on_a(&mut scheduler, 100));
    scheduler.submit(Moment(1), large, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), A.0);
    ask(&mut scheduler, 2, on_a(&[600]));
    scheduler.submit(Moment(3), small, ()).unwrap();
    assert!(scheduler.take(Moment(3), A).is_none(), "600 are kept, and 500 promised: nothing is free");
    settle(&mut scheduler, Moment(4), &run, None);
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
    assert!(scheduler.take(Moment(4), A).is_some());
}

/// A more urgent task comes before the grant that waits: nothing is kept from it.
#[test]
fn a_task_that_comes_first_goes_first() {
    let mut scheduler = three_gpus();
    let work = task_on_a(&mut scheduler, 500);
    let urgent = TaskSpec { priority: Priority::High, ..work.clone() };
    scheduler.submit(Moment(1), work.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), A.0);
    ask(&mut scheduler, 2, on_a(&[800]));
    scheduler.submit(Moment(3), work, ()).unwrap();
    assert!(scheduler.take(Moment(3), A).is_none(), "as urgent, and later");
    let urgent = scheduler.submit(Moment(4), urgent, ()).unwrap();
    let first = start(&mut scheduler, Moment(4), A.0);
    assert_eq!(first.task, urgent);
    settle(&mut scheduler, Moment(5), &run, None);
    assert!(heard(&mut scheduler).is_empty(), "the urgent one runs");
    assert!(scheduler.take(Moment(5), A).is_none(), "and the later one still waits behind the grant");
}

/// A grant does not take for good what a task before it in the queue waits for.
#[test]
fn a_grant_leaves_enough_for_the_tasks_before_it() {
    let mut scheduler = three_gpus();
    let (runs, waits) = (task_on_a(&mut scheduler, 500), task_on_a(&mut scheduler, 800));
    scheduler.submit(Moment(1), runs, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), A.0);
    scheduler.submit(Moment(2), waits.clone(), ()).unwrap();
    assert!(scheduler.take(Moment(2), A).is_none());
    ask(&mut scheduler, 3, on_a(&[300]));
    assert!(heard(&mut scheduler).is_empty(), "300 are free, but 800 would not fit beside them");
    ask(&mut scheduler, 3, GrantSpec { patience: Nanos::ZERO, ..with(Priority::Critical, on_a(&[200])) });
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"], "what comes before it does not wait");
    settle(&mut scheduler, Moment(4), &run, None);
    let large = start(&mut scheduler, Moment(4), A.0);
    assert!(heard(&mut scheduler).is_empty());
    settle(&mut scheduler, Moment(5), &large, None);
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
}

#[test]
fn a_wait_ends_with_patience_and_with_the_deadline() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 0, on_a(&[1_000]));
    heard(&mut scheduler);
    ask(&mut scheduler, 1, GrantSpec { patience: Nanos(50), ..on_a(&[400, 200]) });
    ask(&mut scheduler, 1, GrantSpec { deadline: Some(Moment(30)), patience: Nanos(50), ..on_a(&[400]) });
    ask(&mut scheduler, 1, on_a(&[400]));
    assert_eq!(scheduler.next_tick(), Some(Moment(30)));
    scheduler.tick(Moment(29));
    assert!(heard(&mut scheduler).is_empty());
    scheduler.tick(Moment(30));
    assert_eq!(heard(&mut scheduler).len(), 1);
    scheduler.tick(Moment(51));
    let refused = heard(&mut scheduler);
    assert_eq!(
        refused,
        [
            "grant 2 is refused: 200 B does not fit now: 0 B free under the line on device 0, a caller holds 1000 B by a \
          grant; wait longer, ask for less, or ask with a higher priority"
        ]
    );
    assert_eq!(scheduler.next_tick(), None, "the last waits as long as it takes");
}

#[test]
fn what_cannot_be_had_is_refused_at_once() {
    let mut scheduler = three_gpus();
    let mut refused = |spec: GrantSpec| scheduler.request(Moment(1), spec).unwrap_err();
    let never = ShortfallError::NeverFits { device: A, wanted: Bytes(1_001), line: Bytes(1_000) };
    assert_eq!(refused(on_a(&[1_002, 1_001])), GrantError::NeverFits(never));
    let unknown = GrantSpec::new(GrantOwner::Caller, vec![rung(&[(DeviceId(9), 1)])]);
    assert!(matches!(refused(unknown), GrantError::NeverFits(_)));
    assert_eq!(refused(on_a(&[])), GrantError::BadLadder { rungs: 0, limit: 16 });
    assert_eq!(refused(on_a(&[1; 17])), GrantError::BadLadder { rungs: 17, limit: 16 });
    scheduler.lease(Moment(2), &[(A, Bytes(800))]).unwrap();
    let now_or_never = GrantSpec { patience: Nanos::ZERO, ..on_a(&[300]) };
    let refused = scheduler.request(Moment(3), now_or_never).unwrap_err();
    assert!(matches!(refused, GrantError::NotInTime(ShortfallError::Granted { granted: Bytes(800), .. })), "{refused}");
    assert_eq!(scheduler.grants().count(), 1, "who was refused leaves nothing behind");
    ask(&mut scheduler, 4, on_a(&[1_002, 900]));
    assert!(heard(&mut scheduler).is_empty(), "its lower rung may fit one day");
}

#[test]
fn the_number_of_grants_is_bounded() {
    let mut scheduler = three_gpus();
    let ids: Vec<_> = (0..crate::scheduler::GRANTS_MAX).map(|_| ask(&mut scheduler, 1, on_a(&[0]))).collect();
    let refused = scheduler.request(Moment(2), on_a(&[0])).unwrap_err();
    assert_eq!(refused, GrantError::TooMany { limit: crate::scheduler::GRANTS_MAX });
    assert!(scheduler.lease(Moment(2), &[(A, Bytes(1))]).is_err());
    scheduler.return_grant(Moment(3), ids[0]);
    assert!(scheduler.request(Moment(4), on_a(&[0])).is_ok());
}

#[test]
fn whoever_waits_is_refused_when_nothing_is_given_out_any_more() {
    let mut scheduler = three_gpus();
    let held = ask(&mut scheduler, 1, on_a(&[700]));
    ask(&mut scheduler, 2, on_a(&[700]));
    heard(&mut scheduler);
    scheduler.stop_accepting();
    assert_eq!(scheduler.request(Moment(3), on_a(&[1])).unwrap_err(), GrantError::ShuttingDown);
    scheduler.refuse_waiting_grants(Moment(3));
    assert_eq!(heard(&mut scheduler), ["grant 2 is refused: the orchestrator is shutting down"]);
    assert!(scheduler.return_grant(Moment(4), held), "what is held may be returned later");
}

#[test]
fn a_line_that_rises_gives_to_those_who_wait() {
    let mut scheduler = three_gpus();
    others_leave(&mut scheduler, Moment(1), A, 300);
    ask(&mut scheduler, 2, on_a(&[500]));
    assert!(heard(&mut scheduler).is_empty());
    assert!(scheduler.needs_readings(), "nobody else would notice that memory is free again");
    others_leave(&mut scheduler, Moment(3), A, 500);
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
    assert!(!scheduler.needs_readings());
}

/// What is kept for a grant that no longer fits keeps nobody back.
#[test]
fn nothing_is_kept_for_a_grant_that_waits_for_others() {
    let mut scheduler = three_gpus();
    let small = task_on_a(&mut scheduler, 100);
    let run_of = task_on_a(&mut scheduler, 400);
    scheduler.submit(Moment(1), run_of, ()).unwrap();
    let _run = start(&mut scheduler, Moment(1), A.0);
    ask(&mut scheduler, 2, on_a(&[900]));
    scheduler.submit(Moment(3), small, ()).unwrap();
    assert!(scheduler.take(Moment(3), A).is_none(), "it waits for our own run: all is kept");
    others_leave(&mut scheduler, Moment(4), A, 700);
    assert!(scheduler.drain_wakes().contains(A));
    assert!(scheduler.take(Moment(5), A).is_some(), "others took 300: the grant waits for them");
}

#[test]
fn a_lease_evicts_what_is_idle_and_says_what_is_to_be_closed() {
    let mut scheduler = three_gpus();
    let footprint = Footprint { session: Bytes(700), ..Footprint::default() };
    let ladder = Ladder::from(vec![Rung::new("warm", Place::On(DeviceKind::Gpu), footprint)]);
    let warm = TaskSpec { devices: crate::DeviceSet::only(A), ..spec(&mut scheduler, ladder) };
    scheduler.submit(Moment(1), warm, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), A.0);
    assert!(scheduler.lease(Moment(2), &[(A, Bytes(400))]).is_err(), "it is in use");
    settle(&mut scheduler, Moment(3), &run, None);
    let (id, discards) = scheduler.lease(Moment(4), &[(A, Bytes(400)), (B, Bytes(1)), (A, Bytes(10))]).unwrap();
    assert_eq!((discards.sessions.len(), promised(&scheduler)), (1, [410, 1, 0]));
    assert!(scheduler.drain_grant_news().is_empty(), "who leases knows already");
    scheduler.return_grant(Moment(5), id);
    scheduler.check_invariants().unwrap();
}

/// A sequence's own tasks do not stand before the session that they are to run on.
#[test]
fn a_sequence_does_not_wait_for_its_own_tasks() {
    let mut scheduler = three_gpus();
    let sequence = crate::SequenceId(7);
    let owned = TaskSpec { sequence: Some(sequence), ..task_on_a(&mut scheduler, 600) };
    scheduler.submit(Moment(1), owned, ()).unwrap();
    let ladder = vec![rung(&[(A, 600)])];
    ask(&mut scheduler, 2, GrantSpec::new(GrantOwner::Sequence(crate::SequenceId(8)), ladder.clone()));
    assert!(heard(&mut scheduler).is_empty(), "another's task comes first");
    scheduler.cancel_grant(Moment(3), GrantId(1));
    ask(&mut scheduler, 4, GrantSpec::new(GrantOwner::Sequence(sequence), ladder));
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
}

#[test]
fn a_grant_that_left_room_for_a_task_is_given_when_that_is_cancelled() {
    let mut scheduler = three_gpus();
    let (runs, waits) = (task_on_a(&mut scheduler, 600), task_on_a(&mut scheduler, 900));
    scheduler.submit(Moment(1), runs, ()).unwrap();
    super::super::start(&mut scheduler, Moment(1), A.0);
    let task = scheduler.submit(Moment(2), waits, ()).unwrap();
    let id = ask(&mut scheduler, 3, on_a(&[200]));
    assert_eq!(phase(&scheduler, id), Some(GrantPhase::Waiting));
    scheduler.cancel(Moment(4), task);
    assert_eq!(phase(&scheduler, id), Some(GrantPhase::Held));
}

/// A driver may give less than it once did: waiting for what it no longer has would never end.
#[test]
fn who_waits_for_more_than_a_device_has_by_now_is_refused() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, on_a(&[600]));
    ask(&mut scheduler, 2, on_a(&[900]));
    ask(&mut scheduler, 3, on_a(&[950, 450]));
    let smaller = crate::line::Memory { capacity: Bytes(800), free: Bytes(800), ..Default::default() };
    scheduler.set_memory(Moment(4), A, smaller);
    let news = heard(&mut scheduler);
    assert!(matches!(&news[..], [_, refused] if refused.starts_with("grant 2 is refused")), "{news:?}");
}

/// Its memory would have been taken from under a task that came first; that task is stolen, and nobody waits any more.
#[test]
fn who_waited_for_a_task_that_was_stolen_is_given_its_bytes() {
    let mut scheduler = three_gpus();
    let small = spec(&mut scheduler, on_gpu(100));
    let (on_a_only, on_both) = (crate::DeviceSet::only(A), crate::DeviceSet::only(A).with(B));
    for device in [A, B] {
        scheduler.teach(small.workload, "gpu", device, 10, Nanos::millis(10));
    }
    let runs: Vec<_> = (0..2)
        .map(|_| {
            scheduler.submit(Moment(1), TaskSpec { devices: on_a_only, ..small.clone() }, ()).unwrap();
            start(&mut scheduler, Moment(1), A.0)
        })
        .collect();
    let large = TaskSpec { ladder: on_gpu(500), ..small.clone() };
    let blocked: Vec<_> = (0..2)
        .map(|_| {
            let run = TaskSpec { devices: crate::DeviceSet::only(B), ..small.clone() };
            scheduler.submit(Moment(1), run, ()).unwrap();
            start(&mut scheduler, Moment(1), B.0)
        })
        .collect();
    scheduler.submit(Moment(1), TaskSpec { devices: on_both, ..large }, ()).unwrap();
    let queued_on = [A, B].into_iter().find(|device| scheduler.queued(*device).next().is_some()).expect("it waits");
    let (thief, freed) = if queued_on == A { (B, &blocked) } else { (A, &runs) };
    let waits = GrantSpec::new(GrantOwner::Caller, vec![rung(&[(queued_on, 700)])]);
    ask(&mut scheduler, 2, waits);
    assert!(heard(&mut scheduler).is_empty(), "the task that came first would not fit beside it");
    freed.iter().for_each(|run| settle(&mut scheduler, Moment(3), run, None));
    assert!(scheduler.take(Moment(3), thief).is_some(), "it is stolen");
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
}

/// Somebody without patience was refused; for the one that has, bytes are kept as before.
#[test]
fn what_is_kept_for_who_waits_is_kept_on_after_another_was_refused() {
    let mut scheduler = three_gpus();
    let task = task_on_a(&mut scheduler, 300);
    scheduler.submit(Moment(1), task, ()).unwrap();
    start(&mut scheduler, Moment(1), A.0);
    ask(&mut scheduler, 2, on_a(&[900]));
    assert_eq!(scheduler.ledger().kept(A), Bytes(900));
    let hurried = GrantSpec { patience: Nanos::ZERO, ..with(Priority::Critical, on_a(&[1_000])) };
    assert!(scheduler.request(Moment(3), hurried).is_err());
    assert_eq!(scheduler.ledger().kept(A), Bytes(900));
    let later = spec(&mut scheduler, on_gpu(200));
    let wait = scheduler.why(Moment(3), &later).iter().find(|each| each.device == A).unwrap().estimate.unwrap().wait;
    assert!(wait > Nanos::ZERO, "what is kept is not free, whatever is idle");
    scheduler.refuse_waiting_grants(Moment(4));
    assert_eq!(scheduler.ledger().kept(A), Bytes::ZERO);
}

#[test]
fn a_ladder_may_have_as_many_rungs_as_are_said() {
    let mut scheduler = three_gpus();
    let rungs = vec![10; GrantSpec::RUNGS_MAX];
    ask(&mut scheduler, 1, on_a(&rungs));
    let refused = scheduler.request(Moment(1), on_a(&[&rungs[..], &[10]].concat()));
    assert!(matches!(refused, Err(GrantError::BadLadder { .. })));
}

/// Nobody is before it and nothing is on its way back: the one that waits is given up on as its device is kept by nobody.
#[test]
fn what_was_kept_on_the_only_device_is_free_when_nobody_waits_any_more() {
    let mut scheduler = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let device = scheduler.add_device(exact(DeviceKind::Gpu, 2, 1_000));
    scheduler.device_opened(Moment::START, device);
    let task = task_on_a(&mut scheduler, 500);
    scheduler.submit(Moment(1), task, ()).unwrap();
    start(&mut scheduler, Moment(1), A.0);
    let id = ask(&mut scheduler, 2, on_a(&[900]));
    assert_eq!(scheduler.ledger().kept(A), Bytes(900));
    scheduler.cancel_grant(Moment(3), id);
    assert_eq!(scheduler.ledger().kept(A), Bytes::ZERO);
}

/// A lease of 200 stays; 800 are kept for a grant until a more urgent one waits for more than there will be.
#[test]
fn a_queue_is_woken_when_less_is_kept_from_it_and_only_then() {
    for has_queue in [true, false] {
        let mut scheduler = three_gpus();
        scheduler.lease(Moment(1), &[(A, Bytes(200))]).unwrap();
        let (runs, small) = (task_on_a(&mut scheduler, 300), task_on_a(&mut scheduler, 100));
        scheduler.submit(Moment(1), runs, ()).unwrap();
        start(&mut scheduler, Moment(1), A.0);
        ask(&mut scheduler, 2, on_a(&[800]));
        if has_queue {
            scheduler.submit(Moment(3), small, ()).unwrap();
            assert!(scheduler.take(Moment(3), A).is_none(), "800 are kept");
        }
        scheduler.drain_wakes();
        ask(&mut scheduler, 4, GrantSpec::new(GrantOwner::Caller, vec![rung(&[(B, 100)])]));
        assert!(!scheduler.drain_wakes().contains(A), "as much is kept as before");
        ask(&mut scheduler, 5, with(Priority::High, on_a(&[900])));
        assert_eq!(scheduler.ledger().kept(A), Bytes::ZERO, "it waits for the lease");
        assert_eq!(scheduler.drain_wakes().contains(A), has_queue);
        assert_eq!(scheduler.take(Moment(5), A).is_some(), has_queue);
    }
}

#[test]
fn a_grant_beside_which_a_task_before_it_just_fits_is_given() {
    let mut scheduler = three_gpus();
    let (runs, waits) = (task_on_a(&mut scheduler, 500), task_on_a(&mut scheduler, 800));
    scheduler.submit(Moment(1), runs, ()).unwrap();
    start(&mut scheduler, Moment(1), A.0);
    scheduler.submit(Moment(2), waits, ()).unwrap();
    ask(&mut scheduler, 3, on_a(&[200]));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
}

#[test]
fn nothing_idle_goes_for_a_grant_that_fits_beside_it() {
    let mut scheduler = three_gpus();
    open_warm_session(&mut scheduler, 300);
    let (_, discards) = scheduler.lease(Moment(4), &[(A, Bytes(700))]).unwrap();
    assert!(discards.is_empty());
    assert_eq!(promised(&scheduler)[0], 1_000);
}

/// Two wait for the first device: what is kept is the first one's.
#[test]
fn what_is_kept_is_for_the_first_who_waits() {
    let mut scheduler = three_gpus();
    let task = task_on_a(&mut scheduler, 300);
    scheduler.submit(Moment(1), task, ()).unwrap();
    start(&mut scheduler, Moment(1), A.0);
    ask(&mut scheduler, 2, on_a(&[1_000]));
    assert_eq!(scheduler.ledger().kept(A), Bytes(1_000), "all that there will be is enough");
    ask(&mut scheduler, 3, on_a(&[100]));
    assert_eq!(scheduler.ledger().kept(A), Bytes(1_000));
}

/// It did not fit where it was queued and goes to a device that was full until now; who waited for it need not wait.
#[test]
fn who_waited_for_a_task_that_moved_is_given_its_bytes() {
    let mut scheduler = three_gpus();
    let (runs, waits) = (task_on_a(&mut scheduler, 600), task_on_a(&mut scheduler, 700));
    for device in [A, B] {
        scheduler.teach(runs.workload, "gpu", device, 10, Nanos::millis(10));
    }
    let (lease, _) = scheduler.lease(Moment(1), &[(B, Bytes(900))]).unwrap();
    scheduler.submit(Moment(1), runs, ()).unwrap();
    start(&mut scheduler, Moment(1), A.0);
    let devices = crate::DeviceSet::only(A).with(B);
    let task = scheduler.submit(Moment(2), TaskSpec { devices, ..waits }, ()).unwrap();
    assert!(scheduler.take(Moment(2), A).is_none());
    ask(&mut scheduler, 3, on_a(&[400]));
    scheduler.return_grant(Moment(4), lease);
    assert!(heard(&mut scheduler).is_empty(), "the task that came first would not fit beside it");
    assert!(scheduler.take(Moment(5), A).is_none());
    assert_eq!(scheduler.queued(B).map(|(task, _)| task).collect::<Vec<_>>(), [task], "it moved");
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
}

/// As before, but it goes where its answer is better.
#[test]
fn who_waited_for_a_task_that_rose_in_quality_is_given_its_bytes() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let half = crate::Quality::new(0.5);
    let rung = |name, kind| Rung::new(name, Place::On(kind), Footprint::task(Bytes(550)));
    let ladder = Ladder::from(vec![rung("full", DeviceKind::Gpu), rung("half", DeviceKind::Cpu).with_quality(half)]);
    let task = TaskSpec { quality_min: half, ..spec(&mut scheduler, ladder) };
    let runs = TaskSpec { devices: crate::DeviceSet::only(CPU), ladder: anywhere(400), ..task.clone() };
    for (rung, device) in [("full", GPU), ("half", CPU), ("any", CPU)] {
        scheduler.teach(task.workload, rung, device, 10, Nanos::millis(1));
    }
    let (lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(800))]).unwrap();
    scheduler.submit(Moment(1), runs, ()).unwrap();
    start(&mut scheduler, Moment(1), CPU.0);
    let task = scheduler.submit(Moment(2), task, ()).unwrap();
    assert_eq!(scheduler.queued(CPU).map(|(task, _)| task).collect::<Vec<_>>(), [task]);
    let waits = GrantSpec::new(GrantOwner::Caller, vec![self::rung(&[(CPU, 400)])]);
    let waits = ask(&mut scheduler, 3, waits);
    scheduler.return_grant(Moment(4), lease);
    assert_eq!(phase(&scheduler, waits), Some(GrantPhase::Waiting));
    assert!(scheduler.take(Moment(5), CPU).is_none());
    assert_eq!(scheduler.queued(GPU).map(|(task, _)| task).collect::<Vec<_>>(), [task]);
    assert_eq!(phase(&scheduler, waits), Some(GrantPhase::Held));
}

/// A value that nobody reads has its memory, and nothing runs that could give it back.
#[test]
fn who_waited_for_a_task_that_gave_up_is_given_its_bytes() {
    let mut scheduler = three_gpus();
    let kept = Rung::new("gpu", Place::On(DeviceKind::Gpu), Footprint::default()).with_value(Bytes(600));
    let maker = TaskSpec { ladder: Ladder::from(vec![kept]), ..task_on_a(&mut scheduler, 1) };
    let maker = TaskSpec { is_claimed: true, ..maker };
    scheduler.submit(Moment(1), maker, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), A.0);
    let (measured, moves) = (Measured { run: Nanos(1), ..Measured::default() }, Default::default());
    let (fault, session, value, state) = (None, None, Some(()), None);
    let outcome = crate::scheduler::BatchOutcome { done: 1, fault, session, measured, value, moves, state };
    scheduler.settle_batch(Moment(1), run.run, outcome, |_| ());
    assert_eq!(promised(&scheduler)[0], 600);
    let waits = task_on_a(&mut scheduler, 700);
    scheduler.submit(Moment(2), waits, ()).unwrap();
    assert!(scheduler.take(Moment(2), A).is_none());
    ask(&mut scheduler, 3, on_a(&[400]));
    assert!(heard(&mut scheduler).is_empty(), "the task that came first would not fit beside it");
    scheduler.tick(Moment(2) + scheduler.config().memory_wait_max);
    assert_eq!(errors(&mut scheduler).len(), 1);
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
}

#[test]
fn there_is_news_until_it_was_heard() {
    let mut scheduler = three_gpus();
    assert!(!scheduler.has_grant_news() && !scheduler.has_news());
    ask(&mut scheduler, 1, on_a(&[100]));
    assert!(scheduler.has_grant_news() && scheduler.has_news());
    heard(&mut scheduler);
    assert!(!scheduler.has_grant_news() && !scheduler.has_news());
}

/// The device that is short is named, and a grant only where it is a grant's bytes that are missing.
#[test]
fn a_refusal_says_where_bytes_are_missing_and_who_has_them() {
    let mut scheduler = three_gpus();
    let now_or_never = |portions: &[(DeviceId, u64)]| GrantSpec {
        patience: Nanos::ZERO,
        ..GrantSpec::new(GrantOwner::Caller, vec![rung(portions)])
    };
    scheduler.lease(Moment(1), &[(B, Bytes(900))]).unwrap();
    let refused = scheduler.request(Moment(2), now_or_never(&[(A, 100), (B, 500)])).unwrap_err();
    assert!(matches!(refused, GrantError::NotInTime(ShortfallError::Granted { device: B, .. })), "{refused}");
    let task = task_on_a(&mut scheduler, 900);
    scheduler.submit(Moment(3), task, ()).unwrap();
    start(&mut scheduler, Moment(3), A.0);
    let refused = scheduler.request(Moment(4), now_or_never(&[(A, 200)])).unwrap_err();
    assert!(
        matches!(refused, GrantError::NotInTime(ShortfallError::NotNow { device: A, .. })),
        "a run has it: {refused}"
    );
    scheduler.lease(Moment(5), &[(C, Bytes(100))]).unwrap();
    others_leave(&mut scheduler, Moment(6), C, 500);
    let refused = scheduler.request(Moment(7), now_or_never(&[(C, 600)])).unwrap_err();
    assert!(matches!(refused, GrantError::NotInTime(ShortfallError::NotNow { device: C, .. })), "others do: {refused}");
}

/// Of one that could have been on either of two devices the one it is given on counts; what somebody else waits for there
/// still counts whole.
#[test]
fn who_is_given_one_of_two_devices_takes_nothing_off_what_others_wait_for() {
    let mut scheduler = three_gpus_sharing(Sharing { policy: crate::SharePolicy::Adaptive, ..Sharing::default() });
    ask(&mut scheduler, 1, with(Priority::High, on_a(&[500])));
    let on_b = GrantSpec::new(GrantOwner::Caller, vec![rung(&[(B, 950)])]);
    ask(&mut scheduler, 1, with(Priority::Critical, on_b));
    ask(&mut scheduler, 2, on_a(&[900]));
    let quality = |scheduler: &Scheduler<Nothing>| {
        scheduler.recommended_quality_for(crate::GrantKind::Other, Priority::Normal, A)
    };
    let before = quality(&scheduler);
    let either = GrantSpec { stays: true, ..on_a(&[100]) };
    let either = GrantSpec { ladder: vec![rung(&[(A, 100)]), rung(&[(B, 100)])], ..either };
    let urgent = ask(&mut scheduler, 3, with(Priority::Critical, either));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0", "grant 2 holds rung 0", "grant 4 holds rung 0"]);
    scheduler.return_grant(Moment(4), urgent);
    assert_eq!(quality(&scheduler), before, "500 are held and 900 waited for, as before");
}
