//! Tasks of one sequence stay together, whatever the strategy, and move together when they must.

use super::*;
use crate::{Ailment, Refusal, SequenceId};

const FILM: SequenceId = SequenceId(7);

fn of_the_film(scheduler: &mut Scheduler<Nothing>) -> TaskSpec {
    TaskSpec { sequence: Some(FILM), ..spec(scheduler, gpu_or_cpu()) }
}

fn submit(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec, times: usize) {
    for _ in 0..times {
        scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    }
}

/// The only device with tasks on it.
fn home(scheduler: &Scheduler<Nothing>) -> DeviceId {
    let depths = depths(scheduler);
    let busy: Vec<usize> = (0..depths.len()).filter(|&at| depths[at] > 0).collect();
    let [at] = busy[..] else { panic!("all on one device: {depths:?}") };
    DeviceId(at as u16)
}

#[test]
fn with_every_strategy_a_sequence_stays_on_one_device() {
    for strategy in Strategy::ALL {
        let mut scheduler = a_box(strategy, 3);
        let frame = of_the_film(&mut scheduler);
        submit(&mut scheduler, &frame, 20);
        let home = home(&scheduler);
        let why = scheduler.why(Moment::START, &frame);
        let elsewhere = why.iter().filter(|each| each.refusal == Some(Refusal::SequenceElsewhere));
        assert_eq!((why[0].device, elsewhere.count()), (home, 3), "{strategy}");
        scheduler.check_invariants().unwrap();
    }
}

#[test]
fn nobody_takes_over_out_of_a_sequence() {
    for sequence in [Some(FILM), None] {
        let mut scheduler = a_box(Strategy::EarliestFinish, 2);
        let frame = TaskSpec { sequence, ..of_the_film(&mut scheduler) };
        // Only the first GPU is known to be any good, so all is placed there.
        scheduler.teach(frame.workload, "gpu", DeviceId(1), 10, Nanos::millis(20));
        for (rung, device) in [("cpu", 0), ("gpu", 2)] {
            scheduler.teach(frame.workload, rung, DeviceId(device), 10, Nanos::seconds(2));
        }
        submit(&mut scheduler, &frame, 50);
        assert_eq!(home(&scheduler), DeviceId(1));
        start(&mut scheduler, Moment::START, 1);
        // It takes far longer than it should.
        let late = Moment(Nanos::seconds(1).0);
        scheduler.teach(frame.workload, "gpu", DeviceId(2), 10, Nanos::millis(1));
        scheduler.teach(frame.workload, "gpu", DeviceId(2), 10, Nanos::millis(1));
        let taken_over = scheduler.take(late, DeviceId(2)).is_some();
        assert_eq!(taken_over, sequence.is_none());
        scheduler.check_invariants().unwrap();
    }
}

#[test]
fn a_home_that_falls_ill_is_left_by_all_for_one_other() {
    for strategy in Strategy::ALL {
        let mut scheduler = a_box(strategy, 3);
        let frame = of_the_film(&mut scheduler);
        submit(&mut scheduler, &frame, 6);
        let first = home(&scheduler);
        let running = start(&mut scheduler, Moment(1), first.0);
        settle(&mut scheduler, Moment(2), &running, Some(Fault::DeviceLost { detail: String::new() }));
        let second = home(&scheduler);
        assert_ne!(first, second, "{strategy}");
        scheduler.device_opened(Moment(3), first);
        submit(&mut scheduler, &frame, 6);
        assert_eq!(home(&scheduler), second, "{strategy}: it does not go back");
        assert_eq!(depths(&scheduler)[second.index()], 12, "{strategy}");
    }
}

#[test]
fn a_task_that_home_cannot_take_gives_the_sequence_a_new_home() {
    let mut scheduler = a_box(Strategy::RoundRobin, 2);
    let frame = of_the_film(&mut scheduler);
    submit(&mut scheduler, &frame, 2);
    let first = home(&scheduler);
    let others = (0..3).map(DeviceId).filter(|device| *device != first).collect();
    let elsewhere = TaskSpec { devices: others, ..frame.clone() };
    submit(&mut scheduler, &elsewhere, 1);
    let second = others_busy(&scheduler, first);
    submit(&mut scheduler, &frame, 5);
    let depths = depths(&scheduler);
    assert_eq!((depths[first.index()], depths[second.index()]), (2, 6));
}

fn others_busy(scheduler: &Scheduler<Nothing>, not: DeviceId) -> DeviceId {
    let depths = depths(scheduler);
    let at = (0..depths.len()).find(|&at| depths[at] > 0 && at != not.index()).expect("one of the others");
    DeviceId(at as u16)
}

#[test]
fn home_is_forgotten_with_the_last_task() {
    let mut scheduler = a_box(Strategy::RoundRobin, 2);
    let frame = of_the_film(&mut scheduler);
    let mut homes = Vec::new();
    for at in 0..6 {
        submit(&mut scheduler, &frame, 1);
        homes.push(home(&scheduler).0);
        let run = start(&mut scheduler, Moment(at), homes[homes.len() - 1]);
        settle(&mut scheduler, Moment(at), &run, None);
        assert_eq!(scheduler.sequences.members(), 0);
    }
    assert_eq!(homes, [0, 1, 2, 0, 1, 2], "each is a sequence of its own");
}

#[test]
fn a_sequence_counts_where_it_runs() {
    let mut scheduler = a_box(Strategy::RoundRobin, 2);
    let frame = of_the_film(&mut scheduler);
    let free = TaskSpec { sequence: None, ..frame.clone() };
    submit(&mut scheduler, &frame, 1);
    for _ in 0..6 {
        submit(&mut scheduler, &frame, 1);
        submit(&mut scheduler, &free, 1);
    }
    assert_eq!(depths(&scheduler), [7, 3, 3], "the free ones go to the others in turn");
}

#[test]
fn cancelled_tasks_leave_their_sequence() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let frame = of_the_film(&mut scheduler);
    let ids: Vec<_> = (0..4).map(|_| scheduler.submit(Moment::START, frame.clone(), ()).unwrap()).collect();
    scheduler.device_faulted(Moment(1), DeviceId(0), Ailment::Lost);
    for id in ids {
        assert!(scheduler.cancel(Moment(2), id));
        scheduler.check_invariants().unwrap();
    }
    assert_eq!(scheduler.sequences.members(), 0);
}
