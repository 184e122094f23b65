//! Who has to step down for whom, and how far.

use super::*;
use crate::event::{GrantEdge, What};
use crate::{ShortfallError, StepError};

fn steps_down(scheduler: &mut Scheduler<Nothing>, at: u64, id: GrantId, rung: usize) {
    scheduler.stepped_to(Moment(at), id, rung).expect("it holds more than that");
}

#[test]
fn the_least_urgent_steps_down_rung_by_rung_and_no_further_than_needed() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, with(Priority::Low, on_a(&[300, 200, 100])));
    let victim = ask(&mut scheduler, 2, with(Priority::Background, on_a(&[300, 250, 200, 50])));
    ask(&mut scheduler, 3, on_a(&[300]));
    heard(&mut scheduler);
    let wants = ask(&mut scheduler, 4, on_a(&[180]));
    assert_eq!(heard(&mut scheduler), ["grant 2 should step down to 2"], "100 are free and 80 missing: 50 do not do");
    let until = Moment(4) + scheduler.config().sharing.step_within;
    assert_eq!(phase(&scheduler, victim), Some(GrantPhase::Recalled { to: Some(2), until }));
    assert_eq!(promised(&scheduler)[0], 900, "nothing is taken from it");
    steps_down(&mut scheduler, 5, victim, 1);
    assert!(heard(&mut scheduler).is_empty(), "not far enough");
    assert_eq!(phase(&scheduler, victim), Some(GrantPhase::Recalled { to: Some(2), until }));
    steps_down(&mut scheduler, 6, victim, 2);
    assert_eq!(heard(&mut scheduler), ["grant 4 holds rung 0"]);
    assert_eq!((phase(&scheduler, victim), phase(&scheduler, wants)), (Some(GrantPhase::Held), Some(GrantPhase::Held)));
    assert_eq!(promised(&scheduler)[0], 300 + 200 + 300 + 180);
}

#[test]
fn one_that_cannot_give_enough_leaves_before_a_more_urgent_one_is_asked() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, with(Priority::Low, on_a(&[500, 200])));
    ask(&mut scheduler, 2, with(Priority::Background, on_a(&[200, 150])));
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[800]));
    assert_eq!(heard(&mut scheduler), ["grant 2 should leave", "grant 1 should step down to 1"], "500 are missing");
}

#[test]
fn one_that_is_not_needed_after_all_is_spared() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, with(Priority::Low, on_a(&[900])));
    ask(&mut scheduler, 2, with(Priority::Background, on_a(&[100])));
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[800]));
    assert_eq!(heard(&mut scheduler), ["grant 1 should leave"], "its 900 are enough without the 100");
}

#[test]
fn nobody_of_equal_or_higher_priority_is_asked() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, on_a(&[500, 1]));
    ask(&mut scheduler, 2, with(Priority::High, on_a(&[500, 1])));
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[400]));
    assert!(heard(&mut scheduler).is_empty());
}

#[test]
fn nobody_is_asked_if_all_together_could_not_give_enough() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, with(Priority::Low, on_a(&[400, 1])));
    ask(&mut scheduler, 2, with(Priority::High, on_a(&[500])));
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[600]));
    assert!(heard(&mut scheduler).is_empty(), "100 free and 400 to be had are not 600");
}

/// Memory of our own runs comes back by itself.
#[test]
fn nobody_is_asked_for_what_runs_will_give_back() {
    let mut scheduler = three_gpus();
    let work = task_on_a(&mut scheduler, 500);
    ask(&mut scheduler, 1, with(Priority::Low, on_a(&[400, 100])));
    scheduler.submit(Moment(2), work, ()).unwrap();
    let run = start(&mut scheduler, Moment(2), A.0);
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[600]));
    assert!(heard(&mut scheduler).is_empty());
    settle(&mut scheduler, Moment(4), &run, None);
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
}

