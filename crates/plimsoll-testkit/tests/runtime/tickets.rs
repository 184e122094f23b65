//! Tickets: waits that end, results that are given once, and tasks that wait for tasks.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::TaskError;
use plimsoll_runtime::{Orchestrator, Registered, RunError, Task, WaitError};

use crate::bounded::{Gate, bounded, eventually};
use crate::scripted::{Piece, Scripted};

fn start(slots: usize) -> (Orchestrator, Registered<Scripted>) {
    let orchestrator = Orchestrator::builder().cpu(slots).build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

#[test]
fn a_wait_that_is_over_leaves_the_ticket_good() {
    bounded(|| {
        let (orchestrator, work) = start(1);
        let (entered, leave) = (Gate::default(), Gate::default());
        let mut ticket = orchestrator.submit(&work, Task::new(Piece::new(7).held(&entered, &leave))).unwrap();
        entered.pass();
        assert!(ticket.poll_now().is_none());
        assert!(matches!(ticket.wait_timeout(Duration::from_millis(1)), Err(WaitError::TimedOut { .. })));
        leave.open();
        assert_eq!(ticket.wait().unwrap().output.value, 7);
    });
}

#[test]
fn waits_work_with_question_marks() {
    fn doubled(orchestrator: &Orchestrator, work: &Registered<Scripted>) -> Result<u64, Box<dyn std::error::Error>> {
        let mut first = orchestrator.submit(work, Task::new(Piece::new(1)))?;
        let second = orchestrator.submit(work, Task::new(Piece::new(2)))?;
        Ok(first.wait_timeout(Duration::from_secs(60))?.output.value + second.wait()?.output.value)
    }
    bounded(|| {
        let (orchestrator, work) = start(1);
        assert_eq!(doubled(&orchestrator, &work).unwrap(), 3);
    });
}

#[test]
fn a_result_is_given_once_and_asking_again_is_an_error() {
    bounded(|| {
        let (orchestrator, work) = start(1);
        let taken = |failure: &RunError| matches!(failure.error, TaskError::ResultTaken);
        let mut ticket = orchestrator.submit(&work, Task::new(Piece::new(7))).unwrap();
        smol::block_on(async {
            assert_eq!((&mut ticket).await.unwrap().output.value, 7);
            assert!(taken(&(&mut ticket).await.err().unwrap()), "awaiting twice ends");
        });
        assert!(matches!(ticket.wait_timeout(Duration::ZERO), Err(WaitError::Failed(failure)) if taken(&failure)));
        assert!(taken(&ticket.wait().err().unwrap()));
    });
}

#[test]
fn a_ticket_that_cancels_on_drop_does_and_another_does_not() {
    bounded(|| {
        let (orchestrator, work) = start(1);
        for cancels in [false, true] {
            let (entered, leave) = (Gate::default(), Gate::default());
            let first = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
            entered.pass();
            let (ran, run) = (Gate::default(), Gate::default());
            run.open();
            let behind = orchestrator.submit(&work, Task::new(Piece::new(2).held(&ran, &run))).unwrap();
            drop(if cancels { behind.cancel_on_drop() } else { behind });
            assert_eq!(orchestrator.unsettled(), if cancels { 1 } else { 2 });
            leave.open();
            first.wait().unwrap();
            if !cancels {
                ran.pass();
            }
            eventually("all has ended", || orchestrator.unsettled() == 0);
        }
        // Nothing is left to cancel once the result was taken out.
        let mut ticket = orchestrator.submit(&work, Task::new(Piece::new(3))).unwrap().cancel_on_drop();
        assert_eq!(ticket.wait_timeout(Duration::from_secs(60)).unwrap().output.value, 3);
    });
}

#[test]
fn a_task_that_waits_for_another_of_its_orchestrator_is_told_so() {
    bounded(|| {
        let orchestrator = Arc::new(Orchestrator::builder().cpu(1).build());
        let other = Orchestrator::builder().cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let elsewhere = other.register(Scripted::default());
        let (inner, inside) = (Arc::downgrade(&orchestrator), work.clone());
        let outer = Piece::new(1).on_run(move |_, _| {
            let orchestrator = inner.upgrade().expect("it runs this");
            let failure = orchestrator.run(&inside, Task::new(Piece::new(2))).err().expect("it would wait for itself");
            assert!(matches!(failure.error, TaskError::NestedWait), "{failure}");
            let mut inbox = orchestrator.inbox(&inside);
            inbox.submit(Task::new(Piece::new(3))).unwrap();
            let told = inbox.poll_any_blocking(Duration::from_secs(60)).expect("told at once");
            assert!(matches!(told.err().expect("not done").error, TaskError::NestedWait));
            // Another orchestrator has slots of its own.
            assert_eq!(other.run(&elsewhere, Task::new(Piece::new(4))).unwrap().output.value, 4);
            Ok(())
        });
        assert_eq!(orchestrator.run(&work, Task::new(outer)).unwrap().output.value, 1);
        eventually("what it gave up has ended", || orchestrator.unsettled() == 0);
    });
}

#[test]
fn failures_name_their_input_and_say_their_cause_once() {
    bounded(|| {
        let (orchestrator, work) = start(2);
        let piece = |n| match n {
            3 => Piece::new(n).on_run(|_, _| Err(plimsoll_core::Fault::work("three is a bad number"))),
            _ => Piece::new(n),
        };
        let results: Vec<_> = orchestrator.run_all(&work, (0..6).map(|n| Task::new(piece(n)))).collect();
        let failure = results.into_iter().find_map(Result::err).expect("one fails");
        assert_eq!(failure.index, 3);
        let mut told = failure.to_string();
        let mut source = std::error::Error::source(&failure);
        while let Some(cause) = source {
            told += &format!("\n{cause}");
            source = cause.source();
        }
        assert_eq!(told.matches("three is a bad number").count(), 1, "{told}");
    });
}
