//! Priorities, deadlines and cancelling: `cargo run --example urgency`.

use std::time::Duration;

use plimsoll::{Orchestrator, Priority, Task, TaskError, WaitError, workload};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orchestrator = Orchestrator::builder().cpu(1).build();
    let nap = orchestrator.register(workload::function_with("nap", |millis: &u64, call| {
        for done in 0..*millis {
            call.check_cancelled()?;
            call.progress(done, *millis);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok::<_, plimsoll::Fault>(*millis)
    }));

    // Behind a long one there are a background task and one that somebody waits for.
    let mut long = orchestrator.submit(&nap, Task::new(50))?;
    let idle = orchestrator.submit(&nap, Task::new(1).priority(Priority::Background))?;
    let urgent = orchestrator.submit(&nap, Task::new(2).priority(Priority::Critical))?;
    match long.wait_timeout(Duration::from_millis(5)) {
        Err(WaitError::TimedOut { .. }) => println!("still busy: {:.0} % done", 100.0 * long.progress()),
        ended => println!("{:?}", ended?.output),
    }
    println!("the urgent one took {} ms", urgent.wait()?.output);
    println!("then the other {} ms", idle.wait()?.output);

    // A result that comes too late is of no use.
    let late = orchestrator.submit(&nap, Task::new(60_000).deadline(Duration::from_millis(20)))?;
    let error = late.wait().err().ok_or("it was in time")?.error;
    assert!(matches!(error, TaskError::DeadlinePassed { .. }));
    println!("{error}");

    // Nor is one that nobody wants any more.
    let unwanted = orchestrator.submit(&nap, Task::new(60_000))?.cancel_on_drop();
    drop(unwanted);
    println!("and the rest is done: {} ms", orchestrator.run(&nap, Task::new(3))?.output);
    Ok(())
}
