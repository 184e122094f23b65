//! Arrays written beside tensorstore, acquire-zarr and zarrs, in turns: the whole table.
//!
//!     cargo bench -p plimsoll-cli --bench array                    every row; the peers' packages come from `cargo xtask python`
//!     cargo bench -p plimsoll-cli --bench array -- --only uint16   rows whose name holds this; several are joined by commas
//!     cargo bench -p plimsoll-cli --bench array -- --mib 512       bytes of each row (64 MiB, and two shards at the least)
//!     cargo bench -p plimsoll-cli --bench array -- --rounds 3      how often each side writes each row (once); the best counts
//!     cargo bench -p plimsoll-cli --bench array -- --minutes 20    no row begins later than this; what is left is named
//!
//! Each side writes the same elements, which lie in its memory, from a process of its own, and says what the writing took:
//! wall time, processor time, the longest append, memory. What was written is read back once by zarr-python and compared.
//!
//! | file | what it owns |
//! |---|---|
//! | `rows.rs` | what is written |
//! | `sides.rs`, `ours.rs`, `peers.py` | who writes, and what that took |
//! | `checker.rs` | reading back what was written |
//! | `table.rs`, `summary.rs` | the rows, and what they come to |
//! | `reasons.rs` | why a row is below one |

mod checker;
mod ours;
mod reasons;
mod rows;
mod sides;
mod summary;
mod table;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use checker::Checker;
use rows::Row;
use table::Table;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "ours") {
        ours::run(&words[1]);
        return ExitCode::SUCCESS;
    }
    match sides::ready() {
        Ok(()) => compare(&words),
        Err(missing) => {
            eprintln!("error: {missing}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The table.
fn compare(words: &[String]) {
    let text = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    let number =
        |name: &str| text(name).map(|value| value.parse().unwrap_or_else(|_| panic!("{name} {value}: no number")));
    let (mib, rounds) = (number("--mib").unwrap_or(64), number("--rounds").unwrap_or(1));
    let end = number("--minutes").map(|minutes: u64| Instant::now() + Duration::from_secs(60 * minutes));
    let folder = tempfile::tempdir().expect("a folder");
    let (mut table, mut checker, mut left) = (Table::begin(), Checker::start(), Vec::new());
    for row in rows::all().into_iter().filter(|row| is_wanted(row, text("--only"))) {
        match end.is_some_and(|end| Instant::now() >= end) {
            true => left.push(row.name()),
            false => measure(&row, (mib, rounds), folder.path(), &mut checker, &mut table),
        }
    }
    summary::print(table.figures());
    if !left.is_empty() {
        println!("{} rows were not run, for want of time: {}", left.len(), left.join("; "));
    }
}

fn is_wanted(row: &Row, only: Option<&String>) -> bool {
    only.is_none_or(|only| only.split(',').any(|part| row.name().contains(part)))
}

fn measure(row: &Row, (mib, rounds): (u64, u64), folder: &Path, checker: &mut Checker, table: &mut Table) {
    let mut best = Vec::new();
    for round in 0..rounds {
        for side in sides::of(row) {
            let (asked, figures) = sides::run(side, row, mib, folder);
            if round == 0 {
                checker
                    .check(&asked)
                    .unwrap_or_else(|why| panic!("{side} wrote something else: {}: {why}", row.name()));
            }
            sides::keep_best(&mut best, side, figures);
        }
    }
    table.row(row, &best);
}
