//! What is refused, and that it says what to do.

use std::fs;
use std::path::Path;

use plimsoll_results::rows::{Cell, Column, Existing, Format, Kind, Row, RowError, RowFile, RowsError, Schema};

use crate::table::*;

fn refused(path: &Path, existing: Existing) -> RowsError {
    open(path, existing).expect_err("refused")
}

#[test]
fn an_output_that_is_there_is_not_written_over_by_default() {
    let (_folder, path) = place(Format::Csv);
    finished(&path, [good(0)]);
    let error = refused(&path, Existing::Refuse);
    assert!(matches!(&error, RowsError::OutputExists { path: named } if *named == path.canonicalize().expect("there")));
    assert!(error.to_string().contains("add to it"), "{error}");
    assert!(!journal_of(&path).exists());
    assert_eq!(seen(&path), [seen_good(0)]);
}

#[test]
fn a_journal_is_not_written_over_by_default() {
    let (_folder, path) = place(Format::Csv);
    let mut file = open(&path, Existing::Refuse).expect("nothing is there");
    file.push(&good(0)).expect("room");
    drop(file);
    let journal = fs::read(journal_of(&path)).expect("there");
    let error = refused(&path, Existing::Refuse);
    assert!(matches!(error, RowsError::JournalExists { rows: 1, .. }), "{error}");
    let told = error.to_string();
    assert!(told.contains("continue it") && told.contains("remove") && told.contains("scores.csv.journal"), "{told}");
    assert_eq!(fs::read(journal_of(&path)).expect("there"), journal);
}

#[test]
fn a_journal_without_a_row_is_in_nobodys_way() {
    let (_folder, path) = place(Format::Csv);
    let file = open(&path, Existing::Refuse).expect("nothing is there");
    let journal = fs::read(journal_of(&path)).expect("there");
    drop(file);
    for length in 0..=journal.len() {
        fs::write(journal_of(&path), &journal[..length]).expect("as a kill leaves it");
        let mut file = open(&path, Existing::Refuse).unwrap_or_else(|error| panic!("{length}: {error}"));
        file.push(&good(0)).expect("room");
        file.finish().expect("written");
        fs::remove_file(&path).expect("there");
    }
}

#[test]
fn two_runs_at_once_are_refused() {
    let (_folder, path) = place(Format::Csv);
    let mut file = open(&path, Existing::Refuse).expect("nothing is there");
    for existing in [Existing::Refuse, Existing::Replace, Existing::Resume] {
        let error = refused(&path, existing);
        assert!(matches!(&error, RowsError::Busy { path: named } if *named == path), "{error}");
    }
    file.push(&good(0)).expect("the first goes on");
    file.finish().expect("written");
    assert_eq!(seen(&path), [seen_good(0)]);
}

#[test]
fn other_columns_are_refused_by_name_in_output_and_journal() {
    let other = || {
        let columns = vec![Column::key("image", Kind::Text), Column::value("hash", Kind::Text)];
        Schema::new(columns).expect("sound")
    };
    for format in built() {
        let (_folder, path) = place(format);
        let mut file = RowFile::create(&path, format, other(), Existing::Refuse).expect("nothing is there");
        file.push(&Row::new(["a".into(), "b".into()])).expect("room");
        let journal = fs::read(journal_of(&path)).expect("there");
        file.finish().expect("written");
        let output = fs::read(&path).expect("there");

        let error = refused(&path, Existing::Resume);
        assert!(error.to_string().contains("hash"), "{format}: {error}");
        assert!(!journal_of(&path).exists(), "{format}: nothing was begun");

        fs::write(journal_of(&path), &journal).expect("written");
        let error = refused(&path, Existing::Resume);
        assert!(error.to_string().contains("hash"), "{error}");
        assert_eq!(fs::read(journal_of(&path)).expect("there"), journal);
        assert_eq!(fs::read(&path).expect("there"), output);
    }
}

#[test]
fn a_damaged_output_is_refused_and_left_as_it_is() {
    for format in built() {
        let (_folder, path) = place(format);
        finished(&path, (0..20).map(good));
        let mut output = fs::read(&path).expect("there");
        output.truncate(output.len() - 3);
        fs::write(&path, &output).expect("written");
        let error = refused(&path, Existing::Resume);
        assert!(matches!(error, RowsError::Damaged { .. }), "{format}: {error}");
        assert_eq!(fs::read(&path).expect("there"), output);
        assert!(!journal_of(&path).exists(), "{format}: copies of its rows are not left behind");
    }
}

#[test]
fn rows_that_do_not_suit_are_refused_and_the_run_goes_on() {
    let (_folder, path) = place(Format::Json);
    let mut file = open(&path, Existing::Refuse).expect("nothing is there");
    let not_finite = Row::new(["a".into(), 1.into(), f64::NAN.into(), Cell::Empty]);
    assert!(matches!(file.push(&not_finite), Err(RowsError::Row(RowError::NotFinite { .. }))));
    assert!(matches!(file.push(&Row::new([])), Err(RowsError::Row(RowError::Count { .. }))));
    let long = Row::new(["a".into(), 1.into(), 1.0.into(), "x".repeat(2 << 20).into()]);
    assert!(matches!(file.push(&long), Err(RowsError::Row(RowError::TooLong { .. }))));
    file.push(&good(0)).expect("room");
    file.finish().expect("written");
    assert_eq!(seen(&path), [seen_good(0)]);
}

#[test]
fn what_is_no_file_is_refused() {
    let (folder, path) = place(Format::Csv);
    let create = |path: &Path| RowFile::create(path, Format::Csv, schema(), Existing::Replace).expect_err("refused");
    assert!(matches!(create(folder.path()), RowsError::NotAFile { .. }));
    assert!(matches!(create(Path::new("")), RowsError::NotAFile { .. }));
    assert!(matches!(create(&path.join("below/scores.csv")), RowsError::Io { .. }));
    fs::write(journal_of(&path), "my notes").expect("written");
    for existing in [Existing::Refuse, Existing::Replace, Existing::Resume] {
        assert!(matches!(refused(&path, existing), RowsError::NotAJournal { .. }));
    }
    assert_eq!(fs::read_to_string(journal_of(&path)).expect("there"), "my notes");
}
