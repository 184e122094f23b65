//! A process to its end: time, processor time and memory.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often memory is looked at. The kernel keeps the peak: only what a process takes after the last look is not seen.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Linux counts processor time in hundredths of a second for user programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process took.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: u64,
}

/// Runs a process. Nothing else of ours runs meanwhile: processor time is counted for all our children.
pub(crate) fn measure(mut command: Command) -> Measured {
    let before = children_cpu_seconds();
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
    let (id, is_over, peak) = (child.id(), AtomicBool::new(false), AtomicU64::new(0));
    let (status, seconds) = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                peak.fetch_max(peak_bytes(id).unwrap_or(0), Ordering::Relaxed);
                thread::sleep(LOOK_EVERY);
            }
        });
        let status = child.wait().expect("it is our child");
        let seconds = start.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        (status, seconds)
    });
    assert!(status.success(), "{command:?} failed");
    Measured { seconds, cpu_seconds: children_cpu_seconds() - before, peak_bytes: peak.into_inner() }
}

/// The 16th and 17th field of `/proc/self/stat`, counted after the name, which may hold blanks.
fn children_cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(13) + ticks(14)) / TICKS_PER_SECOND
}

fn peak_bytes(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
