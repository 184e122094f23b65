//! Batches: not between two of their items.

use super::*;
use crate::{GrantKind, Nanos, Sharing};

const WAIT: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;

fn patient() -> Scheduler<Nothing> {
    three_gpus_sharing(Sharing { leave_levels: 2, batch_wait_max: Nanos(WAIT), ..Sharing::default() })
}

fn batch() -> GrantSpec {
    GrantSpec { kind: GrantKind::Batch, may_rise: true, ..with(Priority::Low, on_a(&[600, 200])) }
}

#[test]
fn between_its_items_only_somebody_far_more_urgent_takes_its_bytes_and_only_after_a_wait() {
    for (priority, is_asked) in [(Priority::Normal, false), (Priority::High, true)] {
        let mut scheduler = patient();
        let id = ask(&mut scheduler, 1, batch());
        assert!(scheduler.set_batch(Moment(2), id, 5));
        heard(&mut scheduler);
        ask(&mut scheduler, 3, with(priority, on_a(&[700])));
        assert!(heard(&mut scheduler).is_empty());
        assert_eq!(scheduler.next_tick(), Some(Moment(3 + WAIT)));
        scheduler.tick(Moment(3 + WAIT));
        assert_eq!(heard(&mut scheduler) == ["grant 1 should step down to 1"], is_asked, "{priority}");
    }
}

#[test]
fn when_its_last_item_is_done_it_is_like_any_other() {
    let mut scheduler = patient();
    let id = ask(&mut scheduler, 1, batch());
    scheduler.set_batch(Moment(2), id, 1);
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[700]));
    assert!(heard(&mut scheduler).is_empty());
    scheduler.set_batch(Moment(4), id, 0);
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 1"]);
    assert!(!scheduler.set_batch(Moment(5), GrantId(77), 1));
}

/// It had to step down for somebody urgent. When that one is gone nobody else takes the room, not even one that is more
/// urgent and smaller.
#[test]
fn nobody_rises_into_what_a_batch_had() {
    for items_left in [0, 3] {
        let mut scheduler = patient();
        let other = ask(&mut scheduler, 1, GrantSpec { may_rise: true, ..on_a(&[400, 100]) });
        scheduler.stepped_to(Moment(1), other, 1).unwrap();
        let id = ask(&mut scheduler, 2, batch());
        let urgent = ask(&mut scheduler, 3, with(Priority::High, on_a(&[650])));
        scheduler.stepped_to(Moment(SECOND), id, 1).unwrap();
        scheduler.set_batch(Moment(SECOND), id, items_left);
        heard(&mut scheduler);
        scheduler.return_grant(Moment(SECOND + 1), urgent);
        scheduler.tick(Moment(SECOND + 1));
        let first = if items_left > 0 { vec![] } else { vec!["grant 1 may rise to 0"] };
        assert_eq!(heard(&mut scheduler), first, "the batch stepped down a moment ago and has to wait");
        scheduler.tick(Moment(2 * SECOND));
        assert!(heard(&mut scheduler).contains(&"grant 2 may rise to 0".to_owned()));
    }
}

/// It had to step down twice, and has come half of the way back: what it had first is still kept for it.
#[test]
fn a_batch_that_fell_twice_is_waited_for_until_it_is_where_it_was_first() {
    let mut scheduler = patient();
    let other = ask(&mut scheduler, 1, GrantSpec { may_rise: true, ..on_a(&[200, 100]) });
    scheduler.stepped_to(Moment(1), other, 1).unwrap();
    let three = GrantSpec { kind: GrantKind::Batch, may_rise: true, ..with(Priority::Low, on_a(&[600, 400, 200])) };
    let id = ask(&mut scheduler, 2, three);
    let first = ask(&mut scheduler, 3, with(Priority::High, on_a(&[400])));
    scheduler.stepped_to(Moment(SECOND), id, 1).unwrap();
    let second = ask(&mut scheduler, SECOND, with(Priority::High, on_a(&[200])));
    scheduler.stepped_to(Moment(2 * SECOND), id, 2).unwrap();
    scheduler.set_batch(Moment(2 * SECOND), id, 3);
    scheduler.return_grant(Moment(2 * SECOND), second);
    heard(&mut scheduler);
    scheduler.tick(Moment(3 * SECOND));
    assert_eq!(heard(&mut scheduler), ["grant 2 may rise to 1"]);
    scheduler.begin_step(Moment(3 * SECOND), id, 1).unwrap();
    scheduler.stepped_to(Moment(3 * SECOND), id, 1).unwrap();
    scheduler.tick(Moment(4 * SECOND));
    assert!(heard(&mut scheduler).is_empty(), "100 are free: enough for the other, and not for it");
    scheduler.return_grant(Moment(4 * SECOND), first);
    assert_eq!(heard(&mut scheduler), ["grant 2 may rise to 0"]);
}
