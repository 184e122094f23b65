//! A process to its end: time, processor time and memory.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often memory is looked at. The kernel keeps the peak: only what a process takes after the last look is not seen.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What a process took; of several runs, the least time and the most memory.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: u64,
}

impl Measured {
    /// The best of both: what else the machine does only ever adds.
    pub(crate) fn best(best: &mut Option<Self>, new: Self) {
        *best = Some(match best.take() {
            None => new,
            Some(before) => Self {
                seconds: before.seconds.min(new.seconds),
                cpu_seconds: before.cpu_seconds.min(new.cpu_seconds),
                peak_bytes: before.peak_bytes.max(new.peak_bytes),
            },
        });
    }
}

/// Runs a process. Nothing else of ours runs meanwhile: processor time is counted for all our children.
pub(crate) fn measure(mut command: Command) -> Measured {
    let before = children_cpu_seconds();
    let start = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
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

/// To the microsecond; the files below `/proc` count in hundredths of a second.
#[expect(unsafe_code, reason = "there is no safe call for it among our dependencies")]
fn children_cpu_seconds() -> f64 {
    // SAFETY: an all-zero `rusage` is a valid one, and the call writes nothing but it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage), 0, "the kernel counts for its processes");
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn peak_bytes(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
