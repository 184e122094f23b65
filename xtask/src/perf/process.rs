//! A process to its end: how long, how much memory, what it said.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often memory is looked at. The kernel keeps the peak: only what a process takes after the last look is not seen.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What a process took and said.
pub(crate) struct Ran {
    pub(crate) seconds: f64,
    pub(crate) peak_bytes: u64,
    /// Stdout and stderr.
    pub(crate) said: String,
}

/// Runs a program.
pub(crate) fn run(program: &Path, words: &[String], environment: &[(&str, String)]) -> Result<Ran, String> {
    let mut command = Command::new(program);
    command.args(words).envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let child = command.spawn().map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    let (id, is_over, peak) = (child.id(), AtomicBool::new(false), AtomicU64::new(0));
    let (ended, seconds) = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                peak.fetch_max(peak_of(id).unwrap_or(0), Ordering::Relaxed);
                thread::sleep(LOOK_EVERY);
            }
        });
        let ended = child.wait_with_output();
        let seconds = start.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        (ended, seconds)
    });
    let Output { status, stdout, stderr } = ended.map_err(|error| format!("cannot wait for it: {error}"))?;
    let said = format!("{}\n{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    if !status.success() {
        return Err(format!("{} {} failed: {}", program.display(), words.join(" "), said.trim()));
    }
    Ok(Ran { seconds, peak_bytes: peak.into_inner(), said })
}

fn peak_of(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_heard_to_its_end_and_a_failure_is_told() {
        let words = ["-c".to_owned(), "echo $WORD; echo b >&2; sleep 0.02".to_owned()];
        let ran = run(Path::new("sh"), &words, &[("WORD", "a".to_owned())]).unwrap();
        assert_eq!(ran.said.split_whitespace().collect::<String>(), "ab");
        assert!(ran.seconds >= 0.02);
        let words = ["-c".to_owned(), "echo why; exit 3".to_owned()];
        assert!(run(Path::new("sh"), &words, &[]).err().is_some_and(|told| told.contains("failed: why")));
    }
}
