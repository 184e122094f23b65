//! Allotments: what may not be promised yet is asked for and waited for, and is no reason to step down.

use super::*;
use crate::scheduler::GrantNews;
use crate::{DeviceSet, GrantOwner, GrantRung, GrantSpec, Priority, Setback, TaskError};

const SECOND: u64 = 1_000_000_000;

fn allot(scheduler: &mut Scheduler<Nothing>, at: u64, bytes: u64) {
    scheduler.set_allotment(Moment(at), GPU, Some(Bytes(bytes)));
}

fn wanted(scheduler: &Scheduler<Nothing>) -> Option<(u64, Priority)> {
    scheduler.wanted_allotment(GPU).map(|(bytes, priority)| (bytes.0, priority))
}

/// A large rung on the GPU, a small one there, and the CPU.
fn three_rungs() -> Ladder {
    let rung = |name, kind, bytes| Rung::new(name, Place::On(kind), Footprint::task(Bytes(bytes)));
    Ladder::from(vec![
        rung("full", DeviceKind::Gpu, 500),
        rung("strip", DeviceKind::Gpu, 50),
        rung("cpu", DeviceKind::Cpu, 10),
    ])
}

#[test]
fn without_an_allotment_all_of_the_line_may_be_promised() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(850));
    scheduler.submit(Moment(1), spec, ()).unwrap();
    assert!(scheduler.take(Moment(1), GPU).is_some());
    assert!(wanted(&scheduler).is_none() && scheduler.drain_wants().is_empty());
}

#[test]
fn what_is_not_allotted_yet_is_wanted_and_started_when_it_is() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, three_rungs());
    allot(&mut scheduler, 1, 100);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert_eq!(depths(&scheduler), [0, 1], "neither a lower rung nor the CPU");
    assert!(scheduler.take(Moment(2), GPU).is_none());
    assert!(scheduler.drain_wants().contains(GPU));
    assert_eq!(wanted(&scheduler), Some((500, Priority::Normal)));
    scheduler.drain_wakes();
    allot(&mut scheduler, 3, 500);
    assert!(scheduler.drain_wakes().contains(GPU));
    let run = start(&mut scheduler, Moment(3), GPU.0);
    assert_eq!((run.rung, wanted(&scheduler)), (0, None));
    scheduler.check_invariants().unwrap();
}

#[test]
fn what_would_not_fit_anyway_is_not_wanted() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(500));
    allot(&mut scheduler, 1, 400);
    others_leave(&mut scheduler, Moment(1), GPU, 450);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    assert_eq!(wanted(&scheduler), None, "other programs have it, whatever is allotted");
    scheduler.drain_wakes();
    others_leave(&mut scheduler, Moment(3), GPU, 1_000);
    assert!(scheduler.drain_wakes().contains(GPU), "whoever waits looks again, and wants");
    assert!(scheduler.take(Moment(3), GPU).is_none() && scheduler.drain_wants().contains(GPU));
    assert_eq!(wanted(&scheduler), Some((500, Priority::Normal)));
}

#[test]
fn what_would_not_fit_anyway_is_not_wanted_for_a_grant_either() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    allot(&mut scheduler, 1, 100);
    others_leave(&mut scheduler, Moment(1), GPU, 450);
    scheduler.request(Moment(2), grant(&[500], Priority::High)).unwrap();
    assert_eq!(wanted(&scheduler), None, "other programs have it, whatever is allotted");
}

#[test]
fn never_is_still_only_what_is_above_the_ceiling() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(851));
    allot(&mut scheduler, 1, 0);
    scheduler.submit(Moment(2), TaskSpec { ladder: on_gpu(850), ..spec.clone() }, ()).unwrap();
    assert!(errors(&mut scheduler).is_empty());
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(matches!(errors(&mut scheduler)[..], [TaskError::NeverFits { .. }]));
}

#[test]
fn an_allotment_that_does_not_come_is_waited_for_once_and_then_the_next_rung_is_taken() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, three_rungs());
    allot(&mut scheduler, 1, 100);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    let patience = scheduler.config().memory_wait_max.0;
    scheduler.tick(Moment(patience - SECOND));
    assert!(scheduler.take(Moment(patience - SECOND), GPU).is_none(), "it still waits");
    scheduler.tick(Moment(patience + SECOND));
    let now = Moment(patience + SECOND);
    let next = scheduler.take(now, GPU).or_else(|| scheduler.take(now, CPU)).expect("a lower rung");
    assert!(next.rung > 0);
    scheduler.check_invariants().unwrap();
}

