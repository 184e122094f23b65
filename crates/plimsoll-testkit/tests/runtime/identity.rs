//! What is mine is never taken for yours: workloads, sessions and orchestrators side by side.

use plimsoll_core::{SubmitErrorKind, TaskError};
use plimsoll_runtime::{Orchestrator, Task};

use crate::bounded::{bounded, within};
use crate::scripted::{Piece, Scripted};

#[test]
fn two_orchestrators_in_one_process() {
    bounded(|| {
        let pair = [3, 5].map(|factor| {
            let orchestrator = Orchestrator::builder().cpu(2).build();
            let work = orchestrator.register(Scripted::default().factor(factor));
            (orchestrator, work, factor)
        });
        std::thread::scope(|scope| {
            for (orchestrator, work, factor) in &pair {
                scope.spawn(move || {
                    let tasks = (0..500).map(|n| Task::new(Piece::new(n)));
                    let results = orchestrator.run_all(work, tasks).ordered();
                    let values: Vec<u64> = results.map(|done| done.unwrap().output.value).collect();
                    assert_eq!(values, (0..500).map(|n| n * factor).collect::<Vec<_>>());
                });
            }
        });
    });
}

#[test]
fn a_workload_of_another_orchestrator_is_refused() {
    bounded(|| {
        let here = Orchestrator::builder().cpu(1).build();
        let there = Orchestrator::builder().cpu(1).build();
        let mine = here.register(Scripted::named("mine").factor(2));
        let theirs = there.register(Scripted::named("theirs").factor(3));
        assert_eq!(here.run(&mine, Task::new(Piece::new(7))).unwrap().output.value, 14);
        let refused = here.submit(&theirs, Task::new(Piece::new(7))).expect_err("it was never registered here");
        assert_eq!(refused.reason, SubmitErrorKind::UnknownWorkload);
        assert!(here.run(&theirs, Task::new(Piece::new(7))).is_err());
        assert!(here.run_all(&theirs, [Task::new(Piece::new(7))]).next().unwrap().is_err());
        assert!(here.why(&theirs, Task::new(Piece::new(7))).is_empty());
        assert_eq!(there.run(&theirs, Task::new(Piece::new(7))).unwrap().output.value, 21);
    });
}

/// A warm session's key holds all that changes its answer: two workloads of one name are still two workloads.
#[test]
fn two_workloads_of_one_name_do_not_share_sessions() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let double = orchestrator.register(Scripted::named("scale").factor(2));
        let triple = orchestrator.register(Scripted::named("scale").factor(3));
        for n in 0..10 {
            assert_eq!(orchestrator.run(&double, Task::new(Piece::new(n))).unwrap().output.value, 2 * n);
            assert_eq!(orchestrator.run(&triple, Task::new(Piece::new(n))).unwrap().output.value, 3 * n);
        }
        let other = plimsoll_runtime::workload::function("scale", |n: &u64| Ok::<_, std::io::Error>(n + 1));
        let other = orchestrator.register(other);
        assert_eq!(orchestrator.run(&other, Task::new(4)).unwrap().output, 5);
    });
}

#[test]
fn an_error_always_says_why() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let nowhere = Task::new(Piece::new(1)).devices([]);
        let no_such_rung = Task::new(Piece::new(1)).rung("gpu-express");
        for task in [nowhere, no_such_rung] {
            let ticket = orchestrator.submit(&work, task).unwrap();
            let error = within(ticket, "a task that nobody can take").err().unwrap().error;
            let TaskError::Exhausted { attempts } = &error else { panic!("{error}") };
            assert!(!attempts.is_empty(), "the error lists no reason: {error}");
        }
    });
}
