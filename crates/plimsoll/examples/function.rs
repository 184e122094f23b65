//! A plain function on every core, with a way that needs less memory: `cargo run --example function`.

use plimsoll::{Bytes, Machine, MachineOptions, Orchestrator, Task, workload};

/// The most frequent word of a text.
fn count_words(text: &str) -> Option<(String, usize)> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.sort_unstable();
    let runs = words.chunk_by(|a, b| a == b).map(|run| (run[0].to_owned(), run.len()));
    runs.max_by_key(|(_, count)| *count)
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let machine = Machine::open(&MachineOptions::from_env()?);
    let orchestrator = Orchestrator::builder().devices(machine.devices).build();

    let frequent = workload::function_with("frequent word", |text: &String, call| {
        call.check_cancelled()?; // long work asks now and then
        Ok::<_, plimsoll::Fault>(count_words(text))
    })
    .units(|text| text.len() as u64) // what its time grows with
    .bytes(|text| Bytes(4 * text.len() as u64)) // promised before it runs
    .or("line by line", |text, call| {
        let lines = text.lines().filter_map(|line| call.check_cancelled().ok().and_then(|()| count_words(line)));
        Ok::<_, plimsoll::Fault>(lines.max_by_key(|(_, count)| *count))
    })
    .bytes(|text| Bytes(text.lines().map(str::len).max().unwrap_or(0) as u64 * 4));
    let frequent = orchestrator.register(frequent);

    let texts = (1..=20).map(|n| "load to the line never past the line ".repeat(n * 50));
    for done in orchestrator.run_all(&frequent, texts.map(Task::new)).ordered() {
        let done = done?;
        let (word, count) = done.output.ok_or("a text without words")?;
        assert_eq!((word.as_str(), count % 100), ("the", 0));
        println!("text {}: '{word}' {count} times, {} on {}", done.index, done.report.run, done.report.device);
    }
    Ok(())
}
