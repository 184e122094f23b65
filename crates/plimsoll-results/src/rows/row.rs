//! One row of results, and whether it suits a schema. Never knows how a row is written.
//! Invariant: a row holds no empty text (that is [`Cell::Empty`]), since CSV could not tell the two apart.

use super::schema::{Kind, Schema};

/// One value of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// No value: `null`, or nothing between two commas.
    #[default]
    Empty,
    /// Any text.
    Text(String),
    /// A whole number.
    Integer(u64),
    /// A finite number. Comes back with the same bits from every format.
    Number(f64),
}

impl Cell {
    /// What kind of value it is; none when empty.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Empty => None,
            Self::Text(_) => Some(Kind::Text),
            Self::Integer(_) => Some(Kind::Integer),
            Self::Number(_) => Some(Kind::Number),
        }
    }

    /// The one way to write this value: an empty text is no value.
    pub(super) fn canonical(self) -> Self {
        match self {
            Self::Text(text) if text.is_empty() => Self::Empty,
            other => other,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned()).canonical()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text).canonical()
    }
}

impl From<u64> for Cell {
    fn from(integer: u64) -> Self {
        Self::Integer(integer)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// What is not there is empty.
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}

/// The cells of one result, in the order of the schema's columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    cells: Vec<Cell>,
}

impl Row {
    /// A row of these cells. An empty text becomes [`Cell::Empty`].
    pub fn new(cells: impl IntoIterator<Item = Cell>) -> Self {
        Self { cells: cells.into_iter().map(Cell::canonical).collect() }
    }

    /// Its cells, in the order of the columns.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Takes a cell out and leaves it empty, for a writer of columns.
    #[cfg(feature = "parquet")]
    pub(super) fn take_cell(&mut self, at: usize) -> Cell {
        std::mem::take(&mut self.cells[at])
    }

    /// Whether it can be a row of this schema.
    pub(super) fn check(&self, schema: &Schema) -> Result<(), RowError> {
        let columns = schema.columns();
        if self.cells.len() != columns.len() {
            return Err(RowError::Count { cells: self.cells.len(), columns: columns.len() });
        }
        for (cell, column) in self.cells.iter().zip(columns) {
            let fault = |fault: fn(String) -> RowError| Err(fault(column.name().to_owned()));
            match cell {
                Cell::Number(number) if !number.is_finite() => return fault(|column| RowError::NotFinite { column }),
                _ => {}
            }
            if let Some(found) = cell.kind().filter(|kind| *kind != column.kind()) {
                return Err(RowError::Kind { column: column.name().to_owned(), wanted: column.kind(), found });
            }
        }
        Ok(())
    }
}

/// Why a row cannot be one of a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// Too few or too many cells.
    #[error("a row of {cells} cells for {columns} columns")]
    Count {
        /// Cells of the row.
        cells: usize,
        /// Columns of the schema.
        columns: usize,
    },
    /// A value of another kind than its column.
    #[error("column {column:?} holds {wanted}, not {found}")]
    Kind {
        /// The column's name.
        column: String,
        /// Its kind.
        wanted: Kind,
        /// The value's kind.
        found: Kind,
    },
    /// Neither JSON nor arithmetic knows what to do with it.
    #[error("column {column:?} was given a number that is not finite: leave the cell empty and say why in `error`")]
    NotFinite {
        /// The column's name.
        column: String,
    },
    /// Longer than [`ROW_BYTES_MAX`](super::ROW_BYTES_MAX).
    #[error("a row of {bytes} bytes; at most {limit} are kept: shorten its texts")]
    TooLong {
        /// Length of the row's line.
        bytes: usize,
        /// The most that is taken.
        limit: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::super::schema::Column;
    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![Column::key("name", Kind::Text), Column::value("score", Kind::Number)]).expect("sound")
    }

    #[test]
    fn an_empty_text_is_no_value() {
        assert_eq!(Row::new([Cell::Text(String::new()), Cell::from("")]).cells(), [Cell::Empty, Cell::Empty]);
        assert_eq!(Cell::from(None::<f64>), Cell::Empty);
    }

    #[test]
    fn rows_that_do_not_suit_are_told_why() {
        let fault = |cells: Vec<Cell>| Row::new(cells).check(&schema()).expect_err("unsuitable").to_string();
        assert_eq!(fault(vec!["a".into()]), "a row of 1 cells for 2 columns");
        assert_eq!(fault(vec!["a".into(), 7.into()]), "column \"score\" holds a number, not an integer");
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let cells = Row::new(["a".into(), number.into()]);
            assert_eq!(cells.check(&schema()), Err(RowError::NotFinite { column: "score".into() }));
        }
        Row::new(["a".into(), Cell::Empty]).check(&schema()).expect("a missing value suits every column");
    }
}
