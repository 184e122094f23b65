//! Our side, in a process of its own.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll::Orchestrator;
use plimsoll::array::sink::Filesystem;
use plimsoll::array::{ArrayOptions, ArraySpec, ArrayWriter, Layout, Levels};
use serde_json::json;

use crate::rows::Row;
use crate::sides::Asked;

/// Does what is asked, and prints what it took.
pub(crate) fn run(asked: &str) {
    let Asked { row, input, bytes, output } = serde_json::from_str(asked).expect("what is asked is JSON");
    let elements = read(&input, bytes);
    let orchestrator = Arc::new(Orchestrator::builder().cpu(cores()).build());
    let before = resident();
    forget_peak();
    let begin = (Instant::now(), cpu_seconds());
    let mut writers: Vec<ArrayWriter> = (0..row.arrays)
        .map(|at| {
            let sink = Arc::new(Filesystem::new(output.join(at.to_string())).without_sync());
            let layout = Layout::new(&spec(&row)).expect("a layout");
            let options = ArrayOptions { arrays_at_once: row.arrays, ..ArrayOptions::default() };
            ArrayWriter::new(Arc::clone(&orchestrator), layout, sink, options).expect("a new array")
        })
        .collect();
    let plan: u64 = writers.iter().map(|writer| writer.plan().memory().0).sum();
    let mut stall = Duration::ZERO;
    for piece in elements.chunks(row.append.unwrap_or(row.step_bytes()) as usize) {
        for writer in &mut writers {
            let begun = Instant::now();
            writer.append(piece).expect("appended");
            stall = stall.max(begun.elapsed());
        }
    }
    writers.into_iter().for_each(|writer| {
        writer.close().expect("closed");
    });
    let took = json!({
        "seconds": begin.0.elapsed().as_secs_f64(), "cpu": cpu_seconds() - begin.1, "stall": stall.as_secs_f64(),
        "peak": peak().saturating_sub(before), "plan": plan,
    });
    println!("{took}");
}

fn read(input: &Path, bytes: u64) -> Vec<u8> {
    let mut elements = vec![0; bytes as usize];
    File::open(input).and_then(|mut file| file.read_exact(&mut elements)).expect("the elements");
    elements
}

fn spec(row: &Row) -> ArraySpec {
    let codec = match row.codec.as_str() {
        "zstd" => "zstd:3",
        "blosc-lz4" => "blosc:lz4:5:shuffle",
        "gzip" => "gzip:6",
        other => other,
    };
    ArraySpec {
        shard: Some(row.shard.clone()),
        codec: codec.parse().expect("a codec"),
        levels: if row.has_levels { Levels::Count(3) } else { Levels::Count(1) },
        ..ArraySpec::new([&[0], &row.step[..]].concat(), row.data_type.parse().expect("a type"), row.chunk.clone())
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Of this process, its ended threads included; `/proc` would say it in hundredths of a second, and a row takes a few.
fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Bytes of this process in memory now, and the most that there were since [`forget_peak`].
fn resident() -> u64 {
    status("VmRSS:")
}

fn peak() -> u64 {
    status("VmHWM:")
}

fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_whitespace().nth(1));
    line.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Only what comes from now on counts: the elements are there already.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