#[test]
fn a_rung_that_needs_nobody_to_step_down_is_waited_for_first() {
    let mut scheduler = three_gpus();
    let work = task_on_a(&mut scheduler, 500);
    ask(&mut scheduler, 1, with(Priority::Low, on_a(&[400, 100])));
    scheduler.submit(Moment(2), work, ()).unwrap();
    let run = start(&mut scheduler, Moment(2), A.0);
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[900, 500]));
    settle(&mut scheduler, Moment(4), &run, None);
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 1"]);
}

#[test]
fn on_several_devices_as_much_as_is_missing_on_each() {
    let mut scheduler = three_gpus();
    let both = |bytes| rung(&[(A, bytes), (B, bytes)]);
    let spec = |ladder| GrantSpec::new(GrantOwner::Caller, ladder);
    ask(&mut scheduler, 1, with(Priority::Low, spec(vec![both(800), both(400), both(100)])));
    ask(&mut scheduler, 2, with(Priority::Low, spec(vec![rung(&[(C, 900)])])));
    heard(&mut scheduler);
    ask(&mut scheduler, 3, spec(vec![rung(&[(A, 500), (B, 700)])]));
    assert_eq!(
        heard(&mut scheduler),
        ["grant 1 should step down to 2"],
        "400 would do on the first, not on the second"
    );
}

#[test]
fn a_task_that_is_short_makes_less_urgent_grants_step_down() {
    let mut scheduler = three_gpus();
    let work = task_on_a(&mut scheduler, 500);
    let victim = ask(&mut scheduler, 1, with(Priority::Low, on_a(&[900, 600, 300])));
    ask(&mut scheduler, 1, on_a(&[100]));
    heard(&mut scheduler);
    scheduler.submit(Moment(2), work.clone(), ()).unwrap();
    for at in 2..5 {
        assert!(scheduler.take(Moment(at), A).is_none());
    }
    assert_eq!(
        heard(&mut scheduler),
        ["grant 1 should step down to 2"],
        "and is asked once, however often a slot looks"
    );
    scheduler.drain_wakes();
    steps_down(&mut scheduler, 6, victim, 2);
    assert!(scheduler.drain_wakes().contains(A));
    assert!(scheduler.take(Moment(6), A).is_some());
    let background = TaskSpec { priority: Priority::Background, ..work };
    scheduler.submit(Moment(7), background, ()).unwrap();
    assert!(scheduler.take(Moment(7), A).is_none());
    assert!(heard(&mut scheduler).is_empty(), "it is less urgent than any of them");
}

/// Two in a row need more than the first recall gives.
#[test]
fn a_grant_that_is_recalled_is_asked_for_more_if_more_is_needed() {
    let mut scheduler = three_gpus();
    let victim = ask(&mut scheduler, 1, with(Priority::Low, on_a(&[1_000, 800, 300])));
    heard(&mut scheduler);
    let work = task_on_a(&mut scheduler, 200);
    scheduler.submit(Moment(2), work, ()).unwrap();
    assert!(scheduler.take(Moment(2), A).is_none());
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 1"]);
    ask(&mut scheduler, 3, with(Priority::High, on_a(&[650])));
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 2"]);
    steps_down(&mut scheduler, 4, victim, 2);
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
}

#[test]
fn an_owner_that_does_not_step_down_in_time_is_told_and_the_next_is_asked() {
    let mut scheduler = three_gpus();
    scheduler.listen(true);
    let lazy = ask(&mut scheduler, 1, with(Priority::Background, on_a(&[500])));
    ask(&mut scheduler, 2, with(Priority::Low, on_a(&[500, 100])));
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[400]));
    assert_eq!(heard(&mut scheduler), ["grant 1 should leave"]);
    let until = Moment(3) + scheduler.config().sharing.leave_within;
    assert_eq!(scheduler.next_tick(), Some(until));
    scheduler.tick(until);
    assert_eq!(heard(&mut scheduler), ["grant 1 is overdue", "grant 2 should step down to 1"]);
    assert_eq!(promised(&scheduler)[0], 1_000, "nothing is taken by force");
    scheduler.tick(until + Nanos(1));
    assert!(heard(&mut scheduler).is_empty(), "it is told once");
    scheduler.return_grant(until + Nanos(2), lazy);
    assert_eq!(heard(&mut scheduler), ["grant 3 holds rung 0"], "late is better than never");
    let edges: Vec<_> = scheduler.drain_events().into_iter().map(|event| event.what).collect();
    assert!(edges.contains(&What::Grant { grant: lazy, edge: GrantEdge::Overdue }));
    assert!(edges.contains(&What::Grant { grant: lazy, edge: GrantEdge::Recalled { to: None, until } }));
}

