//! Stages over items: each stage is routed by itself, and what was begun is finished first:
//! `cargo run --example pipeline`.

use plimsoll::{Bytes, OnFailure, Orchestrator, Pipeline, Task, workload};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orchestrator = Orchestrator::builder().cpu(2).build();
    let parse = orchestrator.register(workload::function("parse", |line: &String| line.parse::<u64>()));
    let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
    let print = orchestrator.register(workload::function("print", |n: &u64| Ok::<_, std::io::Error>(format!("<{n}>"))));

    // At most 8 items and 4 KiB of them under way; a line that is no number ends only its own item.
    let pipeline = Pipeline::of(&parse)
        .then(&square, Task::new)
        .then(&print, Task::new)
        .items_max(8)
        .bytes_max(Bytes::kib(4))
        .on_failure(OnFailure::EndItem);
    let mut flow = orchestrator.flow(&pipeline);
    let mut lines = ["1", "2", "three", "4"].into_iter().cycle().take(100).map(str::to_owned).peekable();
    let (mut done, mut failed) = (0, 0);
    while lines.peek().is_some() || flow.outstanding() > 0 {
        while let Some(line) = lines.next_if(|line| !flow.is_full(Bytes(line.len() as u64))) {
            let bytes = Bytes(line.len() as u64);
            flow.submit_sized(Task::new(line), bytes).map_err(|refused| refused.reason)?;
        }
        match flow.wait(std::time::Duration::from_secs(60)).ok_or("a stage hangs")?.result {
            Ok(item) => {
                done += 1;
                assert!(["<1>", "<4>", "<16>"].contains(&item.output.as_str()));
            }
            Err(failure) => {
                failed += 1;
                assert!(failure.to_string().contains("invalid digit"), "{failure}");
            }
        }
    }
    println!("{done} items done, {failed} failed");
    assert_eq!((done, failed), (75, 25));
    Ok(())
}
