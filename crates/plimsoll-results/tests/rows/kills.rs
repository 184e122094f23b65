//! Kills at any moment: while rows are taken, while the output is read, written and put in place.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_results::rows::{Existing, Format, RowsError};

use crate::table::*;
use crate::writer::{HOLD, ONCE, OVER_AND_OVER, noted, start};

/// Kills for each format.
const ROUNDS: u64 = 30;
/// Rows that each round adds.
const ROWS: u64 = 12;
/// Only a hang takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn kills_lose_no_row_of_csv() {
    survives_kills(Format::Csv);
}

#[test]
fn kills_lose_no_row_of_json() {
    survives_kills(Format::Json);
}

#[test]
fn kills_lose_no_row_of_json_lines() {
    survives_kills(Format::JsonLines);
}

#[cfg(feature = "parquet")]
#[test]
fn kills_lose_no_row_of_parquet() {
    survives_kills(Format::Parquet);
}

fn survives_kills(format: Format) {
    let (_folder, path) = place(format);
    let mut interrupted = 0;
    for round in 0..ROUNDS {
        let before = noted(&path).len();
        let writer = start(&path, (round + 1) * ROWS, OVER_AND_OVER, "");
        // Half of the kills wait for a row, so that they fall into the work and not into the start of a process.
        if round % 2 == 0 {
            wait_for_a_row(&path, before);
        }
        thread::sleep(Duration::from_micros(round * 2_654_435_761 % 20_000));
        drop(writer);
        interrupted += u64::from(journal_of(&path).exists());
        if round % 3 == 0 {
            nothing_noted_is_missing(&path, round);
        }
    }
    assert!(interrupted >= ROUNDS / 3, "only {interrupted} of {ROUNDS} kills fell into a run");

    let ended = start(&path, ROUNDS * ROWS, ONCE, "").0.wait().expect("ours");
    assert!(ended.success(), "{ended:?}");
    assert_eq!(seen(&path), (0..ROUNDS * ROWS).map(seen_good).collect::<Vec<_>>(), "{format}: each row once");
    let mut once = BTreeSet::new();
    assert!(noted(&path).iter().filter(|at| !once.insert(**at)).count() as u64 <= ROUNDS, "work was done again");
    assert!(!journal_of(&path).exists() && !draft_of(&path).exists());
}

fn wait_for_a_row(path: &Path, before: usize) {
    let start = Instant::now();
    while noted(path).len() == before {
        assert!(start.elapsed() < PATIENCE, "the writer took no row");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Opens the file as a run that resumes would, and leaves it again.
fn nothing_noted_is_missing(path: &Path, round: u64) {
    let file = open(path, Existing::Resume).expect("the lock is free and all can be read");
    for at in noted(path) {
        assert!(file.is_done(key(at)), "row {at} was taken and is lost after kill {round}");
    }
    assert_eq!(file.found().damaged_lines, 0);
}

#[test]
fn another_process_is_refused_while_one_writes() {
    let (_folder, path) = place(Format::Csv);
    let mut file = open(&path, Existing::Refuse).expect("nothing is there");
    file.push(&good(0)).expect("room");
    let mut second = start(&path, 1, ONCE, "exec 2>/dev/null;");
    assert!(!second.0.wait().expect("ours").success(), "it was let in");
    file.finish().expect("written");
    assert_eq!(seen(&path), [seen_good(0)]);

    let writer = start(&path, 1, HOLD, "");
    wait_for_a_row(&path, 0);
    assert!(matches!(open(&path, Existing::Resume), Err(RowsError::Busy { .. })));
    drop(writer);
    let file = open(&path, Existing::Resume).expect("a killed process holds no lock");
    assert!(file.is_done(key(1)));
    file.finish().expect("written");
}
