//! Items on their way through stages: what a failure, a cancel, a panic or a drop ends, and what it leaves alone.

use std::io::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::{Priority, SubmitErrorKind, TaskError};
use plimsoll_runtime::{FanOut, Gathered, OnFailure, Orchestrator, Pipeline, Registered, Task, Workload, workload};

use crate::bounded::{Gate, bounded, eventually};

const LONG: Duration = Duration::from_secs(60);

/// A gate that counts who stands before it.
#[derive(Clone, Default)]
struct Door(Gate, Arc<AtomicUsize>);

impl Door {
    fn pass(&self) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.pass();
    }

    fn open(&self) {
        self.0.open();
    }

    fn wait_for(&self, count: usize) {
        eventually("somebody stands before the gate", || self.1.load(Ordering::SeqCst) >= count);
    }
}

/// A stage that fails for multiples of ten.
fn picky(orchestrator: &Orchestrator) -> Registered<impl Workload<Input = u64, Output = u64, Reference = ()>> {
    orchestrator.register(workload::function("picky", |n: &u64| match n % 10 {
        0 => Err(Error::other(format!("{n} is a multiple of ten"))),
        _ => Ok(*n),
    }))
}

fn plus_one(orchestrator: &Orchestrator) -> Registered<impl Workload<Input = u64, Output = u64, Reference = ()>> {
    orchestrator.register(workload::function("plus one", |n: &u64| Ok::<_, Error>(n + 1)))
}

#[test]
fn an_item_that_fails_in_the_middle_ends_alone_with_its_reason() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).build();
        let (one, picky) = (plus_one(&orchestrator), picky(&orchestrator));
        let pipeline = Pipeline::of(&one).then(&picky, Task::new).then(&one, Task::new);
        let results: Vec<_> = orchestrator.run_pipeline(&pipeline, (0..100).map(Task::new)).numbered().collect();
        assert_eq!(results.len(), 100);
        for done in results {
            match done.result {
                Ok(output) => assert_eq!(output.output, done.item + 2),
                Err(failure) => {
                    assert_eq!(done.item % 10, 9);
                    assert_eq!(failure.to_string(), format!("{} is a multiple of ten", done.item + 1));
                }
            }
        }
    });
}

#[test]
fn the_first_failure_can_end_them_all() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).build();
        let (one, picky) = (plus_one(&orchestrator), picky(&orchestrator));
        let pipeline = Pipeline::of(&one).then(&picky, Task::new).on_failure(OnFailure::EndAll).items_max(4);
        let mut flow = orchestrator.flow(&pipeline);
        flow.submit(Task::new(9)).unwrap();
        let failure = flow.wait(LONG).expect("it fails").result.unwrap_err();
        assert!(matches!(failure.error, TaskError::WorkFailed(_)));
        let refused = flow.submit(Task::new(1)).unwrap_err();
        assert_eq!(refused.reason, SubmitErrorKind::FlowEnded);
        // As an iterator: whatever was under way ends, and inputs are pulled no further.
        let pulled = AtomicUsize::new(0);
        let inputs = (0..).inspect(|_| _ = pulled.fetch_add(1, Ordering::Relaxed)).map(Task::new);
        let results: Vec<_> = orchestrator.run_pipeline(&pipeline, inputs).collect();
        let failed =
            results.iter().filter(|result| matches!(result, Err(f) if !matches!(f.error, TaskError::Cancelled)));
        assert_eq!(failed.count(), 1, "one fails by itself, the others are cancelled");
        assert!(results.len() < 100 && pulled.load(Ordering::Relaxed) <= results.len() + 1);
        assert_eq!(orchestrator.unsettled(), 0);
    });
}

#[test]
fn a_group_is_cancelled_as_one_whatever_stage_its_items_are_in() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).build();
        let gate = Door::default();
        let one = plus_one(&orchestrator);
        let held = {
            let gate = gate.clone();
            orchestrator.register(workload::function("held", move |n: &u64| {
                gate.pass();
                Ok::<_, Error>(*n)
            }))
        };
        let after = Arc::new(AtomicUsize::new(0));
        let last = {
            let after = Arc::clone(&after);
            orchestrator.register(workload::function("last", move |n: &u64| {
                after.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Error>(*n)
            }))
        };
        let pipeline = Pipeline::of(&one).then(&held, Task::new).then(&last, Task::new);
        let mut flow = orchestrator.flow(&pipeline);
        for n in 0..20 {
            flow.submit(Task::new(n)).unwrap();
        }
        gate.wait_for(2);
        flow.cancel();
        gate.open();
        for _ in 0..20 {
            let failure = flow.wait(LONG).expect("every item ends").result.unwrap_err();
            assert!(matches!(failure.error, TaskError::Cancelled), "{failure}");
        }
        assert_eq!((flow.outstanding(), after.load(Ordering::Relaxed)), (0, 0));
    });
}

