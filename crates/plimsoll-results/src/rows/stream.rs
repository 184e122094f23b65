//! Rows shown one by one as they come, on standard output or a pipe. Keeps nothing and resumes nothing.
//! Invariant: when `push` returns, all of the row has been handed on.

use std::io::{self, Write};
use std::path::Path;

use super::error::RowsError;
use super::format::Format;
use super::formats::{self, csv, json};
use super::row::Row;
use super::schema::Schema;

/// What errors call the place that rows go to.
const NAME: &str = "standard output";

/// Shows rows that are all there, in any format that is text.
pub fn show_all(
    mut out: impl Write + Send,
    format: Format,
    schema: &Schema,
    rows: impl IntoIterator<Item = Row>,
) -> Result<(), RowsError> {
    if format == Format::Parquet {
        return Err(RowsError::NeedsFile { format });
    }
    let mut rows = rows.into_iter().map(|row| row.check(schema).map(|()| row).map_err(RowsError::from));
    formats::write(format, schema, &mut out, &mut rows).map_err(|fault| fault.at(Path::new(NAME)))
}

/// Shows rows as they come.
///
/// ```
/// use plimsoll_results::rows::{Cell, Column, Format, Kind, Row, RowStream, Schema};
///
/// let schema = Schema::new(vec![Column::key("image", Kind::Text), Column::value("psnr", Kind::Number)])?;
/// let mut out = Vec::new();
/// let mut stream = RowStream::new(&mut out, Format::JsonLines, schema)?;
/// stream.push(&Row::new([Cell::from("a.png"), Cell::from(41.25)]))?;
/// assert_eq!(out, b"{\"image\":\"a.png\",\"psnr\":41.25}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RowStream<W: Write> {
    out: W,
    format: Format,
    schema: Schema,
}

impl<W: Write> RowStream<W> {
    /// Begins; for CSV, with the header. Refuses formats that only a whole file can hold.
    pub fn new(out: W, format: Format, schema: Schema) -> Result<Self, RowsError> {
        if !format.streams() {
            return Err(RowsError::NeedsFile { format });
        }
        let mut stream = Self { out, format, schema };
        if format == Format::Csv {
            let header = csv::header(&stream.schema);
            stream.hand_on(&header)?;
        }
        Ok(stream)
    }

    /// Shows a row. [`RowsError::PipeClosed`] says that nobody looks any more.
    pub fn push(&mut self, row: &Row) -> Result<(), RowsError> {
        row.check(&self.schema)?;
        let line = match self.format {
            Format::Csv => csv::line(row),
            _ => json::line(&self.schema, row),
        };
        self.hand_on(&line)
    }

    /// In one write, so that a reader of a pipe sees whole rows.
    fn hand_on(&mut self, line: &[u8]) -> Result<(), RowsError> {
        let written: io::Result<()> = self.out.write_all(line).and_then(|()| self.out.flush());
        written.map_err(|source| RowsError::system("write to", Path::new(NAME), source))
    }
}
