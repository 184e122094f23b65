//! Ours against each peer over all cells: the geometric mean, and the worst row.

use std::collections::BTreeMap;

/// A cell of the table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) kind: &'static str,
    pub(crate) size: usize,
    pub(crate) level: i32,
}

/// Every figure of every side.
#[derive(Default)]
pub(crate) struct Summary {
    rows: BTreeMap<(&'static str, &'static str), BTreeMap<Cell, f64>>,
}

/// Ours and whom it is held against.
const PAIRS: [(&str, &str); 6] = [
    ("plimsoll", "zstd -T0"),
    ("plimsoll", "pzstd"),
    ("plimsoll gzip", "pigz"),
    ("plimsoll gzip", "libdeflate"),
    ("plimsoll bgzf", "bgzip"),
    ("plimsoll on its", "stock"),
];
const WHATS: [&str; 8] = ["ratio", "pack speed", "unpack speed", "zstd -T0", "pzstd", "gzip", "pigz", "bgzip"];

impl Summary {
    pub(crate) fn add(&mut self, side: &'static str, cell: Cell, what: &'static str, value: f64) {
        self.rows.entry((side, what)).or_default().insert(cell, value);
    }

    pub(crate) fn print(&self) {
        println!("\n{:<16} {:<10} {:<12} {:>5} {:>8}  WORST", "OURS", "PEER", "WHAT", "CELLS", "MEAN");
        for (ours, peer) in PAIRS {
            for what in WHATS {
                let (Some(own), Some(others)) = (self.rows.get(&(ours, what)), self.rows.get(&(peer, what))) else {
                    continue;
                };
                print_row(ours, peer, what, own, others);
                for size in sizes(own) {
                    let of_size = |rows: &BTreeMap<Cell, f64>| -> BTreeMap<Cell, f64> {
                        rows.iter().filter(|(cell, _)| cell.size == size).map(|(cell, value)| (*cell, *value)).collect()
                    };
                    print_row("", "", &format!("  {size}"), &of_size(own), &of_size(others));
                }
            }
        }
    }
}

fn sizes(rows: &BTreeMap<Cell, f64>) -> Vec<usize> {
    let mut sizes: Vec<usize> = rows.keys().map(|cell| cell.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn print_row(ours: &str, peer: &str, what: &str, own: &BTreeMap<Cell, f64>, others: &BTreeMap<Cell, f64>) {
    let shares: Vec<(f64, &Cell)> =
        own.iter().filter_map(|(cell, value)| Some((value / others.get(cell)?, cell))).collect();
    let mean = (shares.iter().map(|(share, _)| share.ln()).sum::<f64>() / shares.len().max(1) as f64).exp();
    let worst = shares.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let worst = worst.map_or(String::new(), |(share, Cell { kind, size, level })| {
        format!("{share:.3}x: {kind}, {size} bytes, level {level}")
    });
    println!("{ours:<16} {peer:<10} {what:<12} {:>5} {mean:>7.3}x  {worst}", shares.len());
}
