//! One cell as JSON. Numbers are written as short as they can be and read to the same bits.

use serde_json::Value;

use super::super::row::Cell;
use super::super::schema::{Column, Kind};

/// Writes a cell behind what is there.
pub(in super::super) fn append(out: &mut Vec<u8>, cell: &Cell) {
    let written = match cell {
        Cell::Empty => serde_json::to_writer(out, &()),
        Cell::Text(text) => serde_json::to_writer(out, text),
        Cell::Integer(integer) => serde_json::to_writer(out, integer),
        Cell::Number(number) => serde_json::to_writer(out, number),
    };
    written.expect("text and numbers have a form in JSON, and memory takes all bytes");
}

/// Reads a cell of this column; says what is wrong when it is none.
pub(in super::super) fn read(value: Value, column: &Column) -> Result<Cell, String> {
    let cell = match (value, column.kind()) {
        (Value::Null, _) => Some(Cell::Empty),
        (Value::String(text), Kind::Text) => Some(Cell::Text(text).canonical()),
        (Value::Number(number), Kind::Integer) => number.as_u64().map(Cell::Integer),
        (Value::Number(number), Kind::Number) => number.as_f64().map(Cell::Number),
        _ => None,
    };
    cell.ok_or_else(|| format!("column {:?} holds something else than {}", column.name(), column.kind()))
}
