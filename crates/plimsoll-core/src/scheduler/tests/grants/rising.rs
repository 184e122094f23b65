//! Who may go up again, and who comes before that.

use super::*;
use crate::StepError;

const PAUSE: u64 = 1_000_000_000;

/// A grant that wants to rise and was made to step down from 900 to 300 for one of 600.
fn stepped_down(scheduler: &mut Scheduler<Nothing>) -> (GrantId, GrantId) {
    let spec = GrantSpec { may_rise: true, ..with(Priority::Low, on_a(&[900, 700, 300])) };
    let low = ask(scheduler, 1, spec);
    let other = ask(scheduler, 2, on_a(&[600]));
    scheduler.stepped_to(Moment(3), low, 2).unwrap();
    assert_eq!(heard(scheduler), ["grant 1 holds rung 0", "grant 1 should step down to 2", "grant 2 holds rung 0"]);
    (low, other)
}

#[test]
fn who_stepped_down_hears_when_a_better_rung_fits_and_is_given_it_if_it_still_does() {
    let mut scheduler = three_gpus();
    let (low, other) = stepped_down(&mut scheduler);
    let lease = scheduler.lease(Moment(4), &[(A, Bytes(100))]).unwrap().0;
    scheduler.return_grant(Moment(5), other);
    assert!(heard(&mut scheduler).is_empty(), "whoever made it step down may be back at once");
    assert_eq!(scheduler.next_tick(), Some(Moment(3 + PAUSE)));
    scheduler.tick(Moment(3 + PAUSE));
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"], "900 fit beside 100");
    scheduler.tick(Moment(4 + PAUSE));
    scheduler.return_grant(Moment(5 + PAUSE), lease);
    assert!(heard(&mut scheduler).is_empty(), "it was told");
    assert_eq!(scheduler.stepped_to(Moment(6 + PAUSE), low, 0), Err(StepError::NotReserved { device: A }));
    assert!(scheduler.begin_step(Moment(6 + PAUSE), low, 0).is_ok());
    assert_eq!(promised(&scheduler)[0], 900);
    scheduler.stepped_to(Moment(7 + PAUSE), low, 0).unwrap();
    assert_eq!((scheduler.grant(low).unwrap().rung, promised(&scheduler)[0]), (Some(0), 900));
    assert_eq!(scheduler.next_tick(), None);
}

#[test]
fn a_rung_that_no_longer_fits_is_refused_and_told_again_when_it_does() {
    let mut scheduler = three_gpus();
    let (low, other) = stepped_down(&mut scheduler);
    scheduler.return_grant(Moment(5), other);
    scheduler.tick(Moment(3 + PAUSE));
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"]);
    let (lease, _) = scheduler.lease(Moment(4 + PAUSE), &[(A, Bytes(500))]).unwrap();
    assert!(matches!(scheduler.begin_step(Moment(5 + PAUSE), low, 0), Err(StepError::DoesNotFit(_))));
    assert_eq!(promised(&scheduler)[0], 800, "a refusal takes nothing");
    scheduler.return_grant(Moment(6 + PAUSE), lease);
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"]);
}

#[test]
fn who_waits_comes_before_who_wants_to_rise() {
    let mut scheduler = three_gpus();
    let (low, other) = stepped_down(&mut scheduler);
    let waits = ask(&mut scheduler, 4, with(Priority::Background, on_a(&[950])));
    scheduler.return_grant(Moment(5), other);
    scheduler.tick(Moment(3 + PAUSE));
    assert!(heard(&mut scheduler).is_empty());
    assert!(matches!(scheduler.begin_step(Moment(4 + PAUSE), low, 1), Err(StepError::DoesNotFit(_))));
    scheduler.cancel_grant(Moment(5 + PAUSE), waits);
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"]);
}

/// A task that waits would not fit beside the better rung.
#[test]
fn no_task_is_passed_over_by_a_rise() {
    let mut scheduler = three_gpus();
    let (low, other) = stepped_down(&mut scheduler);
    let work = task_on_a(&mut scheduler, 200);
    scheduler.submit(Moment(4), work, ()).unwrap();
    scheduler.return_grant(Moment(5), other);
    scheduler.tick(Moment(3 + PAUSE));
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 1"], "700 leave 300");
    assert!(matches!(scheduler.begin_step(Moment(4 + PAUSE), low, 0), Err(StepError::DoesNotFit(_))));
    assert!(scheduler.begin_step(Moment(4 + PAUSE), low, 1).is_ok());
}

#[test]
fn who_did_not_ask_to_rise_does_not_hear_of_it() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, on_a(&[900, 300]));
    scheduler.stepped_to(Moment(2), id, 1).unwrap();
    heard(&mut scheduler);
    scheduler.tick(Moment(5 + PAUSE));
    assert!(heard(&mut scheduler).is_empty());
    assert!(scheduler.begin_step(Moment(6 + PAUSE), id, 0).is_ok(), "but may go up by itself");
}

