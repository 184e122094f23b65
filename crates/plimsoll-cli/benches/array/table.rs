//! The table, and what it comes to.

use crate::rows::Row;
use crate::sides::{Figures, OURS};

/// Ratios of every row, peer by peer.
pub(crate) struct Table {
    ratios: Vec<(String, &'static str, f64, f64)>,
    /// Of each row of ours: the most memory by what the plan said, and the longest append in seconds.
    memory: Vec<(String, f64)>,
    stalls: Vec<(&'static str, f64)>,
}

impl Table {
    pub(crate) fn begin() -> Self {
        println!(
            "{:44} {:12} {:>7} {:>9} {:>9} {:>7} {:>7} {:>9} {:>9}",
            "ROW", "SIDE", "GiB/s", "CPU s/GiB", "STALL ms", "WALL ×", "CPU ×", "PEAK MiB", "PLAN MiB"
        );
        Self { ratios: Vec::new(), memory: Vec::new(), stalls: Vec::new() }
    }

    /// Wall × and CPU × say how much longer the peer takes than we do.
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
            self.stalls.push((side, figures.stall));
            if *side == OURS {
                self.memory.push((row.name(), figures.peak as f64 / figures.plan.max(1) as f64));
            } else {
                self.ratios.push((row.name(), side, wall, cpu));
            }
        }
    }

    pub(crate) fn end(&self) {
        let most = self.memory.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let least = self.memory.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        if let (Some((row, most)), Some((_, least))) = (most, least) {
            println!("{OURS}: peak memory is {least:.2} to {most:.2} of what the plan said; most: {row}");
        }
        for side in [OURS, "acquire", "tensorstore", "zarrs"] {
            let mut of: Vec<f64> =
                self.stalls.iter().filter(|(of, _)| *of == side).map(|(_, stall)| stall * 1e3).collect();
            of.sort_by(f64::total_cmp);
            if let (Some(middle), Some(longest)) = (of.get(of.len() / 2), of.last()) {
                println!("{side}: longest append {middle:.1} ms in the median row, {longest:.1} ms at most");
            }
        }
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

/// What our side took, and was to take.
fn memory(figures: &Figures) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    if figures.plan == 0 { String::new() } else { format!("{:9.1} {:9.1}", mib(figures.peak), mib(figures.plan)) }
}
