//! `cargo xtask perf`: is this revision as fast, as small and as sparing as the one before? Reads like a table of contents.
//! Never compares with a time from another run or another machine: both revisions are measured in turns, here and now.
//!
//! | file | what it owns |
//! |---|---|
//! | `options.rs` | what can be typed |
//! | `matrix.rs` | the rows: what is measured |
//! | `builds.rs` | the two revisions and their programs |
//! | `inputs.rs` | files that rows read, made up |
//! | `process.rs` | a process to its end: time, memory, what it said |
//! | `rounds.rs` | a row on both sides in turns |
//! | `judge.rs` | better, worse, missing: pure |
//! | `record.rs` | what was measured, as a file; and the one that is kept |
//! | `machine.rs` | which machine and revision it was |

mod builds;
mod inputs;
mod judge;
mod machine;
mod matrix;
mod options;
mod process;
mod record;
mod rounds;

use std::fs;
use std::path::PathBuf;

use self::builds::Sides;
use self::judge::{Compared, Verdict};
use self::machine::Machine;
use self::options::Options;
use self::record::Record;
use crate::steps;

/// Measures, prints, records; an error if something is worse.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let options = Options::parse(words)?;
    if options.help {
        println!("{}", options::HELP);
        return Ok(());
    }
    let rows = matrix::choose(&options)?;
    let folder = folder()?;
    let sides = match options.update {
        // What is kept are its own figures; another revision has no part in them.
        true => Sides::this_alone(&rows)?,
        false => Sides::build(options.base.as_deref(), &folder, &rows)?,
    };
    let machine = Machine::here(&sides);
    println!("{machine}\n");
    let mut compared = Vec::new();
    for row in &rows {
        let of_row = rounds::measure(row, &sides, &folder, options.rounds)?;
        of_row.iter().for_each(Compared::print);
        compared.extend(of_row);
    }
    let mut verdicts: Vec<Verdict> = compared.iter().map(Compared::verdict).collect();
    let record = Record::new(&machine, &compared);
    let path = folder.join("record.json");
    record.write(&path)?;
    println!("\nrecorded in {}", path.display());
    if options.update {
        // A row that is missing is told of, and the baseline stays as it was.
        judge::sum_up(&verdicts)?;
        record.keep(options.is_whole())?;
    } else if let Some(kept) = Record::kept()? {
        verdicts.extend(judge::against_kept(&kept, &record, options.is_whole()));
    } else {
        println!("there is no baseline to hold rows and ratios against; `cargo xtask perf --update` makes one");
    }
    judge::sum_up(&verdicts)
}

fn folder() -> Result<PathBuf, String> {
    let folder = steps::target().join("perf");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    folder.canonicalize().map_err(|error| format!("cannot find {}: {error}", folder.display()))
}