#[test]
fn the_more_urgent_rises_first() {
    let mut scheduler = three_gpus();
    let rises = |priority| GrantSpec { may_rise: true, ..with(priority, on_a(&[500, 100])) };
    let (low, normal) = (ask(&mut scheduler, 1, rises(Priority::Low)), ask(&mut scheduler, 2, rises(Priority::Normal)));
    for id in [low, normal] {
        scheduler.stepped_to(Moment(3), id, 1).unwrap();
    }
    scheduler.lease(Moment(4), &[(A, Bytes(400))]).unwrap();
    heard(&mut scheduler);
    scheduler.tick(Moment(3 + PAUSE));
    assert_eq!(heard(&mut scheduler), ["grant 2 may rise to 0"]);
}

/// "Never" is only what is more than the device has; all of it may be free later.
#[test]
fn a_step_that_does_not_fit_says_whether_it_ever_will() {
    for (wanted, ever) in [(1_000, true), (1_001, false)] {
        let mut scheduler = three_gpus();
        scheduler.lease(Moment(1), &[(A, Bytes(1))]).unwrap();
        let spec = GrantSpec::new(GrantOwner::Caller, vec![rung(&[(A, wanted)]), rung(&[(B, 10)])]);
        let id = ask(&mut scheduler, 2, spec);
        let Err(StepError::DoesNotFit(short)) = scheduler.begin_step(Moment(3), id, 0) else { panic!("1 is in use") };
        let by_a_grant = matches!(short, crate::ShortfallError::Granted { .. });
        assert_eq!((short.may_pass(), by_a_grant), (ever, ever), "{short}");
    }
}

#[test]
fn who_stays_on_a_rung_or_rose_a_little_is_told_at_once_of_a_better_one() {
    let mut scheduler = three_gpus();
    let (low, other) = stepped_down(&mut scheduler);
    scheduler.tick(Moment(3 + PAUSE));
    scheduler.stepped_to(Moment(4 + PAUSE), low, 2).unwrap();
    let lease = scheduler.lease(Moment(4 + PAUSE), &[(A, Bytes(100))]).unwrap().0;
    scheduler.lease(Moment(4 + PAUSE), &[(B, Bytes(100))]).unwrap();
    scheduler.return_grant(Moment(5 + PAUSE), other);
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"], "it has not stepped down just now");
    assert_eq!(scheduler.begin_step(Moment(6 + PAUSE), low, 3).unwrap_err(), StepError::NoStep { rung: 3 });
    scheduler.begin_step(Moment(6 + PAUSE), low, 1).unwrap();
    scheduler.stepped_to(Moment(6 + PAUSE), low, 1).unwrap();
    scheduler.return_grant(Moment(7 + PAUSE), lease);
    assert!(heard(&mut scheduler).contains(&"grant 1 may rise to 0".to_owned()));
}

#[test]
fn a_rise_closes_what_is_idle_and_says_so() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, on_a(&[900, 100]));
    scheduler.stepped_to(Moment(1), id, 1).unwrap();
    open_warm_session(&mut scheduler, 300);
    let discards = scheduler.begin_step(Moment(2), id, 0).unwrap();
    assert_eq!((discards.sessions.len(), promised(&scheduler)[0]), (1, 900));
}

#[test]
fn listeners_hear_what_was_asked_given_and_offered() {
    use crate::event::GrantEdge;
    let mut scheduler = three_gpus();
    scheduler.listen(true);
    let id = ask(&mut scheduler, 1, GrantSpec { may_rise: true, ..on_a(&[900, 100]) });
    scheduler.stepped_to(Moment(1), id, 1).unwrap();
    scheduler.tick(Moment(2 + PAUSE));
    let expected = [
        GrantEdge::Asked { owner: GrantOwner::Caller },
        GrantEdge::Given { rung: 0, bytes: Bytes(900) },
        GrantEdge::Stepped { rung: 1 },
        GrantEdge::MayRise { rung: 0 },
    ];
    assert_eq!(edges(&mut scheduler), expected);
}

#[test]
fn who_was_told_and_stays_where_it_is_has_answered() {
    let mut scheduler = three_gpus();
    let (low, other) = stepped_down(&mut scheduler);
    scheduler.return_grant(Moment(4), other);
    scheduler.tick(Moment(3 + PAUSE));
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"]);
    scheduler.stepped_to(Moment(4 + PAUSE), low, 2).unwrap();
    assert_eq!(heard(&mut scheduler), ["grant 1 may rise to 0"]);
}
