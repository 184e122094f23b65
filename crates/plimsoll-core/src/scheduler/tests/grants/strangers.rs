//! Programs without a grant take memory: who gives way, and how far.

use super::*;
use crate::{GrantKind, Sharing};

fn yielding() -> Scheduler<Nothing> {
    three_gpus_sharing(Sharing { leave_levels: 2, yields_to_strangers: true, ..Sharing::default() })
}

/// One of low priority and one of normal, each with 400 that can be 100.
fn two_holders(scheduler: &mut Scheduler<Nothing>) {
    for priority in [Priority::Low, Priority::Normal] {
        ask(scheduler, 1, with(priority, on_a(&[400, 100])));
    }
    heard(scheduler);
}

#[test]
fn the_least_urgent_step_down_until_the_line_holds_again() {
    for (yields, asked) in [(false, vec![]), (true, vec!["grant 1 should step down to 1"])] {
        let mut scheduler = three_gpus_sharing(Sharing { yields_to_strangers: yields, ..Sharing::default() });
        two_holders(&mut scheduler);
        others_leave(&mut scheduler, Moment(2), A, 600);
        assert_eq!(heard(&mut scheduler), asked, "800 are held");
        others_leave(&mut scheduler, Moment(3), A, 590);
        assert!(heard(&mut scheduler).is_empty(), "what was asked for is on its way");
    }
}

#[test]
fn they_leave_if_steps_are_not_enough_and_nobody_is_stopped() {
    let mut scheduler = yielding();
    for priority in [Priority::Low, Priority::Normal] {
        ask(&mut scheduler, 1, GrantSpec { may_be_stopped: true, ..with(priority, on_a(&[400, 100])) });
    }
    heard(&mut scheduler);
    others_leave(&mut scheduler, Moment(2), A, 100);
    assert_eq!(heard(&mut scheduler), ["grant 1 should leave", "grant 2 should step down to 1"]);
    for _ in 0..4 {
        let next = scheduler.next_tick().unwrap_or(Moment(1 << 60));
        scheduler.tick(next);
    }
    let heard = heard(&mut scheduler);
    assert!(heard.contains(&"grant 2 should leave".to_owned()), "{heard:?}");
    assert!(!heard.iter().any(|news| news.contains("stopped")), "{heard:?}");
}

#[test]
fn what_can_be_had_is_asked_for_even_if_it_is_not_enough_but_no_pin() {
    let mut scheduler = yielding();
    two_holders(&mut scheduler);
    scheduler.set_pinned(Moment(2), GrantId(2), true);
    others_leave(&mut scheduler, Moment(3), A, 100);
    assert_eq!(heard(&mut scheduler), ["grant 1 should leave"]);
}

/// What can be had is not enough, so that nobody is spared at the end: who has none of it must not be asked at all.
#[test]
fn who_holds_nothing_there_is_not_asked() {
    let mut scheduler = yielding();
    two_holders(&mut scheduler);
    scheduler.set_pinned(Moment(2), GrantId(2), true);
    let ladder = vec![rung(&[(B, 400)]), rung(&[(B, 100)])];
    let elsewhere = ask(&mut scheduler, 2, with(Priority::Low, GrantSpec::new(GrantOwner::Caller, ladder)));
    heard(&mut scheduler);
    others_leave(&mut scheduler, Moment(3), A, 100);
    assert_eq!(heard(&mut scheduler), ["grant 1 should leave"]);
    scheduler.recall(Moment(4), elsewhere, Some(1), crate::Nanos(1)).unwrap();
    scheduler.tick(Moment(5));
    assert_eq!(heard(&mut scheduler), ["grant 3 should step down to 1", "grant 3 is overdue"]);
    others_leave(&mut scheduler, Moment(6), A, 90);
    assert!(heard(&mut scheduler).is_empty(), "overdue or not");
}

#[test]
fn a_batch_is_asked_last() {
    let mut scheduler = yielding();
    two_holders(&mut scheduler);
    scheduler.set_batch(Moment(2), GrantId(1), 9);
    others_leave(&mut scheduler, Moment(3), A, 600);
    assert_eq!(heard(&mut scheduler), ["grant 2 should step down to 1"], "although it is more urgent");
}

#[test]
fn steps_stay_above_what_is_of_use() {
    let mut scheduler = yielding();
    let ladder = vec![
        rung(&[(A, 400)]),
        rung(&[(A, 300)]).with_quality(crate::Quality::new(0.5)),
        rung(&[(A, 100)]).with_quality(crate::Quality::new(0.3)),
    ];
    for kind in [GrantKind::Llm, GrantKind::Other] {
        ask(&mut scheduler, 1, GrantSpec { kind, ..GrantSpec::new(GrantOwner::Caller, ladder.clone()) });
    }
    heard(&mut scheduler);
    others_leave(&mut scheduler, Moment(2), A, 450);
    assert_eq!(heard(&mut scheduler), ["grant 2 should step down to 2", "grant 1 should step down to 1"]);
}

/// What others were allotted is no stranger's use: whoever keeps the book asks for it, by how urgent it is.
#[test]
fn nobody_steps_down_because_less_is_allotted() {
    let mut scheduler = yielding();
    two_holders(&mut scheduler);
    scheduler.set_allotment(Moment(2), A, Some(Bytes(300)));
    scheduler.tick(Moment(3));
    assert!(heard(&mut scheduler).is_empty());
    others_leave(&mut scheduler, Moment(4), A, 600);
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 1"], "to strangers they do");
}
