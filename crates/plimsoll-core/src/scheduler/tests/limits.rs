//! Limits and counts: how much is taken in, kept and given back.

use super::*;
use crate::line::Memory;
use crate::task::SessionShape;
use crate::{SubmitErrorKind, TaskId};

#[test]
fn a_full_queue_says_so_exactly_when_it_refuses() {
    let config = Config { queue_limit: 3, lookahead: 0, ..Config::default() };
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(config, Moment::START);
    let device = scheduler.add_device(exact(DeviceKind::Cpu, 1, 1_000));
    scheduler.device_opened(Moment::START, device);
    let spec = spec(&mut scheduler, anywhere(1));
    let ids: Vec<TaskId> = (0..3)
        .map(|_| {
            assert!(!scheduler.is_full());
            scheduler.submit(Moment(1), spec.clone(), ()).unwrap()
        })
        .collect();
    assert!(scheduler.is_full());
    let refused = scheduler.submit(Moment(1), spec.clone(), ()).unwrap_err();
    assert_eq!(refused.refusal, SubmitErrorKind::QueueFull { limit: 3 });
    assert!(scheduler.cancel(Moment(2), ids[0]) && !scheduler.is_full());
    assert!(!scheduler.cancel(Moment(2), ids[0]), "once");
    let run = start(&mut scheduler, Moment(2), 0);
    assert_eq!((scheduler.running(), scheduler.unsettled()), (1, 2));
    settle(&mut scheduler, Moment(3), &run, None);
    assert_eq!((scheduler.running(), scheduler.unsettled()), (0, 1));
}

/// A session that is open costs nothing to open, whether it is idle or in use.
#[test]
fn an_open_session_is_not_opened_again_in_the_estimate() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(1));
    let open =
        |scheduler: &mut Scheduler<Nothing>| scheduler.why(Moment(9), &spec)[0].estimate.expect("it is possible").open;
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let first = start(&mut scheduler, Moment(1), 0);
    let measured = Measured { run: Nanos(1_000), open: Some(Nanos(500)), ..Measured::default() };
    scheduler.settle(Moment(2), first.run, Outcome { result: Ok(()), session: Some(()), measured });
    assert_eq!(open(&mut scheduler), Nanos::ZERO, "idle");
    scheduler.submit(Moment(3), spec.clone(), ()).unwrap();
    let second = start(&mut scheduler, Moment(3), 0);
    assert_eq!(open(&mut scheduler), Nanos::ZERO, "in use");
    scheduler.settle(Moment(4), second.run, Outcome { result: Ok(()), session: None, measured });
    assert_eq!(open(&mut scheduler), Nanos(500), "it was not given back");
}

/// The line sinks below what is promised: idle things make good for that first, and only then for a new task.
#[test]
fn an_overdrawn_line_is_made_good_before_anything_new_is_promised() {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let device = scheduler.add_device(exact(DeviceKind::Cpu, 2, 1_000));
    scheduler.device_opened(Moment::START, device);
    let footprint = Footprint { session: Bytes(300), task: Bytes(100), reference: Bytes::ZERO };
    let base = spec(&mut scheduler, Ladder::from(vec![Rung::new("any", Place::Anywhere, footprint)]));
    let shaped = |shape| TaskSpec { session: SessionShape { params: 0, shape }, ..base.clone() };
    for shape in [1, 2] {
        scheduler.submit(Moment(1), shaped(shape), ()).unwrap();
        let run = start(&mut scheduler, Moment(1), 0);
        settle(&mut scheduler, Moment(1), &run, None);
    }
    assert_eq!(scheduler.ledger().promised(device), Bytes(600), "two idle sessions");
    let memory = |free| Memory { capacity: Bytes(1_000), free: Bytes(free), ..Memory::default() };
    scheduler.set_memory(Moment(2), device, memory(350));
    scheduler.submit(Moment(3), shaped(3), ()).unwrap();
    assert!(scheduler.take(Moment(3), device).is_none(), "400 of 350");
    scheduler.set_memory(Moment(4), device, memory(400));
    let run = scheduler.take(Moment(4), device).expect("exactly, once both sessions are gone");
    assert_eq!(run.discards.sessions.len(), 2);
    assert_eq!(scheduler.ledger().promised(device), Bytes(400));
}

