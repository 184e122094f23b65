//! `after`: a task starts when all it names have succeeded, and ends with the first cause if one has not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::{Fault, SubmitErrorKind, TaskError, TaskId};
use plimsoll_runtime::{Orchestrator, Registered, Task, Ticket};

use crate::bounded::{Gate, bounded, within};
use crate::scripted::{Answer, Piece, Scripted};

fn start() -> (Orchestrator, Registered<Scripted>) {
    let orchestrator = Orchestrator::builder().cpu(3).build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

/// A piece that checks that exactly `before` have run, then counts itself.
fn nth(clock: &Arc<AtomicU64>, before: std::ops::RangeInclusive<u64>) -> Piece {
    let clock = Arc::clone(clock);
    Piece::new(0).on_run(move |_, _| {
        let at = clock.fetch_add(1, Ordering::SeqCst);
        if before.contains(&at) { Ok(()) } else { Err(Fault::work(format!("ran as number {at}, not {before:?}"))) }
    })
}

#[test]
fn a_chain_runs_in_order() {
    bounded(|| {
        let (orchestrator, work) = start();
        let clock = Arc::default();
        let mut last: Option<TaskId> = None;
        let tickets: Vec<Ticket<Answer>> = (0..200)
            .map(|n| {
                let ticket = orchestrator.submit(&work, Task::new(nth(&clock, n..=n)).after(last)).unwrap();
                last = Some(ticket.id());
                ticket
            })
            .collect();
        for ticket in tickets {
            within(ticket, "a link of the chain").unwrap();
        }
    });
}

#[test]
fn a_diamond_waits_for_both_sides() {
    bounded(|| {
        let (orchestrator, work) = start();
        for _ in 0..50 {
            let clock = Arc::default();
            let top = orchestrator.submit(&work, Task::new(nth(&clock, 0..=0))).unwrap();
            let sides =
                [(); 2].map(|()| orchestrator.submit(&work, Task::new(nth(&clock, 1..=2)).after([top.id()])).unwrap());
            let below = sides.iter().map(Ticket::id).chain([top.id(), top.id()]);
            let bottom = orchestrator.submit(&work, Task::new(nth(&clock, 3..=3)).after(below)).unwrap();
            within(bottom, "the bottom of the diamond").unwrap();
            for ticket in sides.into_iter().chain([top]) {
                within(ticket, "the rest of the diamond").unwrap();
            }
        }
    });
}

#[test]
fn the_first_cause_goes_down_the_whole_chain() {
    bounded(|| {
        let (orchestrator, work) = start();
        let gate = Gate::default();
        let wait = gate.clone();
        let first = Piece::new(0).on_run(move |_, _| {
            wait.pass();
            Err(Fault::work("the first cause"))
        });
        let first = orchestrator.submit(&work, Task::new(first)).unwrap();
        let root = first.id();
        let mut last = root;
        let mut rest = Vec::new();
        for n in 1..20 {
            let ticket = orchestrator.submit(&work, Task::new(Piece::new(n)).after([last])).unwrap();
            last = ticket.id();
            rest.push(ticket);
        }
        gate.open();
        assert!(within(first, "the first").is_err());
        for ticket in rest {
            let error = within(ticket, "a dependent").err().unwrap().error;
            assert!(matches!(&error, TaskError::PredecessorFailed { task, .. } if *task == root), "{error}");
            assert_eq!(error.first_cause().to_string(), "the first cause");
        }
        assert_eq!(orchestrator.unsettled(), 0);
    });
}

#[test]
fn a_predecessor_that_is_already_over() {
    bounded(|| {
        let (orchestrator, work) = start();
        let good = orchestrator.run(&work, Task::new(Piece::new(1))).unwrap().id;
        let bad = Piece::new(1).on_run(|_, _| Err(Fault::work("long ago")));
        let bad = orchestrator.run(&work, Task::new(bad)).err().unwrap().id.unwrap();
        let after_good = orchestrator.submit(&work, Task::new(Piece::new(2)).after([good])).unwrap();
        assert_eq!(within(after_good, "after a success").unwrap().output.value, 2);
        let after_both = orchestrator.submit(&work, Task::new(Piece::new(2)).after([good, bad])).unwrap();
        let error = within(after_both, "after a failure").err().unwrap().error;
        assert_eq!(error.first_cause().to_string(), "long ago");
        let error = orchestrator.run(&work, Task::new(Piece::new(2)).after([bad])).err().unwrap().error;
        assert!(matches!(error, TaskError::PredecessorFailed { task, .. } if task == bad));
    });
}

/// A task of another orchestrator is refused, running or not: nobody here would ever hear of its end.
#[test]
fn a_task_of_another_orchestrator_is_refused() {
    bounded(|| {
        let ((here, work), (there, other)) = (start(), start());
        let (entered, leave) = (Gate::default(), Gate::default());
        let foreign = there.submit(&other, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let refused = here.submit(&work, Task::new(Piece::new(2)).after([foreign.id()])).expect_err("refused");
        assert_eq!(refused.reason, SubmitErrorKind::UnknownPredecessor { task: foreign.id() });
        leave.open();
        within(foreign, "the foreign one").unwrap();
    });
}
