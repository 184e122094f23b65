//! From async code: submit, await, and take results as a stream, under tokio here and under any other runtime:
//! `cargo run --example async_tokio`.

use futures_util::StreamExt;
use plimsoll::{Orchestrator, Task, workload};

async fn work(orchestrator: &Orchestrator) -> Result<(), Box<dyn std::error::Error>> {
    let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));

    // While the queue is full this waits, and the executor goes on with other futures.
    let ticket = orchestrator.submit_async(&square, Task::new(12)).await?;
    // A future that is dropped takes its task with it, if asked to.
    println!("12² = {}", ticket.cancel_on_drop().await?.output);

    let mut results = orchestrator.run_all(&square, (0..1_000).map(Task::new)).ordered().stream();
    let mut sum = 0;
    while let Some(done) = results.next().await {
        sum += done?.output;
    }
    assert_eq!(sum, 332_833_500);
    println!("the first thousand squares add up to {sum}");
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orchestrator = Orchestrator::builder().cpu(2).queue_limit(64).build();
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?.block_on(work(&orchestrator))
}
