//! How far each stage is, in a few letters a stage: where a bar is shorter than the one before it, that stage is behind.

use std::time::{Duration, Instant};

use plimsoll::array::ArrayProgress;

/// Cells of a bar.
const CELLS: u64 = 6;

/// What the stages have done, and how fast since it was shown last.
pub(super) struct Bars {
    last: (Instant, ArrayProgress),
}

impl Bars {
    pub(super) fn new() -> Self {
        Self { last: (Instant::now(), ArrayProgress::default()) }
    }

    pub(super) fn line(&mut self, now: ArrayProgress) -> String {
        let (then, before) = std::mem::replace(&mut self.last, (Instant::now(), now));
        line(&before, &now, then.elapsed())
    }
}

fn line(before: &ArrayProgress, now: &ArrayProgress, took: Duration) -> String {
    let stages = [
        ("read", before.taken, now.taken),
        ("prepare", before.prepared, now.prepared),
        ("pack", before.packed, now.packed),
        ("store", before.written, now.written),
    ];
    let stages = stages.map(|(name, before, after)| {
        let full = (after * CELLS).checked_div(now.taken).unwrap_or(0).min(CELLS) as usize;
        let bar = "▰".repeat(full) + &"▱".repeat(CELLS as usize - full);
        let speed = after.saturating_sub(before) as f64 / took.as_secs_f64().max(1e-9) / f64::from(1 << 30);
        format!("{name} {bar} {speed:.2}")
    });
    let ratio = now.written as f64 / now.stored.max(1) as f64;
    format!("{} GiB/s  {ratio:.2} : 1", stages.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(taken: u64, prepared: u64, packed: u64, written: u64, stored: u64) -> ArrayProgress {
        let mut progress = ArrayProgress::default();
        (progress.taken, progress.prepared, progress.packed) = (taken, prepared, packed);
        (progress.written, progress.stored) = (written, stored);
        progress
    }

    #[test]
    fn a_stage_that_is_behind_has_a_shorter_bar() {
        let gib = 1 << 30;
        let now = progress(6 * gib, 5 * gib, 4 * gib, 3 * gib, gib);
        let told = line(&progress(gib, gib, gib, gib, gib), &now, Duration::from_secs(2));
        assert_eq!(told, "read ▰▰▰▰▰▰ 2.50  prepare ▰▰▰▰▰▱ 2.00  pack ▰▰▰▰▱▱ 1.50  store ▰▰▰▱▱▱ 1.00 GiB/s  3.00 : 1");
        assert!(line(&ArrayProgress::default(), &ArrayProgress::default(), Duration::ZERO).contains("0.00"));
    }
}
