//! Each format, written and read back. Never decides which rows there are.
//! Invariant: what is read is what was written, to the last bit of every number.

pub(super) mod csv;
pub(super) mod json;
pub(super) mod json_cell;
#[cfg(feature = "parquet")]
mod parquet;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::error::RowsError;
use super::format::Format;
use super::row::Row;
use super::schema::Schema;

/// Rows that are about to be written, or why one is not there.
pub(super) type Rows<'a> = &'a mut dyn Iterator<Item = Result<Row, RowsError>>;

/// What takes each row that is read.
pub(super) type Each<'a> = &'a mut dyn FnMut(Row) -> Result<(), RowsError>;

/// Why not all rows were written: because of where they come from, or where they go to.
#[derive(Debug)]
pub(super) enum WriteFault {
    From(RowsError),
    To(io::Error),
}

impl WriteFault {
    /// The error of writing to that file.
    pub(super) fn at(self, path: &Path) -> RowsError {
        match self {
            Self::From(error) => error,
            Self::To(source) => RowsError::system("write", path, source),
        }
    }
}

impl From<RowsError> for WriteFault {
    fn from(error: RowsError) -> Self {
        Self::From(error)
    }
}

impl From<io::Error> for WriteFault {
    fn from(error: io::Error) -> Self {
        Self::To(error)
    }
}

/// Writes a whole file.
pub(super) fn write(
    format: Format,
    schema: &Schema,
    out: &mut (dyn Write + Send),
    rows: Rows<'_>,
) -> Result<(), WriteFault> {
    match format {
        Format::Csv => csv::write(schema, out, rows),
        Format::Json => json::write_array(schema, out, rows),
        Format::JsonLines => json::write_lines(schema, out, rows),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::write(schema, out, rows),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(RowsError::NoParquet.into()),
    }
}

/// The names of a file's columns, as far as they can be told.
pub(super) fn names(format: Format, file: File) -> Option<Vec<String>> {
    match format {
        Format::Csv => csv::names(file),
        Format::Json | Format::JsonLines => json::names(file),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::names(file),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => None,
    }
}

/// Reads a whole file of this schema, in order.
pub(super) fn read(format: Format, schema: &Schema, file: File, path: &Path, each: Each<'_>) -> Result<(), RowsError> {
    match format {
        Format::Csv => csv::read(schema, file, path, each),
        Format::Json => json::read_array(schema, file, path, each),
        Format::JsonLines => json::read_lines(schema, file, path, each),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::read(schema, file, path, each),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(RowsError::NoParquet),
    }
}

#[cfg(test)]
mod tests;
