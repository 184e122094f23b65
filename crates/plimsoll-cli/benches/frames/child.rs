//! A process whose output is read and thrown away: time, processor time, memory, and some of what it wrote.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Bytes of output kept to be compared: the first few frames.
const KEPT: usize = 26 << 20;
/// How often memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Linux counts processor time in hundredths of a second for user programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process took.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: u64,
    pub(crate) output: Vec<u8>,
}

/// Runs a process to its end and reads all it writes.
pub(crate) fn measure(command: &mut Command) -> Measured {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("it was asked for");
    let reader = thread::spawn(move || read_all(&mut stdout));
    let (cpu_seconds, peak_bytes) = watch(&mut child);
    let output = reader.join().expect("reading never panics");
    let seconds = start.elapsed().as_secs_f64();
    let result = child.wait_with_output().expect("it ended");
    assert!(result.status.success(), "{command:?}: {}", String::from_utf8_lossy(&result.stderr));
    Measured { seconds, cpu_seconds, peak_bytes, output }
}

fn read_all(from: &mut impl Read) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let room = KEPT.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&buffer[..room]);
    }
    kept
}

/// Processor time, and memory as last seen before the end. A process that has ended and was not waited for still tells
/// what it took.
fn watch(child: &mut Child) -> (f64, u64) {
    let (id, mut peak) = (Pid::from_child(child), 0);
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(id), look).expect("it is our child").is_none() {
        peak = peak.max(peak_bytes(child.id()).unwrap_or(0));
        thread::sleep(LOOK_EVERY);
    }
    (cpu_seconds(child.id()).unwrap_or(0.0), peak)
}

/// The 14th and 15th field of `/proc/PID/stat`, counted after the name, which may hold blanks.
fn cpu_seconds(id: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = [fields.get(11)?, fields.get(12)?].iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(ticks / TICKS_PER_SECOND)
}

/// The most memory a process ever had, as Linux tells it.
pub(crate) fn peak_bytes(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
