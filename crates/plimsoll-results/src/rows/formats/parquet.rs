//! Parquet without arrow: plain columns, each of which may be null, in groups of rows.
//! Text is a UTF-8 byte array, an integer an unsigned INT64, a number a DOUBLE, as data frames and databases expect.

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::record::Field;
use ::parquet::schema::types::{ColumnDescriptor, Type};

use super::super::error::RowsError;
use super::super::row::{Cell, Row};
use super::super::schema::{Column, Kind, Schema, SchemaDifference};
use super::{Each, Rows, WriteFault};

/// Rows of a group. Readers skip and share out work by groups; all of one lies in memory while it is written.
const GROUP_ROWS_MAX: usize = 1 << 16;

/// Bytes of text in a group, for rows with long texts.
const GROUP_TEXT_BYTES_MAX: usize = 64 << 20;

/// Writes all rows.
pub(super) fn write(schema: &Schema, out: &mut (dyn Write + Send), rows: Rows<'_>) -> Result<(), WriteFault> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(out, Arc::new(message(schema).map_err(io_of)?), Arc::new(properties))
        .map_err(io_of)?;
    let (mut group, mut text_bytes) = (Vec::new(), 0);
    for row in rows {
        let row = row?;
        text_bytes += row.cells().iter().map(text_len).sum::<usize>();
        group.push(row);
        if group.len() == GROUP_ROWS_MAX || text_bytes >= GROUP_TEXT_BYTES_MAX {
            write_group(&mut writer, schema, mem::take(&mut group)).map_err(io_of)?;
            text_bytes = 0;
        }
    }
    if !group.is_empty() {
        write_group(&mut writer, schema, group).map_err(io_of)?;
    }
    writer.close().map_err(io_of)?;
    Ok(())
}

fn text_len(cell: &Cell) -> usize {
    if let Cell::Text(text) = cell { text.len() } else { 0 }
}

/// The schema as Parquet has it.
fn message(schema: &Schema) -> Result<Type, ParquetError> {
    let fields = schema.columns().iter().map(|column| field(column).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("rows").with_fields(fields).build()
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind() {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Integer => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Number => (Physical::DOUBLE, None),
    };
    let field = Type::primitive_type_builder(column.name(), physical).with_repetition(Repetition::OPTIONAL);
    field.with_logical_type(logical).build()
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    schema: &Schema,
    mut rows: Vec<Row>,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (at, column) in schema.columns().iter().enumerate() {
        let cells = rows.iter_mut().map(|row| row.take_cell(at));
        let out = group.next_column()?.ok_or_else(|| ParquetError::General("a column too few".into()))?;
        match column.kind() {
            Kind::Text => write_column::<ByteArrayType>(out, cells, |cell| match cell {
                Cell::Text(text) => Some(ByteArray::from(text.into_bytes())),
                _ => None,
            })?,
            Kind::Integer => write_column::<Int64Type>(out, cells, |cell| match cell {
                Cell::Integer(integer) => Some(integer.cast_signed()),
                _ => None,
            })?,
            Kind::Number => write_column::<DoubleType>(out, cells, |cell| match cell {
                Cell::Number(number) => Some(number),
                _ => None,
            })?,
        }
    }
    group.close().map(|_| ())
}

/// Writes the values that are there, and for each row whether it has one.
fn write_column<T: DataType>(
    mut out: SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Cell>,
    value: impl Fn(Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let (mut values, mut present) = (Vec::new(), Vec::new());
    for found in cells.map(value) {
        present.push(i16::from(found.is_some()));
        values.extend(found);
    }
    out.typed::<T>().write_batch(&values, Some(&present), None)?;
    out.close()
}

/// What the system said, if that was the reason.
fn io_of(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// Reads all rows.
pub(super) fn read(schema: &Schema, file: File, path: &Path, each: Each<'_>) -> Result<(), RowsError> {
    let failed = |error: ParquetError| match error {
        ParquetError::External(inner) if inner.is::<io::Error>() => {
            RowsError::system("read", path, io_of(ParquetError::External(inner)))
        }
        other => RowsError::damaged(path, other.to_string()),
    };
    let reader = SerializedFileReader::new(file).map_err(failed)?;
    let places = places(schema, reader.metadata().file_metadata().schema_descr().columns(), path)?;
    for (at, row) in reader.get_row_iter(None).map_err(failed)?.enumerate() {
        let mut fields = row.map_err(failed)?.into_columns();
        let mut field = |place: Option<usize>| match place.and_then(|place| fields.get_mut(place)) {
            Some((_, field)) => std::mem::replace(field, Field::Null),
            None => Field::Null,
        };
        let cells = places.iter().zip(schema.columns()).map(|(place, column)| cell_of(field(*place), column));
        let cells = cells.collect::<Result<Vec<_>, _>>();
        each(Row::new(cells.map_err(|what| RowsError::damaged(path, format!("row {}: {what}", at + 1)))?))?;
    }
    Ok(())
}

/// The names of a file's columns.
pub(super) fn names(file: File) -> Option<Vec<String>> {
    let reader = SerializedFileReader::new(file).ok()?;
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    Some(columns.iter().map(|column| column.name().to_owned()).collect())
}

/// Where each column is in a file, if it is there.
fn places(schema: &Schema, found: &[Arc<ColumnDescriptor>], path: &Path) -> Result<Vec<Option<usize>>, RowsError> {
    let wrong = |difference| RowsError::Schema { path: path.to_owned(), difference };
    let places = schema.places(found.iter().map(|column| column.name())).map_err(wrong)?;
    let has_changed = |(column, place): &(&Column, &Option<usize>)| {
        place.is_some_and(|place| kind_of(&found[place]) != Some(column.kind()))
    };
    let changed = schema.columns().iter().zip(&places).filter(has_changed);
    let changed: Vec<String> = changed.map(|(column, _)| column.name().to_owned()).collect();
    if changed.is_empty() {
        Ok(places)
    } else {
        Err(wrong(SchemaDifference { changed, ..SchemaDifference::default() }))
    }
}

fn kind_of(column: &ColumnDescriptor) -> Option<Kind> {
    match (column.physical_type(), column.converted_type()) {
        _ if column.max_rep_level() > 0 || column.path().parts().len() > 1 => None,
        (Physical::BYTE_ARRAY, ConvertedType::UTF8) => Some(Kind::Text),
        (Physical::INT64, ConvertedType::UINT_64) => Some(Kind::Integer),
        (Physical::DOUBLE, ConvertedType::NONE) => Some(Kind::Number),
        _ => None,
    }
}

fn cell_of(field: Field, column: &Column) -> Result<Cell, String> {
    match (field, column.kind()) {
        (Field::Null, _) => Ok(Cell::Empty),
        (Field::Str(text), Kind::Text) => Ok(Cell::Text(text)),
        (Field::ULong(integer), Kind::Integer) => Ok(Cell::Integer(integer)),
        (Field::Double(number), Kind::Number) if number.is_finite() => Ok(Cell::Number(number)),
        (other, kind) => Err(format!("column {:?} holds {other}, which is not {kind}", column.name())),
    }
}
