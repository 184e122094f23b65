//! Ours against each peer over all cells: the geometric mean, and the worst row.

use std::collections::BTreeMap;

/// Kind, size and level.
type Cell = (String, usize, i32);

#[derive(Default)]
pub(crate) struct Summary {
    rows: BTreeMap<&'static str, BTreeMap<Cell, [f64; 3]>>,
}

/// Ours and whom it is held against.
const PAIRS: [(&str, &str); 5] = [
    ("plimsoll", "zstd -T0"),
    ("plimsoll", "pzstd"),
    ("plimsoll gzip", "pigz"),
    ("plimsoll gzip", "gzip"),
    ("plimsoll bgzf", "bgzip"),
];

impl Summary {
    #[expect(clippy::too_many_arguments, reason = "a row has that many fields")]
    pub(crate) fn add(
        &mut self,
        side: &'static str,
        kind: &str,
        size: usize,
        level: i32,
        ratio: f64,
        pack: f64,
        unpack: f64,
    ) {
        self.rows.entry(side).or_default().insert((kind.to_owned(), size, level), [ratio, pack, unpack]);
    }

    pub(crate) fn print(&self) {
        println!("\n{:<16} {:<10} {:<12} {:>8}  WORST", "OURS", "PEER", "WHAT", "MEAN");
        for (ours, peer) in PAIRS {
            let (Some(own), Some(others)) = (self.rows.get(ours), self.rows.get(peer)) else { continue };
            for (at, what) in ["ratio", "pack speed", "unpack speed"].into_iter().enumerate() {
                let shares: Vec<(f64, &Cell)> =
                    own.iter().filter_map(|(cell, row)| Some((row[at] / others.get(cell)?[at], cell))).collect();
                let mean = (shares.iter().map(|(share, _)| share.ln()).sum::<f64>() / shares.len().max(1) as f64).exp();
                let worst = shares.iter().min_by(|a, b| a.0.total_cmp(&b.0));
                let worst = worst.map_or(String::new(), |(share, (kind, size, level))| {
                    format!("{share:.2}x: {kind}, {size} bytes, level {level}")
                });
                println!("{ours:<16} {peer:<10} {what:<12} {mean:>7.2}x  {worst}");
            }
        }
    }
}