#[test]
fn a_dropped_flow_runs_nothing_more() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let one = plus_one(&orchestrator);
        let pipeline = Pipeline::of(&one).then(&one, Task::new).then(&one, Task::new).items_max(1_000);
        let mut flow = orchestrator.flow(&pipeline);
        for n in 0..1_000 {
            flow.submit(Task::new(n)).unwrap();
        }
        drop(flow);
        assert_eq!(orchestrator.unsettled(), 0);
    });
}

#[test]
fn a_panic_while_the_next_task_is_made_is_the_items_error() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let one = plus_one(&orchestrator);
        let pipeline = Pipeline::of(&one).then(&one, |n| match n {
            3 => panic!("not three"),
            n => Task::new(n),
        });
        let results: Vec<_> = orchestrator.run_pipeline(&pipeline, (0..5).map(Task::new)).collect();
        let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(matches!(&failed[..], [one] if one.to_string().contains("not three")), "{failed:?}");
    });
}

/// One slot: whatever is begun is finished before more is begun, as far as ages allow.
#[test]
fn later_stages_go_before_earlier_ones() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let gate = Door::default();
        let stage = |name: &'static str| {
            let (order, gate) = (Arc::clone(&order), gate.clone());
            orchestrator.register(workload::function(name, move |n: &u64| {
                gate.pass();
                order.lock().unwrap().push((name, *n));
                // Too long to be taken together with others of its stage.
                std::thread::sleep(Duration::from_millis(1));
                Ok::<_, Error>(*n)
            }))
        };
        let (first, second) = (stage("first"), stage("second"));
        let mut flow = orchestrator.flow(&Pipeline::of(&first).then(&second, Task::new));
        for n in 0..3 {
            flow.submit(Task::new(n)).unwrap();
        }
        gate.open();
        (0..3).for_each(|_| _ = flow.wait(LONG).expect("every item ends").result.unwrap());
        let expected: Vec<_> = (0..3).flat_map(|n| [("first", n), ("second", n)]).collect();
        assert_eq!(*order.lock().unwrap(), expected);
    });
}

/// The priority of an item reaches the stage it is in, and those after it.
#[test]
fn an_item_that_is_raised_overtakes_the_others_in_every_stage() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let gate = Door::default();
        let (seen, door) = (Arc::clone(&order), gate.clone());
        let first = plus_one(&orchestrator);
        let blocker = orchestrator.register(workload::function("blocker", move |_: &u64| {
            door.pass();
            Ok::<_, Error>(0)
        }));
        let second = orchestrator.register(workload::function("second", move |n: &u64| {
            seen.lock().unwrap().push(*n);
            Ok::<_, Error>(*n)
        }));
        let blocked = orchestrator.submit(&blocker, Task::new(0)).unwrap();
        gate.wait_for(1);
        let mut flow = orchestrator.flow(&Pipeline::of(&first).then(&second, Task::new));
        for n in 0..10 {
            flow.submit(Task::new(n).priority(Priority::Low)).unwrap();
        }
        flow.raise(7, Priority::High);
        gate.open();
        (0..10).for_each(|_| _ = flow.wait(LONG).expect("every item ends").result.unwrap());
        assert_eq!(order.lock().unwrap()[0], 8, "item 7, one more");
        drop(blocked);
    });
}

#[test]
fn a_shutdown_in_the_middle_ends_every_item() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let begun = Door::default();
        let tell = begun.clone();
        // Ends when it is told to and not before, so that no item gets through however late the shutdown comes.
        let held = orchestrator.register(workload::function_with("held", move |n: &u64, call| {
            tell.open();
            while call.check_cancelled().is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok::<_, Error>(*n)
        }));
        let one = plus_one(&orchestrator);
        let mut flow = orchestrator.flow(&Pipeline::of(&held).then(&one, Task::new));
        for n in 0..10 {
            flow.submit(Task::new(n)).unwrap();
        }
        begun.pass();
        orchestrator.shutdown(plimsoll_runtime::Shutdown::Cancel);
        for _ in 0..10 {
            assert!(flow.wait(LONG).expect("every item ends").result.is_err());
        }
    });
}

