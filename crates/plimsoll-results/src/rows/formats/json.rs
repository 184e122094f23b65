//! JSON: an object for each row, in one array or on a line each. Empty cells are `null`, so that all rows look alike.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::super::ROW_BYTES_MAX;
use super::super::bounded_lines::{Line, read_line};
use super::super::error::RowsError;
use super::super::row::Row;
use super::super::schema::Schema;
use super::{Each, Rows, WriteFault, json_cell};

/// A line of an object: the cells of a row, and the names of all columns, which a schema bounds.
const LINE_BYTES_MAX: usize = ROW_BYTES_MAX + (1 << 20);

/// Writes one array, a row on each line.
pub(super) fn write_array(schema: &Schema, out: &mut dyn Write, rows: Rows<'_>) -> Result<(), WriteFault> {
    out.write_all(b"[")?;
    for (at, row) in rows.enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        out.write_all(&object(schema, &row?))?;
    }
    Ok(out.write_all(b"\n]\n")?)
}

/// Writes an object on each line.
pub(super) fn write_lines(schema: &Schema, out: &mut dyn Write, rows: Rows<'_>) -> Result<(), WriteFault> {
    for row in rows {
        out.write_all(&line(schema, &row?))?;
    }
    Ok(())
}

/// The row's line.
pub(in super::super) fn line(schema: &Schema, row: &Row) -> Vec<u8> {
    let mut line = object(schema, row);
    line.push(b'\n');
    line
}

fn object(schema: &Schema, row: &Row) -> Vec<u8> {
    let mut object = vec![b'{'];
    for (at, (column, cell)) in schema.columns().iter().zip(row.cells()).enumerate() {
        if at > 0 {
            object.push(b',');
        }
        serde_json::to_writer(&mut object, column.name()).expect("memory takes all bytes");
        object.push(b':');
        json_cell::append(&mut object, cell);
    }
    object.push(b'}');
    object
}

/// Reads one array, a row at a time.
pub(super) fn read_array(schema: &Schema, file: File, path: &Path, each: Each<'_>) -> Result<(), RowsError> {
    let mut input = serde_json::Deserializer::from_reader(BufReader::new(file));
    let mut stopped = None;
    let read = EachObject { schema, path, each, stopped: &mut stopped }.deserialize(&mut input);
    match (stopped, read.and_then(|()| input.end())) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(fault_of(error, path)),
        (None, Ok(())) => Ok(()),
    }
}

fn fault_of(error: serde_json::Error, path: &Path) -> RowsError {
    if error.is_io() {
        RowsError::system("read", path, error.into())
    } else {
        RowsError::damaged(path, error.to_string())
    }
}

/// Takes an array apart while it is read: all of a long one would not fit in memory.
struct EachObject<'a> {
    schema: &'a Schema,
    path: &'a Path,
    each: Each<'a>,
    /// Why reading was stopped from our side; the parser has no place for our errors.
    stopped: &'a mut Option<RowsError>,
}

impl<'de> DeserializeSeed<'de> for EachObject<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EachObject<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(object) = rows.next_element::<Map<String, Value>>()? {
            number += 1;
            let taken = row_of(object, self.schema, self.path, &format!("row {number}")).and_then(&mut *self.each);
            if let Err(error) = taken {
                *self.stopped = Some(error);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

/// Reads an object on each line. Empty lines are passed over.
pub(super) fn read_lines(schema: &Schema, file: File, path: &Path, each: Each<'_>) -> Result<(), RowsError> {
    let mut input = BufReader::new(file);
    let mut bytes = Vec::new();
    for number in 1_u64.. {
        let place = format!("line {number}");
        let read = read_line(&mut input, &mut bytes, LINE_BYTES_MAX);
        match read.map_err(|source| RowsError::system("read", path, source))? {
            (Line::End, _) => break,
            (Line::TooLong, _) => return Err(RowsError::damaged(path, format!("{place} is too long for a row"))),
            _ if bytes.trim_ascii().is_empty() => continue,
            _ => {}
        }
        let object = serde_json::from_slice::<Map<String, Value>>(&bytes)
            .map_err(|error| RowsError::damaged(path, format!("{place}: {error}")))?;
        each(row_of(object, schema, path, &place)?)?;
    }
    Ok(())
}

/// The names in the first object of a file.
pub(super) fn names(file: File) -> Option<Vec<String>> {
    let mut input = serde_json::Deserializer::from_reader(BufReader::new(file));
    let first: Result<Map<String, Value>, _> = FirstObject.deserialize(&mut input);
    first.ok().map(|object| object.keys().cloned().collect())
}

/// An object, or the first one of an array.
struct FirstObject;

impl<'de> DeserializeSeed<'de> for FirstObject {
    type Value = Map<String, Value>;

    fn deserialize<D: serde::Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FirstObject {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row, or an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Self::Value, A::Error> {
        let first = rows.next_element::<Map<String, Value>>()?.unwrap_or_default();
        while rows.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(first)
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut cells: A) -> Result<Self::Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, value)) = cells.next_entry::<String, Value>()? {
            object.insert(name, value);
        }
        Ok(object)
    }
}

fn row_of(mut object: Map<String, Value>, schema: &Schema, path: &Path, place: &str) -> Result<Row, RowsError> {
    let columns = schema.columns();
    let is_missing = |column: &super::super::schema::Column| !object.contains_key(column.name());
    let found = columns.iter().filter(|column| !is_missing(column)).count();
    if object.len() != found || columns.iter().any(|column| column.is_key() && is_missing(column)) {
        let difference = schema.difference_of_names(object.keys().map(String::as_str)).unwrap_or_default();
        return Err(RowsError::Schema { path: path.to_owned(), difference });
    }
    let cells = columns.iter().map(|column| {
        let value = object.remove(column.name()).unwrap_or_default();
        json_cell::read(value, column).map_err(|what| RowsError::damaged(path, format!("{place}: {what}")))
    });
    Ok(Row::new(cells.collect::<Result<Vec<_>, _>>()?))
}