/// It waited in vain for the allotment of one GPU, and since then for the other one to come back.
#[test]
fn an_allotment_that_comes_late_is_used_though_it_is_not_all_there_is() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    let spec = spec(&mut scheduler, on_gpu(500));
    scheduler.device_faulted(Moment(1), DeviceId(2), crate::Ailment::Lost);
    allot(&mut scheduler, 1, 100);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    let late = Moment(2) + scheduler.config().memory_wait_max;
    scheduler.tick(late);
    assert_eq!((depths(&scheduler), scheduler.unsettled()), (vec![0, 0, 0], 1), "it has left that queue");
    allot(&mut scheduler, late.0, 600);
    assert!(scheduler.take(late, GPU).is_some());
}

#[test]
fn an_error_names_what_was_waited_for() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(500));
    allot(&mut scheduler, 1, 100);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    let end = scheduler.config().memory_wait_max.0 + SECOND;
    scheduler.tick(Moment(end));
    let ended = errors(&mut scheduler);
    let [TaskError::Exhausted { attempts, .. }] = &ended[..] else { panic!("{ended:?}") };
    assert!(matches!(attempts[0].setback, Setback::Refused(_)), "{attempts:?}");
}

#[test]
fn what_is_promised_beyond_a_lower_allotment_stays_and_nothing_more_starts() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(300));
    for _ in 0..2 {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    let run = start(&mut scheduler, Moment(1), GPU.0);
    allot(&mut scheduler, 2, 100);
    settle(&mut scheduler, Moment(3), &run, None);
    assert!(scheduler.take(Moment(3), GPU).is_none());
    assert_eq!(scheduler.ledger().promised(GPU), Bytes::ZERO);
    assert_eq!(wanted(&scheduler), Some((300, Priority::Normal)));
    scheduler.set_allotment(Moment(4), GPU, None);
    assert!(scheduler.take(Moment(4), GPU).is_some(), "alone again");
}

#[test]
fn idle_sessions_go_when_others_want_their_bytes() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let footprint = Footprint { session: Bytes(200), ..Footprint::task(Bytes(10)) };
    let ladder = Ladder::from(vec![Rung::new("gpu", Place::On(DeviceKind::Gpu), footprint)]);
    let spec = spec(&mut scheduler, ladder);
    scheduler.submit(Moment(1), spec, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), GPU.0);
    settle(&mut scheduler, Moment(2), &run, None);
    let standing = scheduler.standing(GPU);
    assert_eq!((standing.promised, standing.idle, standing.most), (Bytes(200), Bytes(200), Bytes(210)));
    let discards = scheduler.give_up_idle(Moment(3), GPU, Bytes(1));
    assert_eq!((discards.sessions.len(), scheduler.ledger().promised(GPU)), (1, Bytes::ZERO));
    assert_eq!(scheduler.standing(GPU).least, Bytes::ZERO);
    scheduler.check_at_rest().unwrap();
}

fn grant(bytes: &[u64], priority: Priority) -> GrantSpec {
    let ladder = bytes.iter().map(|&bytes| GrantRung::new(&[(GPU, Bytes(bytes))])).collect();
    GrantSpec { priority, ..GrantSpec::new(GrantOwner::Caller, ladder) }
}

#[test]
fn a_grant_that_waits_for_an_allotment_wants_it() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    allot(&mut scheduler, 1, 100);
    let id = scheduler.request(Moment(2), grant(&[500], Priority::High)).unwrap();
    assert!(scheduler.drain_wants().contains(GPU));
    assert_eq!(wanted(&scheduler), Some((500, Priority::High)));
    allot(&mut scheduler, 3, 600);
    let news = scheduler.drain_grant_news();
    assert!(matches!(news[..], [GrantNews::Granted { grant, rung: 0, .. }] if grant == id));
    assert_eq!(wanted(&scheduler), None);
}

#[test]
fn what_was_not_allotted_yet_is_no_pressure() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let before = scheduler.pressure(GPU);
    allot(&mut scheduler, 1, 100);
    assert_eq!(scheduler.pressure(GPU), before);
}

