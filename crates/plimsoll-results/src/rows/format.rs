//! Which format rows are written in: named by a flag, or by how the file's name ends.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A header and comma-separated values, as RFC 4180 has them.
    Csv,
    /// One array of objects.
    Json,
    /// An object on each line.
    JsonLines,
    /// Columns, for data frames and databases.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Csv, Self::Json, Self::JsonLines, Self::Parquet];

    /// The format that a file's name asks for.
    pub fn of_path(path: &Path) -> Result<Self, ParseFormatError> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
        match extension {
            Some(extension) => extension.parse(),
            None => Err(ParseFormatError { name: path.display().to_string() }),
        }
    }

    /// Whether a row can be shown as soon as it is there, without an end or an index to follow.
    pub fn streams(self) -> bool {
        matches!(self, Self::Csv | Self::JsonLines)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(name: &str) -> Result<Self, ParseFormatError> {
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "ndjson" => Ok(Self::JsonLines),
            _ => Self::ALL
                .into_iter()
                .find(|format| format.name() == lower)
                .ok_or_else(|| ParseFormatError { name: name.to_owned() }),
        }
    }
}

/// No format has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} names no format of rows: csv, json, jsonl and parquet do, also as the file's extension")]
pub struct ParseFormatError {
    /// What was given.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_shown() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
            assert_eq!(Format::of_path(Path::new(&format!("a.b/scores.{format}"))), Ok(format));
        }
        assert_eq!(Format::of_path(Path::new("scores.NDJSON")), Ok(Format::JsonLines));
    }

    #[test]
    fn other_names_are_refused() {
        assert!("xlsx".parse::<Format>().is_err());
        let error = Format::of_path(Path::new("dir.csv/scores")).expect_err("no extension");
        assert_eq!(error.name, "dir.csv/scores");
    }
}
