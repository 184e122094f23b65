//! The table, and what it comes to.

use crate::rows::Row;
use crate::sides::{Figures, OURS};

/// Ratios of every row, peer by peer.
pub(crate) struct Table {
    ratios: Vec<(String, &'static str, f64, f64)>,
}

impl Table {
    pub(crate) fn begin() -> Self {
        println!(
            "{:44} {:12} {:>7} {:>9} {:>9} {:>7} {:>7}",
            "ROW", "SIDE", "GiB/s", "CPU s/GiB", "STALL ms", "WALL ×", "CPU ×"
        );
        Self { ratios: Vec::new() }
    }

    /// Wall × and CPU × say how much longer the peer takes than we do.
    pub(crate) fn row(&mut self, row: &Row, sides: &[(&'static str, Figures)]) {
        let Some((_, ours)) = sides.iter().find(|(side, _)| *side == OURS) else { return };
        for (side, figures) in sides {
            let (wall, cpu) = (figures.seconds / ours.seconds, figures.cpu / ours.cpu.max(0.01));
            println!(
                "{:44} {side:12} {:7.2} {:9.2} {:9.1} {wall:7.2} {cpu:7.2}",
                row.name(),
                figures.gib / figures.seconds,
                figures.cpu / figures.gib,
                figures.stall * 1e3,
            );
            if *side != OURS {
                self.ratios.push((row.name(), side, wall, cpu));
            }
        }
    }

    pub(crate) fn end(&self) {
        for side in ["acquire", "tensorstore", "zarrs"] {
            let of: Vec<_> = self.ratios.iter().filter(|(_, of, ..)| *of == side).collect();
            if of.is_empty() {
                continue;
            }
            let mean = |pick: fn(&(String, &str, f64, f64)) -> f64| {
                (of.iter().map(|ratio| pick(ratio).ln()).sum::<f64>() / of.len() as f64).exp()
            };
            let worst = of.iter().min_by(|one, other| one.2.total_cmp(&other.2));
            let (name, _, wall, _) = worst.expect("there is one");
            println!(
                "{side}: {} rows, geometric mean {:.2} × our wall time and {:.2} × our processor time; worst {wall:.2} ({name})",
                of.len(),
                mean(|ratio| ratio.2),
                mean(|ratio| ratio.3),
            );
        }
    }
}
