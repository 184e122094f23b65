//! The first line of a journal: that it is one, of which version, for which columns.
//! Invariant: a file that does not begin so is somebody else's and is never written to.

use serde_json::{Value, json};

use super::super::schema::{Column, Kind, Schema};
use super::line::{seal, unseal};

/// How every journal begins, of whatever version.
const MAGIC: &[u8] = b"plimsoll-rows-journal ";

/// The version that this code writes, and the only one it reads.
const VERSION: &[u8] = b"1 ";

/// What a journal says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Header {
    /// The columns of its rows.
    pub(in super::super) schema: Schema,
    /// Whether the output that lies there is to be replaced, so that none of its rows belong to this run.
    pub(in super::super) replaces: bool,
}

/// Why a first line is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoHeader {
    Foreign,
    Newer,
    Damaged,
}

impl Header {
    /// The line, with its end.
    pub(super) fn line(&self) -> Vec<u8> {
        let columns: Vec<Value> = self
            .schema
            .columns()
            .iter()
            .map(|column| json!([column.name(), column.kind().name(), column.is_key()]))
            .collect();
        let payload = json!({ "columns": columns, "replaces": self.replaces }).to_string();
        [MAGIC, VERSION, &seal(payload.as_bytes())].concat()
    }

    /// Reads a whole line, without its end.
    pub(super) fn read(line: &[u8]) -> Result<Self, NoHeader> {
        let versioned = line.strip_prefix(MAGIC).ok_or(NoHeader::Foreign)?;
        let sealed = versioned.strip_prefix(VERSION).ok_or(NoHeader::Newer)?;
        unseal(sealed).and_then(Self::of_payload).ok_or(NoHeader::Damaged)
    }

    fn of_payload(payload: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(payload).ok()?;
        let columns = value.get("columns")?.as_array()?.iter().map(column_of).collect::<Option<Vec<_>>>()?;
        Some(Self { schema: Schema::new(columns).ok()?, replaces: value.get("replaces")?.as_bool()? })
    }
}

fn column_of(value: &Value) -> Option<Column> {
    let [name, kind, key] = value.as_array()?.as_slice() else { return None };
    let (name, kind) = (name.as_str()?, Kind::named(kind.as_str()?)?);
    Some(if key.as_bool()? { Column::key(name, kind) } else { Column::value(name, kind) })
}

/// Whether these bytes, all that a file holds, are what a kill leaves of a header: no row can be behind them.
pub(super) fn is_torn(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || MAGIC.starts_with(bytes)
}

/// Whether a line, cut off somewhere, began a journal.
pub(super) fn is_ours(line: &[u8]) -> bool {
    line.starts_with(MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let columns = vec![Column::key("a \"b\"\n", Kind::Text), Column::value("score", Kind::Number)];
        Header { schema: Schema::new(columns).expect("sound"), replaces: true }
    }

    #[test]
    fn a_header_is_one_line_and_comes_back() {
        let line = header().line();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(Header::read(&line[..line.len() - 1]), Ok(header()));
    }

    #[test]
    fn other_lines_are_told_apart() {
        assert_eq!(Header::read(b"reference,distorted"), Err(NoHeader::Foreign));
        assert_eq!(Header::read(b"plimsoll-rows-journal 2 whatever"), Err(NoHeader::Newer));
        assert_eq!(Header::read(b"plimsoll-rows-journal 1 whatever"), Err(NoHeader::Damaged));
    }

    #[test]
    fn every_part_of_a_header_is_a_torn_one() {
        let line = header().line();
        (0..line.len()).for_each(|at| assert!(is_torn(&line[..at]), "cut at {at}"));
        assert!(!is_torn(b"plimsoll was here") && !is_torn(b"a"));
    }
}