/// No more is evicted than is needed.
#[test]
fn what_fits_evicts_nothing() {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let device = scheduler.add_device(exact(DeviceKind::Cpu, 2, 1_000));
    scheduler.device_opened(Moment::START, device);
    let footprint = Footprint { session: Bytes(400), task: Bytes(100), reference: Bytes::ZERO };
    let base = spec(&mut scheduler, Ladder::from(vec![Rung::new("any", Place::Anywhere, footprint)]));
    let shaped = |shape| TaskSpec { session: SessionShape { params: 0, shape }, ..base.clone() };
    for (shape, evicted) in [(1, 0), (2, 0), (3, 1)] {
        scheduler.submit(Moment(1), shaped(shape), ()).unwrap();
        let run = start(&mut scheduler, Moment(1), 0);
        assert_eq!(run.discards.sessions.len(), evicted, "session {shape}: 400 + 100 of 1000, 400 for each before it");
        settle(&mut scheduler, Moment(1), &run, None);
    }
}

/// Tasks that need more than a sunken line are chosen for again; those that still fit stay where they are.
#[test]
fn only_what_no_longer_fits_leaves_a_device_whose_line_sank() {
    let mut scheduler = a_box(Strategy::LeastLoaded, 1);
    let ladder = |bytes| Ladder::from(vec![on_gpu(bytes).rungs()[0].clone(), gpu_or_cpu().rungs()[1].clone()]);
    for bytes in [100, 500] {
        let workload = scheduler.register("w");
        let spec = TaskSpec { devices: crate::DeviceSet::ALL, ..TaskSpec::new(workload, ladder(bytes), 10) };
        scheduler.teach(workload, "gpu", GPU, 10, Nanos::micros(1));
        scheduler.teach(workload, "cpu", CPU, 10, Nanos::millis(1));
        while scheduler.device(GPU).queue.len() < if bytes == 100 { 1 } else { 2 } {
            scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
        }
    }
    let before = depths(&scheduler);
    others_leave(&mut scheduler, Moment(2), GPU, 200);
    let after = depths(&scheduler);
    assert_eq!(before[1], 2);
    assert_eq!(after[1], 1, "the large one has left: {before:?} → {after:?}");
}

#[test]
fn a_task_that_failed_on_one_device_may_run_on_another_of_the_same_kind() {
    let mut scheduler = a_box(Strategy::RoundRobin, 2);
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.submit(Moment(1), spec, ()).unwrap();
    let first = if depths(&scheduler)[1] == 1 { 1 } else { 2 };
    let run = start(&mut scheduler, Moment(1), first);
    let fault = Fault::OutOfMemory { moment: crate::MemoryMoment::Run, wanted: Bytes(10) };
    settle(&mut scheduler, Moment(2), &run, Some(fault));
    assert_eq!(depths(&scheduler)[usize::from(3 - first)], 1, "the other one");
}

#[test]
fn a_task_of_a_workload_that_nobody_registered_is_refused() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let known = spec(&mut scheduler, anywhere(1));
    let unknown = TaskSpec { workload: crate::WorkloadId(known.workload.0 + 1), ..known };
    let refused = scheduler.submit(Moment(1), unknown.clone(), ()).unwrap_err();
    assert_eq!(refused.refusal, SubmitErrorKind::UnknownWorkload);
    assert!(scheduler.why(Moment(1), &unknown).is_empty());
}

#[test]
fn a_scheduler_that_shuts_down_takes_nothing_in_and_ends_what_it_has() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(1));
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    scheduler.stop_accepting();
    let refused = scheduler.submit(Moment(1), spec, ()).unwrap_err();
    assert_eq!(refused.refusal, SubmitErrorKind::ShuttingDown);
    let run = start(&mut scheduler, Moment(1), 0);
    settle(&mut scheduler, Moment(2), &run, None);
    scheduler.check_at_rest().unwrap();
}

/// Two GPUs of 1000 bytes without a margin; what is queued was placed while the second was away.
fn queued_on_the_first(specs: impl FnOnce(&mut Scheduler<Nothing>) -> Vec<TaskSpec>) -> Scheduler<Nothing> {
    let config = Config { strategy: Strategy::LeastLoaded, lookahead: 0, ..Config::default() };
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(config, Moment::START);
    for _ in 0..2 {
        scheduler.add_device(exact(DeviceKind::Gpu, 1, 1_000));
    }
    scheduler.device_opened(Moment::START, DeviceId(0));
    for spec in specs(&mut scheduler) {
        scheduler.submit(Moment(1), spec, ()).unwrap();
    }
    scheduler.device_opened(Moment(1), DeviceId(1));
    scheduler
}

