//! Sharing a device with another program: a grant keeps tasks out of its bytes, and can be asked back:
//! `cargo run --example leases`.

use std::time::Duration;

use plimsoll::{Bytes, DeviceId, GrantRequest, Orchestrator, Priority, Task, workload};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orchestrator = Orchestrator::builder().cpu(1).memory_limit(Bytes::mib(100)).build();
    let cpu = DeviceId(0);

    // 80 MiB for a model, or 30 if somebody more urgent needs the rest.
    let request = GrantRequest::new(&[(cpu, Bytes::mib(80))]).or(&[(cpu, Bytes::mib(30))]).priority(Priority::Low);
    let grant = orchestrator.grant(request)?.wait(Duration::from_secs(60)).map_err(|not| format!("{not:?}"))?;
    println!("the model holds {:?}", grant.portions());

    let large = workload::function("large", |n: &u64| Ok::<_, std::io::Error>(n + 1)).bytes(|_| Bytes::mib(50));
    let large = orchestrator.register(large);
    let ticket = orchestrator.submit(&large, Task::new(41).priority(Priority::High))?;
    // The task does not fit beside the model, so its owner is asked to step down.
    if let Some(recall) = grant.wait_for_recall(Duration::from_secs(60)) {
        println!("asked back: {recall:?}");
        grant.step_to(1)?;
    }
    println!("the task gave {}, the model holds {:?}", ticket.wait()?.output, grant.portions());
    Ok(())
}
