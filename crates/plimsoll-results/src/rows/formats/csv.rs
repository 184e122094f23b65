//! CSV as RFC 4180 has it, with a header. Numbers are written as short as they can be and read to the same bits.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use ::csv::{ErrorKind, ReaderBuilder, StringRecord, Writer};

use super::super::error::RowsError;
use super::super::row::{Cell, Row};
use super::super::schema::{Column, Kind, Schema};
use super::{Each, Rows, WriteFault};

/// Writes all rows.
pub(super) fn write(schema: &Schema, out: &mut dyn Write, rows: Rows<'_>) -> Result<(), WriteFault> {
    out.write_all(&header(schema))?;
    for row in rows {
        out.write_all(&line(&row?))?;
    }
    Ok(())
}

/// The header's line.
pub(in super::super) fn header(schema: &Schema) -> Vec<u8> {
    record(schema.columns().iter().map(|column| column.name().to_owned()))
}

/// The row's line.
pub(in super::super) fn line(row: &Row) -> Vec<u8> {
    record(row.cells().iter().map(field))
}

fn record(fields: impl Iterator<Item = String>) -> Vec<u8> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(fields.map(String::into_bytes)).expect("memory takes all bytes");
    writer.into_inner().expect("memory takes all bytes")
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Integer(integer) => integer.to_string(),
        // Unlike `{}`, this has an exponent where that is shorter, and shows by a point that it is no integer.
        Cell::Number(number) => format!("{number:?}"),
    }
}

/// Reads all rows.
pub(super) fn read(schema: &Schema, file: File, path: &Path, each: Each<'_>) -> Result<(), RowsError> {
    let failed = |error: ::csv::Error| match error.into_kind() {
        ErrorKind::Io(source) => RowsError::system("read", path, source),
        ErrorKind::Utf8 { err, .. } => RowsError::damaged(path, err.to_string()),
        ErrorKind::UnequalLengths { expected_len, len, pos } => {
            let line = pos.map_or_else(String::new, |position| format!("line {}: ", position.line()));
            RowsError::damaged(path, format!("{line}{len} values for {expected_len} columns"))
        }
        other => RowsError::damaged(path, format!("{other:?}")),
    };
    check_has_end(&file, path)?;
    let mut reader = ReaderBuilder::new().from_reader(file);
    let places = schema.places(reader.headers().map_err(failed)?.iter());
    let places = places.map_err(|difference| RowsError::Schema { path: path.to_owned(), difference })?;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(failed)? {
        let line = record.position().map_or(0, |position| position.line());
        each(
            row_of(&record, schema, &places)
                .map_err(|what| RowsError::damaged(path, format!("line {line}: {what}")))?,
        )?;
    }
    Ok(())
}

/// A file that was cut short within its last value would else be read as if that were all of it.
fn check_has_end(mut file: &File, path: &Path) -> Result<(), RowsError> {
    let failed = |source| RowsError::system("read", path, source);
    let mut last = [b'\n'];
    if file.metadata().map_err(failed)?.len() > 0 {
        file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).map_err(failed)?;
        file.rewind().map_err(failed)?;
    }
    if last == [b'\n'] { Ok(()) } else { Err(RowsError::damaged(path, "its last line has no end")) }
}

/// The names in the header of a file.
pub(super) fn names(file: File) -> Option<Vec<String>> {
    let mut reader = ReaderBuilder::new().from_reader(file);
    Some(reader.headers().ok()?.iter().map(str::to_owned).collect())
}

fn row_of(record: &StringRecord, schema: &Schema, places: &[Option<usize>]) -> Result<Row, String> {
    let text = |place: &Option<usize>| place.and_then(|place| record.get(place)).unwrap_or_default();
    let cells = places.iter().zip(schema.columns()).map(|(place, column)| cell_of(text(place), column));
    Ok(Row::new(cells.collect::<Result<Vec<_>, _>>()?))
}

fn cell_of(text: &str, column: &Column) -> Result<Cell, String> {
    let cell = match column.kind() {
        _ if text.is_empty() => Some(Cell::Empty),
        Kind::Text => Some(Cell::from(text)),
        Kind::Integer => text.parse().ok().map(Cell::Integer),
        Kind::Number => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Cell::Number),
    };
    cell.ok_or_else(|| format!("column {:?} holds {text:?}, which is not {}", column.name(), column.kind()))
}
