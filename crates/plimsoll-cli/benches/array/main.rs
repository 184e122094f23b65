//! Arrays written beside tensorstore, acquire-zarr and zarrs, in turns: the whole table.
//!
//!     cargo bench -p plimsoll-cli --bench array                 every row; the peers' packages come from `cargo xtask test test`
//!     cargo bench -p plimsoll-cli --bench array -- --quick      one row of each kind
//!     cargo bench -p plimsoll-cli --bench array -- --mib 512    bytes of each row (128 MiB)
//!
//! Each side writes the same elements, which lie in its memory, from a process of its own, and says what the writing took:
//! wall time, processor time, the longest append. What was written is read back once by zarr-python and compared.

mod ours;
mod rows;
mod sides;
mod table;

use rows::Row;
use table::Table;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "ours") {
        return ours::run(&words[1]);
    }
    let is_quick = words.iter().any(|word| word == "--quick");
    let value = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)?.parse().ok());
    let (mib, rounds) = (value("--mib").unwrap_or(128), value("--rounds").unwrap_or(2));
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::begin();
    for row in rows::all(is_quick) {
        measure(&row, mib, rounds, folder.path(), &mut table);
    }
    table.end();
}

fn measure(row: &Row, mib: u64, rounds: u64, folder: &std::path::Path, table: &mut Table) {
    let mut best = Vec::new();
    for round in 0..rounds {
        for side in sides::of(row) {
            let figures = sides::run(side, row, mib, folder, round == 0);
            sides::keep_best(&mut best, side, figures);
        }
    }
    table.row(row, &best);
}
