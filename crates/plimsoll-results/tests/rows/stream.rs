//! Rows on standard output: whole, at once, and with an end that the caller can recognise.

use std::io::{self, Write};

use plimsoll_results::rows::{Format, RowStream, RowsError};

use crate::table::*;

/// Keeps each write by itself, and counts flushes.
#[derive(Default)]
struct Watched {
    writes: Vec<Vec<u8>>,
    flushes: usize,
}

impl Write for &mut Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        Ok(())
    }
}

#[test]
fn every_row_is_one_write_and_the_whole_is_what_a_file_would_hold() {
    for format in [Format::Csv, Format::JsonLines] {
        let mut watched = Watched::default();
        let mut stream = RowStream::new(&mut watched, format, schema()).expect("it streams");
        [good(0), failed(1)].iter().for_each(|row| stream.push(row).expect("taken"));
        let headers = usize::from(format == Format::Csv);
        assert_eq!((watched.writes.len(), watched.flushes), (2 + headers, 2 + headers), "{format}");
        let (_folder, path) = place(format);
        finished(&path, [good(0), failed(1)]);
        assert_eq!(watched.writes.concat(), std::fs::read(&path).expect("there"), "{format}");
    }
}

#[test]
fn formats_with_an_end_need_a_file() {
    for format in [Format::Json, Format::Parquet] {
        let error = RowStream::new(Vec::new(), format, schema()).expect_err("refused");
        assert!(matches!(error, RowsError::NeedsFile { format: named } if named == format));
        assert!(error.to_string().contains("name a file"), "{error}");
    }
}

#[test]
fn a_closed_pipe_is_told_as_such() {
    let (reader, writer) = io::pipe().expect("a pipe");
    let mut stream = RowStream::new(writer, Format::JsonLines, schema()).expect("it streams");
    stream.push(&good(0)).expect("room in the pipe");
    drop(reader);
    assert!(matches!(stream.push(&good(1)), Err(RowsError::PipeClosed)));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_as_such() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    assert!(matches!(RowStream::new(full(), Format::Csv, schema()), Err(RowsError::Full { .. })));
    let mut stream = RowStream::new(full(), Format::JsonLines, schema()).expect("nothing was written yet");
    assert!(matches!(stream.push(&good(0)), Err(RowsError::Full { .. })));
}
