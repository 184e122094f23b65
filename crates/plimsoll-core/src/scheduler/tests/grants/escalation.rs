//! What happens to those who do not step down, and to whom it never happens.

use super::*;
use crate::event::GrantEdge;
use crate::{Nanos, Quality, Sharing, StepError};

const STEP: u64 = 10;
const LEAVE: u64 = 20;
const STOP: u64 = 40;

fn strict() -> Scheduler<Nothing> {
    three_gpus_sharing(Sharing {
        leave_levels: 2,
        step_within: Nanos(STEP),
        leave_within: Nanos(LEAVE),
        stop_within: Nanos(STOP),
        ..Sharing::default()
    })
}

fn holder() -> GrantSpec {
    let ladder = vec![rung(&[(A, 500)]), rung(&[(A, 200)]).with_quality(Quality::new(0.5))];
    with(Priority::Low, GrantSpec::new(GrantOwner::Caller, ladder))
}

#[test]
fn each_step_comes_when_the_one_before_is_overdue() {
    for may_be_stopped in [false, true] {
        let mut scheduler = strict();
        scheduler.listen(true);
        let id = ask(&mut scheduler, 1, GrantSpec { may_be_stopped, ..holder() });
        heard(&mut scheduler);
        ask(&mut scheduler, 2, with(Priority::Critical, on_a(&[700])));
        assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 1"]);
        let mut at = 2 + STEP;
        assert_eq!(scheduler.next_tick(), Some(Moment(at)));
        scheduler.tick(Moment(at));
        assert_eq!(heard(&mut scheduler), ["grant 1 is overdue", "grant 1 should leave"]);
        at += LEAVE;
        assert_eq!(scheduler.next_tick(), Some(Moment(at)));
        scheduler.tick(Moment(at));
        let stops = ["grant 1 is overdue", "grant 1 is to be stopped"];
        assert_eq!(heard(&mut scheduler), stops[..1 + usize::from(may_be_stopped)], "only if its owner said so");
        assert_eq!(scheduler.grant(id).unwrap().stopping, may_be_stopped);
        let stop = GrantEdge::Stop { until: Moment(at + STOP) };
        assert_eq!(edges(&mut scheduler).contains(&stop), may_be_stopped, "listeners hear it too");
        at += STOP;
        scheduler.tick(Moment(at));
        assert_eq!(heard(&mut scheduler).is_empty(), !may_be_stopped, "its host hears once more");
        scheduler.tick(Moment(at + 1_000));
        assert!(heard(&mut scheduler).is_empty());
        assert_eq!(promised(&scheduler)[0], 500, "nothing is taken by force");
        scheduler.return_grant(Moment(at + 2_000), id);
        assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
    }
}

#[test]
fn for_somebody_fewer_levels_above_nobody_leaves() {
    let mut scheduler = strict();
    ask(&mut scheduler, 1, GrantSpec { may_be_stopped: true, ..holder() });
    heard(&mut scheduler);
    ask(&mut scheduler, 2, on_a(&[700]));
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 1"]);
    scheduler.tick(Moment(2 + STEP));
    assert_eq!(heard(&mut scheduler), ["grant 1 is overdue"]);
    let mut scheduler = strict();
    ask(&mut scheduler, 1, holder());
    heard(&mut scheduler);
    ask(&mut scheduler, 2, on_a(&[900]));
    assert!(heard(&mut scheduler).is_empty(), "it would have to leave");
}

#[test]
fn nobody_is_made_to_leave_while_steps_are_enough() {
    let mut scheduler = strict();
    ask(&mut scheduler, 1, with(Priority::Background, on_a(&[200])));
    ask(&mut scheduler, 2, GrantSpec { priority: Priority::Normal, ..holder() });
    heard(&mut scheduler);
    ask(&mut scheduler, 3, with(Priority::Critical, on_a(&[600])));
    assert_eq!(heard(&mut scheduler), ["grant 2 should step down to 1"], "300 are missing and come from one step");
    ask(&mut scheduler, 4, with(Priority::Critical, on_a(&[200])));
    scheduler.stepped_to(Moment(5), GrantId(2), 1).unwrap();
    assert_eq!(heard(&mut scheduler), ["grant 3 holds rung 0", "grant 1 should leave"]);
}

#[test]
fn it_goes_no_further_once_nobody_needs_it() {
    let mut scheduler = strict();
    ask(&mut scheduler, 1, GrantSpec { may_be_stopped: true, ..holder() });
    let waits = ask(&mut scheduler, 2, with(Priority::Critical, on_a(&[700])));
    heard(&mut scheduler);
    scheduler.cancel_grant(Moment(3), waits);
    scheduler.tick(Moment(2 + STEP));
    assert_eq!(heard(&mut scheduler), ["grant 1 is overdue"]);
}

#[test]
fn a_pin_is_never_asked_for() {
    let mut scheduler = strict();
    let id = ask(&mut scheduler, 1, GrantSpec { pinned: true, ..with(Priority::Background, on_a(&[600, 100])) });
    heard(&mut scheduler);
    ask(&mut scheduler, 2, with(Priority::Critical, on_a(&[900])));
    assert!(heard(&mut scheduler).is_empty());
    assert_eq!(scheduler.recall(Moment(3), id, None, Nanos(1)), Err(StepError::Pinned));
    assert!(scheduler.set_pinned(Moment(4), id, false));
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 1"]);
    assert!(!scheduler.set_pinned(Moment(4), GrantId(99), true));
    scheduler.set_pinned(Moment(5), id, true);
    scheduler.tick(Moment(4 + STEP));
    assert_eq!(heard(&mut scheduler), ["grant 1 is overdue"], "what was asked stands, but goes no further");
}

#[test]
fn a_changed_priority_changes_the_order_and_who_may_be_asked() {
    let mut scheduler = strict();
    let holds = ask(&mut scheduler, 1, with(Priority::High, on_a(&[900])));
    let (first, second) = (ask(&mut scheduler, 2, on_a(&[800])), ask(&mut scheduler, 3, on_a(&[800])));
    heard(&mut scheduler);
    assert!(scheduler.set_priority(Moment(4), second, Priority::Critical));
    assert_eq!(scheduler.wait_of(second).unwrap().before, 0);
    assert_eq!(scheduler.wait_of(first).unwrap().before, 1);
    assert!(heard(&mut scheduler).is_empty(), "critical is one level above high");
    assert!(scheduler.set_priority(Moment(5), holds, Priority::Normal));
    assert_eq!(heard(&mut scheduler), ["grant 1 should leave"]);
    scheduler.return_grant(Moment(6), holds);
    assert_eq!(heard(&mut scheduler), ["grant 3 holds rung 0"]);
    assert!(!scheduler.set_priority(Moment(7), holds, Priority::Low));
}

/// It has waited long: a later one of the same priority does not pass it because its priority was touched.
#[test]
fn a_changed_priority_keeps_the_age() {
    let mut scheduler = strict();
    let holds = ask(&mut scheduler, 1, with(Priority::Critical, on_a(&[900])));
    let old = ask(&mut scheduler, 2, with(Priority::Low, on_a(&[800])));
    let young = ask(&mut scheduler, 3, on_a(&[800]));
    scheduler.set_priority(Moment(4), old, Priority::Normal);
    heard(&mut scheduler);
    scheduler.return_grant(Moment(5), holds);
    assert_eq!((phase(&scheduler, old), phase(&scheduler, young)), (Some(GrantPhase::Held), Some(GrantPhase::Waiting)));
}
