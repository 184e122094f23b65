//! A journal after every kind of harm.

use super::super::row::Cell;
use super::super::schema::{Column, Kind};
use super::*;

fn header() -> Header {
    let columns = vec![Column::key("name", Kind::Text), Column::value("score", Kind::Number)];
    Header { schema: Schema::new(columns).expect("sound"), replaces: false }
}

fn row(at: u64) -> Row {
    Row::new([Cell::Text(format!("row {at}\n")), Cell::Number(at as f64 / 3.0)])
}

/// An output's name in a folder of its own, and the bytes of its journal of so many rows.
fn written(rows: u64) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("scores.csv");
    let mut journal = Journal::open(&output).expect("free");
    journal.begin(&header()).expect("room");
    for at in 0..rows {
        journal.append(&row(at)).expect("room");
    }
    drop(journal);
    let bytes = fs::read(beside(&output, SUFFIX)).unwrap_or_default();
    (folder, output, bytes)
}

/// Opens a journal of these bytes, reads and repairs it, and says which rows were in it.
fn repaired(output: &Path, bytes: &[u8]) -> Option<(Journal, Vec<Row>, Scan)> {
    fs::write(beside(output, SUFFIX), bytes).expect("written");
    let mut journal = Journal::open(output).expect("free");
    let (found, header_bytes) = journal.header().expect("ours")?;
    assert_eq!(found, header());
    let mut rows = Vec::new();
    let scan = journal.scan(header_bytes, |_, payload| {
        rows.push(row_of(payload, &header().schema).expect("a row"));
        Ok(())
    });
    let scan = scan.expect("readable");
    journal.cut(&scan).expect("cut");
    Some((journal, rows, scan))
}

#[test]
fn a_journal_cut_anywhere_keeps_its_whole_rows_and_takes_more() {
    let (_folder, output, bytes) = written(4);
    let header_bytes = header().line().len();
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').map(|at| at + 1).collect();
    for length in 0..=bytes.len() {
        let whole = ends.iter().filter(|end| **end <= length).count();
        let Some((mut journal, rows, scan)) = repaired(&output, &bytes[..length]) else {
            assert!(length < header_bytes, "no header at {length}");
            continue;
        };
        assert_eq!(rows, (0..whole as u64 - 1).map(row).collect::<Vec<_>>(), "cut at {length}");
        assert_eq!(scan.torn_bytes, (length - ends[whole - 1]) as u64);
        let place = journal.append(&row(9)).expect("room");
        assert_eq!(journal.row_at(place, &header().schema).expect("there"), row(9));
        drop(journal);
        let (_, again, scan) = repaired(&output, &fs::read(beside(&output, SUFFIX)).expect("there")).expect("ours");
        assert_eq!((again.len(), again.last()), (whole, Some(&row(9))), "cut at {length}");
        assert_eq!((scan.torn_bytes, scan.damaged), (0, 0));
    }
}

#[test]
fn a_damaged_line_costs_only_its_row() {
    let (_folder, output, mut bytes) = written(4);
    let at = header().line().len() + 20;
    bytes[at] ^= 4;
    let (_journal, rows, scan) = repaired(&output, &bytes).expect("ours");
    assert_eq!(rows, [row(1), row(2), row(3)]);
    assert_eq!((scan.rows, scan.damaged, scan.torn_bytes), (3, 1, 0));
}

#[test]
fn a_line_without_end_is_not_read_into_memory() {
    let (_folder, output, bytes) = written(2);
    let long = [&bytes[..], &vec![b'x'; ROW_BYTES_MAX * 3]].concat();
    let (_journal, rows, scan) = repaired(&output, &long).expect("ours");
    assert_eq!((rows.len(), scan.torn_bytes), (2, ROW_BYTES_MAX as u64 * 3));
}

#[test]
fn a_row_that_could_not_be_read_back_is_not_taken() {
    let (_folder, output, _) = written(0);
    let mut journal = Journal::open(&output).expect("free");
    journal.begin(&header()).expect("room");
    // The checksum takes 17 bytes, `["",null]` nine; a line end is written as two.
    let of_len = |len: usize| Row::new([Cell::Text("\n".repeat((len - 26) / 2)), Cell::Empty]);
    let place = journal.append(&of_len(ROW_BYTES_MAX)).expect("just short enough");
    assert_eq!(place.len as usize, ROW_BYTES_MAX);
    let error = journal.append(&of_len(ROW_BYTES_MAX + 2)).expect_err("too long");
    assert!(matches!(error, RowsError::Row(RowError::TooLong { bytes, .. }) if bytes == ROW_BYTES_MAX + 2), "{error}");
    drop(journal);
    let (_, rows, _) = repaired(&output, &fs::read(beside(&output, SUFFIX)).expect("there")).expect("ours");
    assert_eq!(rows, [of_len(ROW_BYTES_MAX)]);
}

#[test]
fn a_journal_without_rows_goes_and_one_with_rows_stays() {
    let (_folder, output, bytes) = written(0);
    assert!(bytes.is_empty() && !beside(&output, SUFFIX).exists());
    let (_folder, output, bytes) = written(1);
    assert!(!bytes.is_empty() && beside(&output, SUFFIX).exists());
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let (_folder, output, _) = written(0);
    let path = beside(&output, SUFFIX);
    for foreign in ["my own notes", "my own notes\n", "plimsoll\nnotes\n"] {
        fs::write(&path, foreign).expect("written");
        let mut journal = Journal::open(&output).expect("free");
        assert!(matches!(journal.header(), Err(RowsError::NotAJournal { .. })));
        assert!(matches!(journal.check_is_ours(), Err(RowsError::NotAJournal { .. })));
        drop(journal);
        assert_eq!(fs::read_to_string(&path).expect("still there"), foreign);
    }
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("created");
    assert!(matches!(Journal::open(&output), Err(RowsError::NotAJournal { .. })));
}

#[test]
fn other_versions_and_damaged_headers_are_told_apart() {
    let (_folder, output, bytes) = written(1);
    let opened = |bytes: &[u8]| {
        fs::write(beside(&output, SUFFIX), bytes).expect("written");
        let mut journal = Journal::open(&output).expect("free");
        journal.check_is_ours().expect("ours all the same");
        journal.header()
    };
    assert!(matches!(opened(b"plimsoll-rows-journal 2 x\n"), Err(RowsError::NewerJournal { .. })));
    let mut damaged = bytes.clone();
    damaged[50] ^= 1;
    assert!(matches!(opened(&damaged), Err(RowsError::Damaged { .. })));
}
