//! What the table comes to.

use crate::sides::{OURS, PEERS};
use crate::table::Line;

/// A writer may take so much of what its plan said.
const OF_PLAN_MAX: f64 = 1.1;

/// Prints it.
pub(crate) fn print(lines: &[Line]) {
    println!();
    memory(lines);
    for side in [OURS].into_iter().chain(PEERS) {
        stalls(side, lines);
    }
    for side in PEERS {
        ratios(side, lines);
    }
}

fn memory(lines: &[Line]) {
    let of_plan = |line: &Line| line.figures.peak as f64 / line.figures.plan.max(1) as f64;
    let ours = || lines.iter().filter(|line| line.side == OURS);
    let most = ours().max_by(|one, other| of_plan(one).total_cmp(&of_plan(other)));
    let least = ours().map(of_plan).min_by(f64::total_cmp);
    if let (Some(most), Some(least)) = (most, least) {
        let over = ours().filter(|line| of_plan(line) > OF_PLAN_MAX).count();
        println!(
            "{OURS}: peak memory is {least:.2} to {:.2} of what the plan said (most: {}); {over} rows are above {OF_PLAN_MAX}",
            of_plan(most),
            most.row
        );
    }
}

fn stalls(side: &str, lines: &[Line]) {
    let of_side = lines.iter().filter(|line| line.side == side);
    let mut stalls: Vec<f64> = of_side.map(|line| line.figures.stall * 1e3).collect();
    stalls.sort_by(f64::total_cmp);
    if let (Some(middle), Some(longest)) = (stalls.get(stalls.len() / 2), stalls.last()) {
        println!("{side}: longest append {middle:.1} ms in the median row, {longest:.1} ms at most");
    }
}

fn ratios(side: &str, lines: &[Line]) {
    let of: Vec<&Line> = lines.iter().filter(|line| line.side == side).collect();
    let Some(worst) = of.iter().min_by(|one, other| one.wall.total_cmp(&other.wall)) else { return };
    println!(
        "{side}: {} rows, geometric mean {:.2} × our wall time and {:.2} × our processor time; {} below 1, worst {:.2} ({})",
        of.len(),
        mean(of.iter().map(|line| line.wall)),
        mean(of.iter().map(|line| line.cpu)),
        of.iter().filter(|line| line.wall < 1.0).count(),
        worst.wall,
        worst.row,
    );
}

/// The geometric mean.
fn mean(ratios: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = ratios.len().max(1) as f64;
    (ratios.map(|ratio| ratio.max(1e-3).ln()).sum::<f64>() / count).exp()
}
