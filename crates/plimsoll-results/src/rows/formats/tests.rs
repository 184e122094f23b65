//! Every format gives back what it was given, and refuses what it was not.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::row::Cell;
use super::super::schema::{Column, Kind};
use super::*;

fn schema() -> Schema {
    Schema::new(vec![
        Column::key("image, \"named\"", Kind::Text),
        Column::value("bytes", Kind::Integer),
        Column::value("psnr", Kind::Number),
        Column::value("error", Kind::Text),
    ])
    .expect("sound")
}

/// Every format that this build has.
fn built() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| cfg!(feature = "parquet") || *format != Format::Parquet)
}

fn place(format: Format) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("rows.{format}"));
    (folder, path)
}

fn written(format: Format, schema: &Schema, rows: &[Row]) -> Vec<u8> {
    let mut out = Vec::new();
    write(format, schema, &mut out, &mut rows.iter().cloned().map(Ok)).expect("memory takes all");
    out
}

fn read_back(format: Format, schema: &Schema, bytes: &[u8]) -> Result<Vec<Row>, RowsError> {
    let (_folder, path) = place(format);
    fs::write(&path, bytes).expect("written");
    let mut rows = Vec::new();
    read(format, schema, File::open(&path).expect("there"), &path, &mut |row| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// Bits, since `-0.0 == 0.0`.
fn bits(rows: &[Row]) -> Vec<Vec<(Cell, u64)>> {
    let bits = |cell: &Cell| (cell.clone(), if let Cell::Number(number) = cell { number.to_bits() } else { 0 });
    rows.iter().map(|row| row.cells().iter().map(bits).collect()).collect()
}

fn text() -> impl Strategy<Value = Cell> {
    let awkward = "[a\",;'\n\r\t \\\\=\u{feff}\u{2028}\u{0}é漢🜨]{0,12}";
    prop_oneof![any::<String>(), awkward].prop_map(Cell::Text)
}

fn cell(kind: Kind) -> BoxedStrategy<Cell> {
    let finite = any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |number| number.is_finite());
    let known = prop_oneof![Just(0.0), Just(-0.0), Just(1e22), Just(f64::MIN_POSITIVE / 8.0), Just(f64::MAX), finite];
    let value = match kind {
        Kind::Text => text().boxed(),
        Kind::Integer => prop_oneof![Just(u64::MAX), Just(1 << 63), any::<u64>()].prop_map(Cell::Integer).boxed(),
        Kind::Number => known.prop_map(Cell::Number).boxed(),
    };
    prop_oneof![1 => Just(Cell::Empty), 4 => value].boxed()
}

fn rows(schema: &Schema) -> impl Strategy<Value = Vec<Row>> + use<> {
    let cells: Vec<_> = schema.columns().iter().map(|column| cell(column.kind())).collect();
    proptest::collection::vec(cells.prop_map(Row::new), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_format_gives_back_what_it_was_given(rows in rows(&schema())) {
        for format in built() {
            let again = read_back(format, &schema(), &written(format, &schema(), &rows)).expect("readable");
            prop_assert_eq!(bits(&again), bits(&rows), "{}", format);
        }
    }

    #[test]
    fn a_single_column_comes_back_even_where_it_is_empty(cells in proptest::collection::vec(cell(Kind::Text), 0..5)) {
        let schema = Schema::new(vec![Column::key("only", Kind::Text)]).expect("sound");
        let rows: Vec<Row> = cells.into_iter().map(|cell| Row::new([cell])).collect();
        for format in built() {
            let again = read_back(format, &schema, &written(format, &schema, &rows)).expect("readable");
            prop_assert_eq!(&again, &rows, "{}", format);
        }
    }
}

#[test]
fn files_look_as_people_expect_them() {
    let rows = [
        Row::new(["a \"b\".png".into(), 7.into(), 0.1.into(), Cell::Empty]),
        Row::new(["c,d.png".into(), Cell::Empty, 40.0.into(), "no\nsuch file".into()]),
    ];
    let shown = |format| String::from_utf8(written(format, &schema(), &rows)).expect("text");
    assert_eq!(
        shown(Format::Csv),
        "\"image, \"\"named\"\"\",bytes,psnr,error\n\"a \"\"b\"\".png\",7,0.1,\n\"c,d.png\",,40.0,\"no\nsuch file\"\n"
    );
    let first = r#"{"image, \"named\"":"a \"b\".png","bytes":7,"psnr":0.1,"error":null}"#;
    let second = r#"{"image, \"named\"":"c,d.png","bytes":null,"psnr":40.0,"error":"no\nsuch file"}"#;
    assert_eq!(shown(Format::JsonLines), format!("{first}\n{second}\n"));
    assert_eq!(shown(Format::Json), format!("[\n{first},\n{second}\n]\n"));
}

#[cfg(feature = "parquet")]
#[test]
fn a_parquet_file_of_several_groups_keeps_its_order() {
    let rows: Vec<Row> = (0..150_000).map(|at| Row::new(["x".into(), at.into(), Cell::Empty, Cell::Empty])).collect();
    let bytes = written(Format::Parquet, &schema(), &rows);
    assert_eq!(read_back(Format::Parquet, &schema(), &bytes).expect("readable"), rows);
}

#[test]
fn other_columns_are_refused_by_name() {
    let other = Schema::new(vec![
        Column::key("image, \"named\"", Kind::Text),
        Column::value("bytes", Kind::Integer),
        Column::value("ssim2", Kind::Number),
        Column::value("error", Kind::Text),
    ])
    .expect("sound");
    let row = Row::new(["a".into(), 1.into(), 2.0.into(), Cell::Empty]);
    for format in built() {
        let bytes = written(format, &other, std::slice::from_ref(&row));
        match read_back(format, &schema(), &bytes).expect_err("other columns") {
            RowsError::Schema { difference, .. } => {
                assert_eq!(difference.missing, ["psnr"], "{format}");
                assert_eq!(difference.unexpected, ["ssim2"], "{format}");
            }
            error => panic!("{format}: {error}"),
        }
    }
}

#[test]
fn values_of_another_kind_are_refused() {
    let other = Schema::new(vec![Column::key("a", Kind::Text)]).expect("sound");
    let wanted = Schema::new(vec![Column::key("a", Kind::Number)]).expect("sound");
    for format in built() {
        let bytes = written(format, &other, &[Row::new(["inf".into()])]);
        let error = read_back(format, &wanted, &bytes).expect_err("text is no number");
        let told = match format {
            Format::Parquet => matches!(&error, RowsError::Schema { difference, .. } if difference.changed == ["a"]),
            _ => matches!(error, RowsError::Damaged { .. }),
        };
        assert!(told, "{format}: {error}");
    }
}

#[test]
fn half_a_file_is_refused_or_is_fewer_whole_rows() {
    let row = |at: u64| Row::new([format!("image {at}").into(), at.into(), 1.5.into(), "it, \"broke\"".into()]);
    let rows: Vec<Row> = (0..3).map(row).collect();
    for format in built() {
        let bytes = written(format, &schema(), &rows);
        let mut refused = 0;
        for length in 0..bytes.len() {
            match read_back(format, &schema(), &bytes[..length]) {
                Ok(read) => assert!(rows.starts_with(&read), "{format} at {length}"),
                Err(RowsError::Damaged { .. } | RowsError::Schema { .. }) => refused += 1,
                Err(error) => panic!("{format} cut at {length}: {error}"),
            }
        }
        assert!(refused > 0, "{format}");
    }
}