/// Fans out into one task for each of the numbers below the item's.
fn fanned(
    orchestrator: &Orchestrator,
) -> Pipeline<impl Workload<Input = u64, Output = u64, Reference = ()>, Gathered<u64, u64>, plimsoll_runtime::Closed> {
    let (one, picky) = (plus_one(orchestrator), picky(orchestrator));
    Pipeline::of(&one)
        .fan_out(move |n| (0..n).fold(FanOut::new(n), |fan, at| fan.task(&picky, Task::new(at), |done| done.output)))
}

#[test]
fn what_an_item_fans_out_into_is_gathered_and_a_failure_costs_itself_alone() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).build();
        let pipeline = fanned(&orchestrator);
        let results: Vec<_> = orchestrator.run_pipeline(&pipeline, (0..40).map(Task::new)).numbered().collect();
        assert_eq!(results.len(), 40);
        for done in results {
            let Gathered { kept, results } = done.result.expect("no item fails").output;
            assert_eq!((kept, results.len() as u64), (done.item + 1, done.item + 1));
            for (at, result) in (0..).zip(results) {
                match result {
                    Ok(output) => assert_eq!(output, at),
                    Err(failure) => assert!(at % 10 == 0, "{failure}"),
                }
            }
        }
        assert_eq!(orchestrator.unsettled(), 0);
    });
}

#[test]
fn an_item_without_tasks_ends_with_what_is_kept_of_it() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let one = plus_one(&orchestrator);
        let pipeline = Pipeline::of(&one).fan_out(|n| FanOut::<u64, ()>::new(n * 2));
        let done = orchestrator.run_pipeline(&pipeline, [Task::new(20)]).next().expect("a result").expect("done");
        assert_eq!((done.output.kept, done.output.results.len(), done.report.rung), (42, 0, "cpu"));
    });
}

#[test]
fn a_panic_where_outputs_are_gathered_ends_its_task_and_no_other() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).build();
        let one = plus_one(&orchestrator);
        let again = one.clone();
        let pipeline = Pipeline::of(&one).fan_out(move |n| {
            let picky = |done: plimsoll_runtime::Done<u64>| {
                assert!(done.output != 7, "seven");
                done.output
            };
            FanOut::new(()).task(&again, Task::new(n), picky).task(&again, Task::new(n + 1), picky)
        });
        let done = orchestrator.run_pipeline(&pipeline, [Task::new(5)]).next().expect("a result").expect("done");
        let results = done.output.results;
        assert!(matches!(&results[0], Err(failure) if matches!(failure.error, TaskError::Panicked { .. })));
        assert_eq!(results[1].as_ref().ok(), Some(&8));
    });
}

#[test]
fn ending_a_flow_ends_what_its_items_fanned_out_into() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let (one, door) = (plus_one(&orchestrator), Door::default());
        let held = {
            let door = door.clone();
            orchestrator.register(workload::function("held", move |n: &u64| {
                door.pass();
                Ok::<_, Error>(*n)
            }))
        };
        let pipeline = Pipeline::of(&one).fan_out(move |n| {
            let fan = FanOut::new(n).task(&held, Task::new(n), |done| done.output);
            fan.task(&held, Task::new(n), |done| done.output)
        });
        let mut flow = orchestrator.flow(&pipeline);
        flow.submit(Task::new(1)).expect("space");
        door.wait_for(1);
        flow.cancel();
        door.open();
        let done = flow.wait(LONG).expect("it ends").result.expect("what was kept of it is there");
        assert_eq!(done.output.results.len(), 2);
        assert!(
            done.output
                .results
                .iter()
                .any(|result| matches!(result, Err(f) if matches!(f.error, TaskError::Cancelled)))
        );
        eventually("nothing is left", || orchestrator.unsettled() == 0);
    });
}

#[test]
fn a_failure_of_one_task_of_an_item_ends_a_group_of_which_that_was_asked() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let (one, picky) = (plus_one(&orchestrator), picky(&orchestrator));
        let pipeline = Pipeline::of(&one)
            .fan_out(move |n| FanOut::new(n).task(&picky, Task::new(n), |done| done.output))
            .on_failure(OnFailure::EndAll)
            .items_max(2);
        let ended = orchestrator.run_pipeline(&pipeline, (0..1_000).map(Task::new)).count();
        assert!((9..20).contains(&ended), "the tenth fails, and no more are pulled: {ended}");
    });
}