#[test]
fn a_grant_waits_a_moment_for_the_allotment_of_its_best_rung() {
    let given = |scheduler: &mut Scheduler<Nothing>| match scheduler.drain_grant_news()[..] {
        [GrantNews::Granted { rung, .. }] => Some(rung),
        [] => None,
        _ => panic!("something else"),
    };
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    allot(&mut scheduler, 1, 100);
    scheduler.request(Moment(2), grant(&[500, 50], Priority::High)).unwrap();
    assert_eq!((given(&mut scheduler), wanted(&scheduler)), (None, Some((500, Priority::High))));
    allot(&mut scheduler, 3, 600);
    assert_eq!(given(&mut scheduler), Some(0));
    // If it does not come, the rung below will do.
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    allot(&mut scheduler, 1, 100);
    scheduler.request(Moment(2), grant(&[500, 50], Priority::High)).unwrap();
    let due = scheduler.next_tick().expect("it does not wait for ever");
    scheduler.tick(due);
    assert_eq!((due, given(&mut scheduler)), (Moment(2) + Nanos::millis(150), Some(1)));
}

/// It is about to be given its best rung: nobody behind it takes the bytes of its device in between.
#[test]
fn who_waits_for_an_allotment_keeps_its_place() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    allot(&mut scheduler, 1, 100);
    let first = scheduler.request(Moment(2), grant(&[500, 50], Priority::Normal)).unwrap();
    let behind = scheduler.request(Moment(3), grant(&[80], Priority::Normal)).unwrap();
    assert!(scheduler.drain_grant_news().is_empty(), "80 are free, and another's turn");
    allot(&mut scheduler, 4, 600);
    let given = scheduler.drain_grant_news().into_iter().map(|news| match news {
        GrantNews::Granted { grant, rung, .. } => (grant, rung),
        _ => panic!("something else"),
    });
    assert_eq!(given.collect::<Vec<_>>(), [(first, 0), (behind, 0)]);
}

#[test]
fn what_is_wanted_comes_on_top_of_what_is_promised_above_the_line() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    scheduler.request(Moment(1), grant(&[300], Priority::High)).unwrap();
    allot(&mut scheduler, 2, 100);
    let waits = scheduler.request(Moment(3), grant(&[200], Priority::Normal)).unwrap();
    assert_eq!(wanted(&scheduler), Some((500, Priority::Normal)), "300 are promised though 100 are allotted");
    scheduler.cancel_grant(Moment(4), waits);
    scheduler.will_ask_for(&[(GPU, Bytes(250))], Priority::Low);
    assert_eq!(wanted(&scheduler), Some((550, Priority::Low)));
    scheduler.asks_no_longer(DeviceSet::NONE.with(GPU));
    let spec = spec(&mut scheduler, on_gpu(150));
    scheduler.submit(Moment(5), spec, ()).unwrap();
    assert_eq!(wanted(&scheduler), Some((450, Priority::Normal)));
}

#[test]
fn who_takes_bytes_at_once_can_have_them_allotted_before() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    allot(&mut scheduler, 1, 100);
    let portions = [(GPU, Bytes(500))];
    assert!(scheduler.lease(Moment(2), &portions).is_err());
    let asked = scheduler.will_ask_for(&portions, Priority::Low);
    assert!(asked.contains(GPU) && scheduler.drain_wants().contains(GPU));
    assert_eq!(wanted(&scheduler), Some((500, Priority::Low)));
    allot(&mut scheduler, 3, 500);
    scheduler.asks_no_longer(asked);
    assert!(scheduler.lease(Moment(4), &portions).is_ok());
    assert!(scheduler.will_ask_for(&portions, Priority::Low).is_empty(), "no allotment has so much beside it");
}

#[test]
fn only_what_is_less_urgent_steps_down_for_others() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    scheduler.request(Moment(1), grant(&[500, 50], Priority::Low)).unwrap();
    scheduler.drain_grant_news();
    allot(&mut scheduler, 2, 100);
    scheduler.step_down_for_others(Moment(3), GPU, Priority::Low);
    assert!(scheduler.drain_grant_news().is_empty(), "an equal is no reason");
    assert!(scheduler.step_down_for_others(Moment(4), GPU, Priority::Normal));
    let news = scheduler.drain_grant_news();
    assert!(matches!(news[..], [GrantNews::Recalled { to: Some(1), .. }]));
    assert_eq!(scheduler.standing(GPU).urgency, None);
}

#[test]
fn how_urgent_a_device_s_work_is_is_known() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(500));
    scheduler.submit(Moment(1), TaskSpec { priority: Priority::Low, ..spec.clone() }, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), GPU.0);
    assert_eq!(scheduler.standing(GPU).urgency, Some(Priority::Low));
    scheduler.submit(Moment(1), TaskSpec { priority: Priority::High, ..spec }, ()).unwrap();
    assert_eq!(scheduler.standing(GPU).urgency, Some(Priority::High));
    settle(&mut scheduler, Moment(2), &run, None);
}