#[test]
fn what_just_fits_stays_on_a_device_whose_line_sank() {
    let mut scheduler = queued_on_the_first(|scheduler| vec![spec(scheduler, on_gpu(200)); 2]);
    others_leave(&mut scheduler, Moment(2), DeviceId(0), 200);
    assert_eq!(depths(&scheduler), [2, 0]);
    others_leave(&mut scheduler, Moment(3), DeviceId(0), 199);
    assert_eq!(depths(&scheduler), [0, 2], "two of 200 in 199");
}

/// It declares 200 bytes and was seen to take 400.
#[test]
fn what_is_known_to_take_more_than_it_declares_leaves_sooner() {
    let mut scheduler = queued_on_the_first(|scheduler| {
        let spec = spec(scheduler, on_gpu(200));
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
        let run = start(scheduler, Moment(1), 0);
        let measured = Measured { run: Nanos(1_000), peak: Some(Bytes(400)), ..Measured::default() };
        scheduler.settle(Moment(1), run.run, Outcome { result: Ok(()), session: Some(()), measured });
        vec![spec; 2]
    });
    others_leave(&mut scheduler, Moment(2), DeviceId(0), 400);
    assert_eq!(depths(&scheduler), [2, 0]);
    others_leave(&mut scheduler, Moment(3), DeviceId(0), 399);
    assert_eq!(depths(&scheduler), [0, 2]);
}

#[test]
fn a_queue_has_no_more_places_than_there_are_ids() {
    let config = Config { queue_limit: usize::MAX, ..Config::default() };
    let scheduler: Scheduler<Nothing> = Scheduler::new(config, Moment::START);
    assert_eq!(scheduler.config().queue_limit, TaskId::PLACES_MAX);
}

#[test]
fn all_that_is_left_ends_with_the_reason_given() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(1));
    for _ in 0..3 {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    let run = start(&mut scheduler, Moment(1), 0);
    scheduler.end_those(Moment(2), &crate::TaskError::Cancelled, |()| false);
    assert!(errors(&mut scheduler).is_empty(), "none was meant");
    scheduler.end_all(Moment(2), &crate::TaskError::ShutDown);
    let ended = errors(&mut scheduler);
    assert!(ended.len() == 3 && ended.iter().all(|error| matches!(error, crate::TaskError::ShutDown)), "{ended:?}");
    settle(&mut scheduler, Moment(3), &run, None);
    scheduler.check_at_rest().unwrap();
}

/// The host drains endings, orders and discards only when there are any.
#[test]
fn there_is_news_exactly_while_something_is_to_be_done_about_it() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(1));
    assert!(!scheduler.has_news());
    let task = scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    assert!(scheduler.cancel(Moment(1), task) && scheduler.has_news());
    assert_eq!((scheduler.drain_endings().len(), scheduler.has_news()), (1, false));
    scheduler.submit(Moment(1), spec, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), 1);
    settle(&mut scheduler, Moment(2), &run, None);
    scheduler.discard_warm();
    assert!(scheduler.has_news() && scheduler.drain_discards().sessions.len() == 1 && !scheduler.has_news());
    scheduler.device_faulted(Moment(3), GPU, crate::Ailment::Lost);
    assert!(scheduler.has_news() && scheduler.drain_orders().len() == 1 && !scheduler.has_news());
}

#[test]
fn sessions_that_are_one_too_many_or_of_an_older_epoch_are_given_out_to_be_closed() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let base = spec(&mut scheduler, anywhere(1));
    let run = |scheduler: &mut Scheduler<Nothing>, shape| {
        let session = SessionShape { params: 0, shape };
        scheduler.submit(Moment(1), TaskSpec { session, ..base.clone() }, ()).unwrap();
        start(scheduler, Moment(1), 0)
    };
    for shape in 0..=crate::sessions::WARM_MAX as u64 {
        let run = run(&mut scheduler, shape);
        settle(&mut scheduler, Moment(1), &run, None);
    }
    assert_eq!(scheduler.drain_discards().sessions.len(), 1);
    let under_way = run(&mut scheduler, 1_000);
    scheduler.discard_warm();
    scheduler.drain_discards();
    settle(&mut scheduler, Moment(2), &under_way, None);
    assert_eq!(scheduler.drain_discards().sessions.len(), 1);
    scheduler.check_at_rest().unwrap();
}

#[test]
fn the_space_in_the_queue_is_what_would_still_be_taken_in() {
    let config = Config { queue_limit: 3, lookahead: 0, ..Config::default() };
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(config, Moment::START);
    scheduler.add_device(exact(DeviceKind::Cpu, 1, 1_000));
    let spec = spec(&mut scheduler, anywhere(10));
    for space in [3, 2, 1] {
        assert_eq!(scheduler.queue_space(), space);
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    assert_eq!(scheduler.queue_space(), 0);
}
