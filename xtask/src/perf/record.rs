//! What was measured, as a file: machine, revisions, and the median of every figure, one a line.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::judge::{Compared, Figure, median};
use super::machine::Machine;
use crate::steps;

/// The medians of this revision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) machine: Vec<(&'static str, String)>,
    pub(crate) values: Vec<(String, Figure, f64)>,
}

impl Record {
    pub(crate) fn new(machine: &Machine, compared: &[Compared]) -> Self {
        let value = |of: &Compared| Some((of.row.clone(), of.figure, median(&of.this)?));
        Self { machine: machine.fields(), values: compared.iter().filter_map(value).collect() }
    }

    pub(crate) fn value(&self, row: &str, figure: Figure) -> Option<f64> {
        self.values.iter().find(|(of, what, _)| of == row && *what == figure).map(|(_, _, value)| *value)
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        fs::write(path, self.to_json()).map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Makes it the baseline. A part of the rows would lose the others.
    pub(crate) fn keep(&self, is_whole: bool) -> Result<(), String> {
        if !is_whole {
            return Err("--update keeps every row; leave out --quick and --rows".to_owned());
        }
        println!("kept as {}", kept_path().display());
        self.write(&kept_path())
    }

    /// The baseline, if one was made.
    pub(crate) fn kept() -> Result<Option<Self>, String> {
        Self::read(&kept_path())
    }

    fn read(path: &Path) -> Result<Option<Self>, String> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map(Some).map_err(|line| format!("{}: '{line}' is no row", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("the baseline {} cannot be read: {error}", path.display())),
        }
    }

    fn to_json(&self) -> String {
        let mut json = String::from("{\n");
        for (name, value) in &self.machine {
            _ = writeln!(json, "  \"{name}\": \"{}\",", value.replace(['"', '\\', '\n'], " "));
        }
        json.push_str("  \"rows\": [\n");
        for (at, (row, figure, value)) in self.values.iter().enumerate() {
            let comma = if at + 1 < self.values.len() { "," } else { "" };
            let figure = figure.name();
            _ = writeln!(json, "    {{\"row\": \"{row}\", \"figure\": \"{figure}\", \"value\": {value}}}{comma}");
        }
        json.push_str("  ]\n}\n");
        json
    }

    /// Only what [`Record::to_json`] writes is read.
    fn parse(text: &str) -> Result<Self, &str> {
        let rows = text.lines().filter(|line| line.contains("\"row\":"));
        let values = rows.map(|line| parse_row(line).ok_or(line)).collect::<Result<_, _>>()?;
        Ok(Self { machine: Vec::new(), values })
    }
}

fn parse_row(line: &str) -> Option<(String, Figure, f64)> {
    let text = |name: &str| line.split_once(&format!("\"{name}\": \""))?.1.split('"').next();
    let figure = Figure::ALL.into_iter().find(|figure| Some(figure.name()) == text("figure"))?;
    let value = line.split_once("\"value\": ")?.1.trim_end_matches([',', '}']).parse().ok()?;
    Some((text("row")?.to_owned(), figure, value))
}

fn kept_path() -> PathBuf {
    steps::root().join("xtask/perf.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let values = vec![
            ("a/b".to_owned(), Figure::Ratio, 3.25),
            ("c".to_owned(), Figure::Peak, 1e9),
            ("c".to_owned(), Figure::Overhead, 0.001),
        ];
        let record = Record { machine: vec![("cpu", "a \"fast\" one".to_owned())], values };
        assert_eq!(Record::parse(&record.to_json()).unwrap().values, record.values);
        assert!(Record::parse("{\"row\": \"a\"}").is_err());
    }

    #[test]
    fn a_baseline_that_is_there_names_every_row() {
        let rows =
            super::super::matrix::ALL.iter().flat_map(|row| row.reads.iter().map(|reads| (row.name, reads.figure())));
        if let Some(kept) = Record::kept().unwrap() {
            for (row, figure) in rows {
                assert!(kept.value(row, figure).is_some(), "{row}: {}", figure.name());
            }
        }
    }

    #[test]
    fn a_baseline_that_cannot_be_read_is_an_error() {
        assert_eq!(Record::read(Path::new("no-such-baseline.json")), Ok(None));
        assert!(Record::read(&std::env::temp_dir()).unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn a_part_is_not_kept() {
        let record = Record { machine: Vec::new(), values: Vec::new() };
        assert!(record.keep(false).unwrap_err().contains("every row"));
    }
}
