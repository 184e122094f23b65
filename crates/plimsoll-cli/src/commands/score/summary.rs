//! What there is to say at the end of a run: how many, how fast, where, and what went otherwise than planned.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll::image::metrics::Metric;
use plimsoll::machine::DeviceName;
use plimsoll::score::{MetricScore, PairScores, Scored};
use plimsoll::{Fault, Setback};

use super::device_name;
use crate::output::counted;

/// Counts over all pairs.
#[derive(Default)]
pub(super) struct Summary {
    /// Pairs with scores.
    pub(super) scored: usize,
    /// Pairs without.
    pub(super) failed: usize,
    /// Pairs that an earlier run had scored.
    pub(super) kept: usize,
    hits: u64,
    misses: u64,
    /// Tasks that ran on a rung below another of the same kind of device.
    lower_rungs: u64,
    out_of_memory: u64,
    other_failures: u64,
    /// For each metric the side below which images are too small for all its scales, and how many were.
    small: BTreeMap<&'static str, (u32, u64)>,
    /// Tasks by device and rung.
    places: BTreeMap<(String, &'static str), u64>,
}

impl Summary {
    pub(super) fn count(&mut self, scored: &Scored, names: &[DeviceName]) {
        match &scored.outcome {
            Ok(scores) => self.count_scores(scores, names),
            Err(_) => self.failed += 1,
        }
    }

    fn count_scores(&mut self, scores: &PairScores, names: &[DeviceName]) {
        if scores.failures().is_some() {
            self.failed += 1;
        } else {
            self.scored += 1;
        }
        self.count_small(scores);
        for MetricScore { metric, report, .. } in scores.good() {
            self.lower_rungs += u64::from(has_better_rung(*metric, report.rung));
            self.hits += u64::from(report.reference_hits);
            self.misses += u64::from(report.reference_misses);
            *self.places.entry((device_name(report.device, names), report.rung)).or_default() += 1;
            for attempt in &report.attempts {
                match &attempt.setback {
                    Setback::Failed(Fault::OutOfMemory { .. }) | Setback::Refused(_) => self.out_of_memory += 1,
                    Setback::Failed(_) | Setback::Distrusted => self.other_failures += 1,
                }
            }
        }
    }

    /// Images that are too small for all that a metric looks at.
    fn count_small(&mut self, scores: &PairScores) {
        let size = scores.reference.image.size();
        let side = size.width.min(size.height);
        for metric in scores.good().map(|score| score.metric).filter(|metric| side < metric.about().side_full) {
            self.small.entry(metric.name()).or_insert((metric.about().side_full, 0)).1 += 1;
        }
    }

    /// The lines of the summary: what is counted, and how much.
    pub(super) fn lines(&self, took: Duration) -> Vec<(&'static str, String)> {
        let rate = self.scored as f64 / took.as_secs_f64().max(1e-9);
        let mut lines = vec![
            ("images", format!("{} in {:.2} s, {rate:.1} per second", self.scored, took.as_secs_f64())),
            ("references", format!("{}, {}", counted(self.hits, "cached hit"), counted(self.misses, "miss"))),
            ("tasks", self.places()),
            ("stepped down", self.stepped_down()),
        ];
        for (metric, (side, count)) in &self.small {
            let images = counted(*count, "image");
            lines.push((
                "too small",
                format!("{images} below {side} pixels a side: {metric} saw fewer scales, or filled up"),
            ));
        }
        if self.kept > 0 {
            lines.push(("kept", format!("{} from an earlier run", self.kept)));
        }
        if self.failed > 0 {
            lines.push(("failed", self.failed.to_string()));
        }
        lines
    }

    /// The devices that did it, for a report.
    pub(super) fn places(&self) -> String {
        let place = |((device, rung), count): (&(String, &str), &u64)| format!("{count} on {device} ({rung})");
        let places: Vec<String> = self.places.iter().map(place).collect();
        if places.is_empty() { "none".to_owned() } else { places.join(", ") }
    }

    fn stepped_down(&self) -> String {
        let failed = match (self.out_of_memory, self.other_failures) {
            (0, 0) => "no attempt failed".to_owned(),
            (memory, 0) => format!("{} ran out of memory", counted(memory, "attempt")),
            (memory, other) => {
                format!("{} ran out of memory, {other} failed otherwise", counted(memory, "attempt"))
            }
        };
        format!("{} on a lower rung; {failed}", counted(self.lower_rungs, "task"))
    }
}

/// Whether the metric has a better rung on the same kind of device.
fn has_better_rung(metric: Metric, rung: &str) -> bool {
    let kind = |rung: &str| rung.starts_with("gpu");
    metric.about().rungs.iter().take_while(|better| **better != rung).any(|better| kind(better) == kind(rung))
}
