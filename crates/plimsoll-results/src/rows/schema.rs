//! Which columns rows have, and how two schemas differ. Never looks at values.
//! Invariant: column names are unique, and at least one column is a key.

use std::collections::HashSet;
use std::fmt;

use super::key::Key;
use super::row::{Cell, Row};

/// Text in this column means that the row's task failed, so a resuming run tries it again.
const ERROR_COLUMN: &str = "error";

/// Columns of a schema. Ten times what a table of scores has.
const COLUMNS_MAX: usize = 512;

/// Bytes of a column's name. With [`COLUMNS_MAX`] it bounds the header, and the length of a line of JSON.
const NAME_BYTES_MAX: usize = 128;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any text but an empty one.
    Text,
    /// A whole number, `u64`.
    Integer,
    /// A finite number, `f64`.
    Number,
}

impl Kind {
    /// Its name in a journal's header.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Number => "number",
        }
    }

    /// The kind of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Text, Self::Integer, Self::Number].into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Integer => "an integer",
            Self::Number => "a number",
        })
    }
}

/// A named column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    name: String,
    kind: Kind,
    key: bool,
}

impl Column {
    /// A column that helps to tell rows apart.
    pub fn key(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, key: true }
    }

    /// A column of what was found out.
    pub fn value(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, key: false }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it holds.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it helps to tell rows apart.
    pub fn is_key(&self) -> bool {
        self.key
    }
}

/// The columns of every row of a file.
///
/// A text column named `error` is special: a row with text there is a failed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    columns: Vec<Column>,
    error: Option<usize>,
}

impl Schema {
    /// Checks the columns.
    pub fn new(columns: Vec<Column>) -> Result<Self, SchemaError> {
        let mut names = HashSet::new();
        for column in &columns {
            if column.name.is_empty() || column.name.len() > NAME_BYTES_MAX {
                return Err(SchemaError::Name { name: column.name.clone(), limit: NAME_BYTES_MAX });
            }
            if !names.insert(column.name.as_str()) {
                return Err(SchemaError::Twice { name: column.name.clone() });
            }
        }
        if columns.len() > COLUMNS_MAX {
            return Err(SchemaError::TooMany { columns: columns.len(), limit: COLUMNS_MAX });
        }
        if !columns.iter().any(Column::is_key) {
            return Err(SchemaError::NoKey);
        }
        let error = columns.iter().position(|column| column.name == ERROR_COLUMN && column.kind == Kind::Text);
        Ok(Self { columns, error })
    }

    /// The columns, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// What tells this row from others. The row must be one of this schema.
    pub fn key(&self, row: &Row) -> Key {
        Key::of(self.columns.iter().zip(row.cells()).filter(|(column, _)| column.key).map(|(_, cell)| cell))
    }

    /// The key of rows with these values in the key columns, in the order of those columns.
    ///
    /// None when there are more or fewer values than key columns.
    pub fn key_of(&self, cells: impl IntoIterator<Item = Cell>) -> Option<Key> {
        let cells: Vec<Cell> = cells.into_iter().map(Cell::canonical).collect();
        let keys = self.columns.iter().filter(|column| column.key).count();
        (cells.len() == keys).then(|| Key::of(&cells))
    }

    /// Whether the row tells of a failure.
    pub fn failed(&self, row: &Row) -> bool {
        self.error.is_some_and(|error| row.cells()[error] != Cell::Empty)
    }

    /// What another schema has instead of this; none when they are alike.
    pub(super) fn difference(&self, found: &Self) -> Option<SchemaDifference> {
        if self.columns == found.columns {
            return None;
        }
        let mut difference = self.difference_of_names(found.columns.iter().map(Column::name)).unwrap_or_default();
        difference.reordered &= self.columns.len() == found.columns.len();
        for column in &self.columns {
            let other = found.columns.iter().find(|other| other.name == column.name);
            if other.is_some_and(|other| (other.kind, other.key) != (column.kind, column.key)) {
                difference.changed.push(column.name.clone());
            }
        }
        Some(difference)
    }

    /// For each column its place in a file with these columns, if it is there. A file may lack columns that are no key;
    /// it may not have others, or in another order.
    pub(super) fn places<'a>(
        &self,
        found: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<Option<usize>>, SchemaDifference> {
        let found: Vec<&str> = found.collect();
        let place = |column: &Column| found.iter().position(|name| *name == column.name);
        let places: Vec<Option<usize>> = self.columns.iter().map(place).collect();
        let is_sound = places.iter().flatten().is_sorted()
            && places.iter().flatten().count() == found.len()
            && self.columns.iter().zip(&places).all(|(column, place)| place.is_some() || !column.key);
        match self.difference_of_names(found.into_iter()) {
            Some(difference) if !is_sound => Err(difference),
            _ => Ok(places),
        }
    }

