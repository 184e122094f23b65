//! The table: a line for each side of each row.

use crate::reasons;
use crate::rows::Row;
use crate::sides::{Figures, OURS};

/// What a side took for a row, and how much longer a peer took than we did.
pub(crate) struct Line {
    pub(crate) row: String,
    pub(crate) side: &'static str,
    pub(crate) figures: Figures,
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

/// Every line.
pub(crate) struct Table(Vec<Line>);

impl Table {
    pub(crate) fn begin() -> Self {
        println!(
            "{:44} {:12} {:>7} {:>9} {:>9} {:>7} {:>7} {:>9} {:>9} {:>8}",
            "ROW", "SIDE", "GiB/s", "CPU s/GiB", "STALL ms", "WALL ×", "CPU ×", "PEAK MiB", "PLAN MiB", "OF PLAN"
        );
        Self(Vec::new())
    }

    pub(crate) fn figures(&self) -> &[Line] {
        &self.0
    }

    pub(crate) fn row(&mut self, row: &Row, sides: &[(&'static str, Figures)]) {
        let Some((_, ours)) = sides.iter().find(|(side, _)| *side == OURS) else { return };
        for (side, figures) in sides {
            let (wall, cpu) = (figures.seconds / ours.seconds, figures.cpu / ours.cpu.max(0.01));
            println!(
                "{:44} {side:12} {:7.2} {:9.2} {:9.1} {wall:7.2} {cpu:7.2} {}",
                row.name(),
                figures.gib / figures.seconds,
                figures.cpu / figures.gib,
                figures.stall * 1e3,
                memory(figures),
            );
            if wall < 1.0 {
                println!("    below 1: {}", reasons::of(row, side));
            }
            self.0.push(Line { row: row.name(), side, figures: *figures, wall, cpu });
        }
    }
}

/// What a side took, and what was said before.
fn memory(figures: &Figures) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    match figures.plan {
        0 => format!("{:9.1}", mib(figures.peak)),
        plan => {
            format!("{:9.1} {:9.1} {:7.0}%", mib(figures.peak), mib(plan), 100.0 * figures.peak as f64 / plan as f64)
        }
    }
}
