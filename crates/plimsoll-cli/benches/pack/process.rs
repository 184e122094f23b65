//! A process to its end: time, processor time and memory.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often memory and processor time are looked at. What a process takes after the last look is not seen.
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

/// Runs a process.
pub(crate) fn measure(mut command: Command) -> Measured {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
    let (mut cpu, mut peak) = (0.0, 0);
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        cpu = cpu_seconds(child.id()).unwrap_or(cpu);
        peak = peak.max(peak_bytes(child.id()).unwrap_or(0));
        thread::sleep(LOOK_EVERY);
    };
    let seconds = start.elapsed().as_secs_f64();
    assert!(status.success(), "{command:?} failed");
    Measured { seconds, cpu_seconds: cpu, peak_bytes: peak }
}

/// The 14th and 15th field of `/proc/PID/stat`, counted after the name, which may hold blanks.
fn cpu_seconds(id: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = [fields.get(11)?, fields.get(12)?].iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(ticks / TICKS_PER_SECOND)
}

fn peak_bytes(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