    /// How a file's column names differ; none when they are the same in the same order.
    pub(super) fn difference_of_names<'a>(&self, found: impl Iterator<Item = &'a str>) -> Option<SchemaDifference> {
        let found: Vec<&str> = found.collect();
        let wanted: Vec<&str> = self.columns.iter().map(Column::name).collect();
        let without = |of: &[&str], other: &[&str]| -> Vec<String> {
            of.iter().filter(|name| !other.contains(name)).map(|name| (*name).to_owned()).collect()
        };
        let (missing, unexpected) = (without(&wanted, &found), without(&found, &wanted));
        let reordered = missing.is_empty() && unexpected.is_empty() && found != wanted;
        let difference = SchemaDifference { missing, unexpected, changed: Vec::new(), reordered };
        (found != wanted).then_some(difference)
    }
}

/// How the columns of a file differ from those of this run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaDifference {
    /// Columns of this run that the file lacks.
    pub missing: Vec<String>,
    /// Columns of the file that this run lacks.
    pub unexpected: Vec<String>,
    /// Columns of both that hold another kind of value, or are keys in only one.
    pub changed: Vec<String>,
    /// Whether only the order differs, or a column is there twice.
    pub reordered: bool,
}

impl fmt::Display for SchemaDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")));
        let mut parts: Vec<String> = [
            named("it lacks", &self.missing),
            named("it also has", &self.unexpected),
            named("another kind of value is in", &self.changed),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.reordered {
            parts.push("its columns are in another order".into());
        }
        f.write_str(&parts.join("; "))
    }
}

/// Why columns are no schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A name that is empty or too long.
    #[error("{name:?} cannot name a column: 1 to {limit} bytes can")]
    Name {
        /// The name.
        name: String,
        /// The longest name.
        limit: usize,
    },
    /// A name that two columns have.
    #[error("two columns are named {name:?}")]
    Twice {
        /// The name.
        name: String,
    },
    /// More columns than any table of results needs.
    #[error("{columns} columns; at most {limit} are possible")]
    TooMany {
        /// How many there are.
        columns: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Rows could not be told apart.
    #[error("no column is a key, so rows could not be told apart")]
    NoKey,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(columns: &[(&str, Kind)]) -> Schema {
        let columns = columns.iter().enumerate().map(|(at, (name, kind))| match at {
            0 => Column::key(*name, *kind),
            _ => Column::value(*name, *kind),
        });
        Schema::new(columns.collect()).expect("sound")
    }

    #[test]
    fn columns_that_are_no_schema_are_refused() {
        let fault = |columns| Schema::new(columns).expect_err("no schema");
        assert_eq!(fault(vec![Column::value("a", Kind::Text)]), SchemaError::NoKey);
        assert!(matches!(fault(vec![Column::key("", Kind::Text)]), SchemaError::Name { .. }));
        assert!(matches!(fault(vec![Column::key("n".repeat(129), Kind::Text)]), SchemaError::Name { .. }));
        let twice = vec![Column::key("a", Kind::Text), Column::value("a", Kind::Number)];
        assert_eq!(fault(twice), SchemaError::Twice { name: "a".into() });
        let many = (0..513).map(|at| Column::key(at.to_string(), Kind::Text)).collect();
        assert_eq!(fault(many), SchemaError::TooMany { columns: 513, limit: 512 });
    }

    #[test]
    fn a_difference_names_the_columns() {
        let wanted = schema(&[("a", Kind::Text), ("b", Kind::Number), ("c", Kind::Text)]);
        let shown = |found| wanted.difference(&found).map(|difference| difference.to_string());
        assert_eq!(shown(wanted.clone()), None);
        let other = schema(&[("a", Kind::Integer), ("b", Kind::Number), ("d", Kind::Text)]);
        assert_eq!(shown(other).as_deref(), Some("it lacks c; it also has d; another kind of value is in a"));
        let reordered = schema(&[("a", Kind::Text), ("c", Kind::Text), ("b", Kind::Number)]);
        assert_eq!(shown(reordered).as_deref(), Some("its columns are in another order"));
        let twice = wanted.difference_of_names(["a", "b", "c", "c"].into_iter()).expect("differs");
        assert!(twice.reordered, "a column that is there twice is told of too");
    }

    #[test]
    fn only_a_key_of_all_key_columns_is_one() {
        let schema = Schema::new(vec![
            Column::key("a", Kind::Text),
            Column::value("score", Kind::Number),
            Column::key("b", Kind::Integer),
            Column::value("error", Kind::Text),
        ])
        .expect("sound");
        let row = |score: f64, error: &str| Row::new(["x".into(), score.into(), 7.into(), error.into()]);
        assert_eq!(schema.key(&row(1.0, "")), schema.key(&row(2.0, "broken")));
        assert_eq!(schema.key_of(["x".into(), 7.into()]), Some(schema.key(&row(1.0, ""))));
        assert_eq!(schema.key_of(["x".into()]), None);
        assert!(schema.failed(&row(1.0, "broken")) && !schema.failed(&row(1.0, "")));
    }
}
