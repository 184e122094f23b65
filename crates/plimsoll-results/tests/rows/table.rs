//! The rows that these tests write, and a look at what came of them that shares no code with what wrote them.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_results::rows::{Cell, Column, Existing, Format, Key, Kind, Row, RowFile, RowsError, Schema};
use tempfile::TempDir;

/// Every format that this build has.
pub(crate) fn built() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| cfg!(feature = "parquet") || *format != Format::Parquet)
}

pub(crate) fn schema() -> Schema {
    Schema::new(vec![
        Column::key("image", Kind::Text),
        Column::key("hash", Kind::Integer),
        Column::value("a score with quite a long name", Kind::Number),
        Column::value("error", Kind::Text),
    ])
    .expect("sound")
}

fn image(at: u64) -> String {
    format!("image \"{at}\", é.png")
}

fn hash(at: u64) -> u64 {
    at.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A number whose shortest form is long, another for every row.
fn score(at: u64) -> f64 {
    (at as f64 + 1.0).sqrt() / 3.0
}

pub(crate) fn good(at: u64) -> Row {
    Row::new([image(at).into(), hash(at).into(), score(at).into(), Cell::Empty])
}

pub(crate) fn failed(at: u64) -> Row {
    Row::new([image(at).into(), hash(at).into(), Cell::Empty, "out of memory".into()])
}

pub(crate) fn key(at: u64) -> Key {
    schema().key_of([image(at).into(), hash(at).into()]).expect("two key columns")
}

pub(crate) fn place(format: Format) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("scores.{format}"));
    (folder, path)
}

pub(crate) fn journal_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.journal", path.display()))
}

pub(crate) fn draft_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.new", path.display()))
}

pub(crate) fn open(path: &Path, existing: Existing) -> Result<RowFile, RowsError> {
    RowFile::create(path, Format::of_path(path).expect("named by its format"), schema(), existing)
}

/// Writes a finished output of these rows.
pub(crate) fn finished(path: &Path, rows: impl IntoIterator<Item = Row>) {
    let mut file = open(path, Existing::Refuse).expect("nothing is there");
    rows.into_iter().for_each(|row| file.push(&row).expect("room"));
    file.finish().expect("written");
}

/// A row as someone else's reader sees it: image, hash, score, error.
pub(crate) type Seen = (String, u64, Option<f64>, Option<String>);

pub(crate) fn seen_good(at: u64) -> Seen {
    (image(at), hash(at), Some(score(at)), None)
}

pub(crate) fn seen_failed(at: u64) -> Seen {
    (image(at), hash(at), None, Some("out of memory".into()))
}

/// Reads an output with the readers of its format.
pub(crate) fn seen(path: &Path) -> Vec<Seen> {
    match Format::of_path(path).expect("named by its format") {
        Format::Csv => csv::Reader::from_path(path).expect("there").records().map(of_record).collect(),
        Format::Json => objects(&fs::read(path).expect("there")),
        Format::JsonLines => fs::read_to_string(path).expect("there").lines().map(of_line).collect(),
        Format::Parquet => of_parquet(path),
    }
}

fn of_record(record: csv::Result<csv::StringRecord>) -> Seen {
    let record = record.expect("a row");
    let some = |at: usize| (!record[at].is_empty()).then(|| record[at].to_owned());
    let score = some(2).map(|text| text.parse().expect("a number"));
    (record[0].to_owned(), record[1].parse().expect("an integer"), score, some(3))
}

fn objects(bytes: &[u8]) -> Vec<Seen> {
    let values: Vec<serde_json::Value> = serde_json::from_slice(bytes).expect("an array");
    values.iter().map(of_value).collect()
}

fn of_line(line: &str) -> Seen {
    of_value(&serde_json::from_str(line).expect("an object"))
}

fn of_value(value: &serde_json::Value) -> Seen {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let score = value["a score with quite a long name"].as_f64();
    (text("image").expect("text"), value["hash"].as_u64().expect("an integer"), score, text("error"))
}

#[cfg(feature = "parquet")]
fn of_parquet(path: &Path) -> Vec<Seen> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, RowAccessor};
    let reader = SerializedFileReader::new(fs::File::open(path).expect("there")).expect("parquet");
    let rows = reader.get_row_iter(None).expect("rows").map(|row| {
        let row = row.expect("a row");
        let there = |at: usize| !matches!(row.get_column_iter().nth(at).expect("a column").1, Field::Null);
        let score = there(2).then(|| row.get_double(2).expect("a number"));
        let error = there(3).then(|| row.get_string(3).expect("text").clone());
        (row.get_string(0).expect("text").clone(), row.get_ulong(1).expect("an integer"), score, error)
    });
    rows.collect()
}

#[cfg(not(feature = "parquet"))]
fn of_parquet(_path: &Path) -> Vec<Seen> {
    unreachable!("`built` leaves Parquet out")
}