#[test]
fn a_recall_by_hand_needs_no_priority_but_must_free_something() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, with(Priority::Critical, on_a(&[500, 500, 200])));
    heard(&mut scheduler);
    let within = Nanos(10);
    assert_eq!(scheduler.recall(Moment(2), id, Some(1), within), Err(StepError::NoStep { rung: 1 }));
    assert_eq!(scheduler.recall(Moment(2), id, Some(3), within), Err(StepError::NoStep { rung: 3 }));
    scheduler.recall(Moment(2), id, Some(2), within).unwrap();
    assert_eq!(scheduler.recall(Moment(2), id, Some(2), within), Err(StepError::NoStep { rung: 2 }), "asked already");
    scheduler.recall(Moment(3), id, None, within).unwrap();
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 2", "grant 1 should leave"]);
    steps_down(&mut scheduler, 4, id, 2);
    assert!(matches!(phase(&scheduler, id), Some(GrantPhase::Recalled { to: None, .. })), "it should leave");
    scheduler.return_grant(Moment(5), id);
    assert_eq!(scheduler.recall(Moment(6), id, None, within), Err(StepError::NotHeld));
    let waits = {
        ask(&mut scheduler, 7, on_a(&[900]));
        ask(&mut scheduler, 7, on_a(&[900]))
    };
    assert_eq!(scheduler.recall(Moment(8), waits, None, within), Err(StepError::NotHeld));
}

/// From the GPU to another device: what is needed there is reserved before the owner is asked to go.
#[test]
fn a_step_to_another_device_holds_both_until_it_is_done() {
    let mut scheduler = three_gpus();
    let ladder = vec![rung(&[(A, 900)]), rung(&[(A, 400)]), rung(&[(B, 500)])];
    let id = ask(&mut scheduler, 1, with(Priority::Low, GrantSpec::new(GrantOwner::Caller, ladder)));
    heard(&mut scheduler);
    assert_eq!(scheduler.stepped_to(Moment(2), id, 2), Err(StepError::NotReserved { device: B }));
    ask(&mut scheduler, 2, on_a(&[800]));
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 2"]);
    assert_eq!(promised(&scheduler), [900, 500, 0], "it moves from one to the other");
    steps_down(&mut scheduler, 3, id, 1);
    assert_eq!(promised(&scheduler), [400, 500, 0], "on its way, what it needs at its end stays reserved");
    steps_down(&mut scheduler, 3, id, 2);
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
    assert_eq!(promised(&scheduler), [800, 500, 0]);
}

/// The rung on the other device does not fit there: it would have to leave instead.
#[test]
fn a_step_to_a_device_that_is_full_is_not_asked_for() {
    let mut scheduler = three_gpus();
    scheduler.lease(Moment(0), &[(B, Bytes(600))]).unwrap();
    let ladder = vec![rung(&[(A, 900)]), rung(&[(B, 500)])];
    let id = ask(&mut scheduler, 1, with(Priority::Low, GrantSpec::new(GrantOwner::Caller, ladder)));
    heard(&mut scheduler);
    let refused = scheduler.recall(Moment(2), id, Some(1), Nanos(1)).unwrap_err();
    let shortfall = ShortfallError::Granted {
        device: B,
        wanted: Bytes(500),
        free: Bytes(400),
        owner: GrantOwner::Caller,
        granted: Bytes(600),
    };
    assert_eq!(refused, StepError::DoesNotFit(shortfall));
    assert_eq!(phase(&scheduler, id), Some(GrantPhase::Held));
    ask(&mut scheduler, 3, on_a(&[800]));
    assert_eq!(heard(&mut scheduler), ["grant 2 should leave"]);
}

