//! What listeners are told: counters, traces and progress are made of it.

use super::*;

/// The kinds of the events since the last call, in order.
fn told(scheduler: &mut Scheduler<Nothing>) -> Vec<String> {
    let kind = |what: String| what.split([' ', '{']).next().unwrap_or_default().to_owned();
    scheduler.drain_events().into_iter().map(|event| kind(format!("{:?}", event.what))).collect()
}

#[test]
fn the_life_of_a_task() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(1));
    scheduler.teach(spec.workload, "any", CPU, 10, Nanos(5));
    scheduler.listen(true);
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    settle(&mut scheduler, Moment(2), &run, None);
    assert_eq!(told(&mut scheduler), ["Submitted", "Placed", "Started", "Ran", "Ended"]);
    let task = scheduler.submit(Moment(3), spec.clone(), ()).unwrap();
    assert!(scheduler.cancel(Moment(3), task));
    assert_eq!(told(&mut scheduler), ["Submitted", "Placed", "Ended"]);
    scheduler.listen(false);
    scheduler.submit(Moment(4), spec, ()).unwrap();
    assert!(told(&mut scheduler).is_empty());
}

#[test]
fn the_life_of_a_device() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    scheduler.listen(true);
    others_leave(&mut scheduler, Moment(1), GPU, 500);
    others_leave(&mut scheduler, Moment(1), GPU, 500);
    assert_eq!(told(&mut scheduler), ["LineMoved"], "once");
    scheduler.device_faulted(Moment(2), GPU, crate::Ailment::Lost);
    assert_eq!(told(&mut scheduler), ["Quarantined"]);
    scheduler.device_opened(Moment(3), GPU);
    assert_eq!(told(&mut scheduler), ["Returned", "LineMoved"]);
    scheduler.device_faulted(Moment(4), GPU, crate::Ailment::Lost);
    told(&mut scheduler);
    let tries = (1..100).find(|_| {
        scheduler.device_failed_to_open(Moment(5), GPU);
        told(&mut scheduler) == ["Gone"]
    });
    assert!(tries.is_some() && !scheduler.health(GPU).may_return());
}

#[test]
fn an_attempt_that_fails_and_one_that_nobody_waits_for_any_more() {
    for (is_cancelled, expected) in
        [(false, vec!["AttemptFailed", "Quarantined", "Placed"]), (true, vec!["AttemptFailed", "Quarantined"])]
    {
        let mut scheduler = a_box(Strategy::EarliestFinish, 1);
        let spec = spec(&mut scheduler, gpu_or_cpu());
        scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos(5));
        scheduler.teach(spec.workload, "cpu", CPU, 10, Nanos(500));
        scheduler.submit(Moment(1), spec, ()).unwrap();
        let run = start(&mut scheduler, Moment(1), GPU.0);
        assert!(!is_cancelled || scheduler.cancel(Moment(1), run.task));
        scheduler.listen(true);
        settle(&mut scheduler, Moment(2), &run, Some(Fault::DeviceLost { detail: String::new() }));
        assert_eq!(told(&mut scheduler), expected);
    }
}

/// How many references a task found there and how many it has to prepare, when it starts.
#[test]
fn a_start_tells_of_references_that_were_there_and_of_those_that_were_not() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let mut spec = spec(&mut scheduler, anywhere(1));
    let reference = |content| crate::task::ReferenceUse { content: crate::ContentKey(content), pinned: true };
    spec.references.push(reference(1));
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let first = start(&mut scheduler, Moment(1), CPU.0);
    scheduler.prepared(first.run, 0, ());
    spec.references.push(reference(2));
    scheduler.listen(true);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    start(&mut scheduler, Moment(2), CPU.0);
    let counts = scheduler.drain_events().into_iter().find_map(|event| match event.what {
        crate::event::What::Started { hits, misses, .. } => Some((hits, misses)),
        _ => None,
    });
    assert_eq!(counts, Some((1, 1)));
}
