//! Ours against each peer over all cells: the geometric mean, the worst row, and by sizes.

use std::collections::BTreeMap;
use std::fmt;

/// A cell of the table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) kind: &'static str,
    pub(crate) size: usize,
    pub(crate) level: i32,
}

/// What a figure says; more is better.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Ratio,
    Pack,
    PackCpu,
    Unpack,
    UnpackCpu,
    PackPeak,
    /// Unpacking a file of somebody, by us or by the stock tool.
    FileOf(&'static str),
    FileOfCpu(&'static str),
}

impl What {
    /// The same in processor time, for a time.
    pub(crate) fn in_processor_time(self) -> Option<Self> {
        match self {
            Self::Pack => Some(Self::PackCpu),
            Self::Unpack => Some(Self::UnpackCpu),
            Self::FileOf(maker) => Some(Self::FileOfCpu(maker)),
            _ => None,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ratio => f.pad("ratio"),
            Self::Pack => f.pad("pack, time"),
            Self::PackCpu => f.pad("pack, processor"),
            Self::Unpack => f.pad("unpack, time"),
            Self::UnpackCpu => f.pad("unpack, processor"),
            Self::PackPeak => f.pad("pack, memory"),
            Self::FileOf(maker) => f.pad(&format!("a file of {maker}")),
            Self::FileOfCpu(maker) => f.pad(&format!("same, processor: {maker}")),
        }
    }
}

/// Every figure of every side.
#[derive(Default)]
pub(crate) struct Summary {
    rows: BTreeMap<(&'static str, What), BTreeMap<Cell, f64>>,
}

/// Ours and whom it is held against.
const PAIRS: [(&str, &str); 6] = [
    ("plimsoll", "zstd -T0"),
    ("plimsoll", "pzstd"),
    ("plimsoll gzip", "pigz"),
    ("plimsoll gzip", "libdeflate"),
    ("plimsoll bgzf", "bgzip"),
    ("plimsoll", "stock"),
];

impl Summary {
    pub(crate) fn add(&mut self, side: &'static str, cell: Cell, what: What, value: f64) {
        self.rows.entry((side, what)).or_default().insert(cell, value);
    }

    /// Ours by a peer's, cell by cell.
    pub(crate) fn shares(&self, ours: &'static str, peer: &'static str, what: What) -> Vec<(f64, Cell)> {
        let (Some(own), Some(others)) = (self.rows.get(&(ours, what)), self.rows.get(&(peer, what))) else {
            return Vec::new();
        };
        own.iter().filter_map(|(cell, value)| Some((value / others.get(cell)?, *cell))).collect()
    }

    pub(crate) fn print(&self) {
        println!("\n{:<14} {:<10} {:<32} {:>5} {:>8}  WORST", "OURS", "PEER", "WHAT", "CELLS", "MEAN");
        for (ours, peer) in PAIRS {
            let whats = self.rows.keys().filter(|(side, _)| *side == ours).map(|(_, what)| *what);
            for what in whats {
                let shares = self.shares(ours, peer, what);
                if shares.is_empty() {
                    continue;
                }
                print_row(ours, peer, &what.to_string(), &shares);
                for size in sizes(&shares) {
                    let of_size: Vec<_> = shares.iter().filter(|(_, cell)| cell.size == size).copied().collect();
                    print_row("", "", &format!("  {size}"), &of_size);
                }
            }
        }
    }
}

fn sizes(shares: &[(f64, Cell)]) -> Vec<usize> {
    let mut sizes: Vec<usize> = shares.iter().map(|(_, cell)| cell.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

pub(crate) fn mean(shares: &[(f64, Cell)]) -> f64 {
    (shares.iter().map(|(share, _)| share.ln()).sum::<f64>() / shares.len().max(1) as f64).exp()
}

pub(crate) fn worst(shares: &[(f64, Cell)]) -> String {
    let worst = shares.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    worst.map_or(String::new(), |(share, Cell { kind, size, level })| {
        format!("{share:.3}x: {kind}, {size} bytes, level {level}")
    })
}

fn print_row(ours: &str, peer: &str, what: &str, shares: &[(f64, Cell)]) {
    println!("{ours:<14} {peer:<10} {what:<32} {:>5} {:>7.3}x  {}", shares.len(), mean(shares), worst(shares));
}