/// Among equals the one that came last goes first.
#[test]
fn of_two_equals_the_younger_steps_down() {
    let mut scheduler = three_gpus();
    for at in 1..3 {
        ask(&mut scheduler, at, with(Priority::Low, on_a(&[500, 100])));
    }
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[300]));
    assert_eq!(heard(&mut scheduler), ["grant 2 should step down to 1"]);
}

#[test]
fn nobody_steps_down_for_somebody_who_does_not_wait() {
    for (patience, asked) in [(Nanos::ZERO, vec![]), (Nanos(50), vec!["grant 1 should step down to 1"])] {
        let mut scheduler = three_gpus();
        ask(&mut scheduler, 1, with(Priority::Low, on_a(&[900, 100])));
        heard(&mut scheduler);
        let waits = scheduler.request(Moment(2), GrantSpec { patience, ..on_a(&[500]) });
        assert_eq!(
            (waits.is_ok(), heard(&mut scheduler)),
            (patience > Nanos::ZERO, asked.iter().map(|&it| it.into()).collect())
        );
    }
}

/// Who holds the first device is as urgent; the lower rung is to be had from somebody who is not.
#[test]
fn if_nobody_can_step_down_for_one_rung_somebody_may_for_the_next() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, on_a(&[900]));
    ask(&mut scheduler, 2, with(Priority::Low, GrantSpec::new(GrantOwner::Caller, vec![rung(&[(B, 900)])])));
    heard(&mut scheduler);
    ask(&mut scheduler, 3, GrantSpec::new(GrantOwner::Caller, vec![rung(&[(A, 800)]), rung(&[(B, 500)])]));
    assert_eq!(heard(&mut scheduler), ["grant 2 should leave"]);
}

#[test]
fn an_owner_that_did_not_step_down_in_time_may_be_asked_for_the_same_again() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, on_a(&[500, 200]));
    scheduler.recall(Moment(2), id, Some(1), Nanos(10)).unwrap();
    assert_eq!(scheduler.recall(Moment(3), id, Some(1), Nanos(10)), Err(StepError::NoStep { rung: 1 }));
    scheduler.tick(Moment(12));
    assert_eq!(scheduler.recall(Moment(13), id, Some(1), Nanos(10)), Ok(()));
}

#[test]
fn who_was_asked_to_step_down_is_not_asked_to_a_better_rung_instead() {
    let mut scheduler = three_gpus();
    let ladder = vec![rung(&[(A, 800)]), rung(&[(B, 900)]), rung(&[(A, 400)])];
    ask(&mut scheduler, 1, with(Priority::Low, GrantSpec::new(GrantOwner::Caller, ladder)));
    let (lease, _) = scheduler.lease(Moment(1), &[(B, Bytes(500))]).unwrap();
    heard(&mut scheduler);
    ask(&mut scheduler, 2, on_a(&[600]));
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 2"]);
    scheduler.return_grant(Moment(3), lease);
    ask(&mut scheduler, 4, with(Priority::Critical, on_a(&[900])));
    assert_eq!(heard(&mut scheduler), ["grant 1 should leave"], "although the better one would fit by now");
}

#[test]
fn who_is_overdue_is_waited_for_no_longer() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, on_a(&[500, 200]));
    scheduler.recall(Moment(2), id, Some(1), Nanos(10)).unwrap();
    assert_eq!(scheduler.next_tick(), Some(Moment(12)));
    scheduler.tick(Moment(12));
    assert_eq!(scheduler.next_tick(), None, "nothing is due any more");
}

/// Further than it was asked to: what the rung that was asked for needs is not kept.
#[test]
fn who_steps_down_further_than_asked_gives_all_of_it_back_and_listeners_hear_when_it_leaves() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, on_a(&[500, 300, 100]));
    scheduler.recall(Moment(2), id, Some(1), Nanos(10)).unwrap();
    steps_down(&mut scheduler, 3, id, 2);
    assert_eq!((phase(&scheduler, id), promised(&scheduler)[0]), (Some(GrantPhase::Held), 100));
    scheduler.listen(true);
    scheduler.return_grant(Moment(4), id);
    assert_eq!(edges(&mut scheduler)[0], GrantEdge::Left);
}
