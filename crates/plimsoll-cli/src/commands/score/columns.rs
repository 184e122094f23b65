//! The columns of a row, and the row of a pair. The names of columns are a promise to other programs.

use std::collections::HashMap;

use plimsoll::image::decode;
use plimsoll::image::metrics::Metric;
use plimsoll::machine::DeviceName;
use plimsoll::score::{MetricScore, Pair, PairScores, Scored};
use plimsoll_core::Nanos;
use plimsoll_results::rows::{Cell, Column, Kind, Row, Schema};

use super::args::Args;
use super::labels::{LabelPattern, Labels};
use super::{device_name, names};
use crate::stop::Stop;

/// The program that computed a score: another version may give another.
const VERSION: &str = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));

/// What every row of a run has in common.
pub(super) struct Columns {
    schema: Schema,
    /// The place of each column.
    places: HashMap<String, usize>,
    /// Asked for in this run.
    metrics: Vec<Metric>,
    verbose: bool,
    labels: Option<LabelPattern>,
    /// What changes a score beside the files: part of a row's identity.
    settings: String,
    names: Vec<DeviceName>,
}

impl Columns {
    /// The columns of this run, and of rows that are there already (`existing`), so that a run can add metrics to them.
    pub(super) fn new(args: &Args, existing: &[String], names: Vec<DeviceName>) -> Result<Self, Stop> {
        let metrics = args.metrics();
        let has = |name: &str| existing.iter().any(|column| column == name);
        let is_there = |metric: &&Metric| score_columns(**metric).iter().any(|name| has(name));
        // Those that are there come first, so that their columns stay where they are.
        let mut all: Vec<Metric> = Vec::new();
        let there = existing_order(existing);
        for metric in there.iter().filter(is_there).chain(&metrics) {
            if all.iter().all(|known| known.name() != metric.name()) {
                all.push(*metric);
            }
        }
        let verbose = args.verbose || existing.iter().any(|name| name.ends_with("_bytes_promised"));
        let with_labels = args.labels.is_some() || has("encoder");
        let schema = schema(&all, verbose, with_labels)?;
        let places = schema.columns().iter().enumerate().map(|(at, column)| (column.name().to_owned(), at)).collect();
        let (labels, settings) = (args.labels.clone(), args.settings());
        Ok(Self { schema, places, metrics, verbose, labels, settings, names })
    }

    pub(super) fn schema(&self) -> Schema {
        self.schema.clone()
    }

    /// The cells that tell a pair's row from others.
    pub(super) fn key(&self, pair: &Pair) -> [Cell; 3] {
        let path = |path: &std::path::Path| Cell::from(names::in_row(path));
        [path(&pair.reference), path(&pair.distorted), Cell::from(self.settings.as_str())]
    }

    /// What stands in a column of a row.
    pub(super) fn cell<'a>(&self, row: &'a Row, name: &str) -> Option<&'a Cell> {
        row.cells().get(*self.places.get(name)?).filter(|cell| **cell != Cell::Empty)
    }

    /// The same, if it is text.
    pub(super) fn text<'a>(&self, row: &'a Row, name: &str) -> Option<&'a str> {
        match self.cell(row, name)? {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The same, if it is a number.
    pub(super) fn number(&self, row: &Row, name: &str) -> Option<f64> {
        match self.cell(row, name)? {
            Cell::Number(number) => Some(*number),
            Cell::Integer(integer) => Some(*integer as f64),
            _ => None,
        }
    }

    /// Whether a row was computed as this program would, from files of these hashes.
    pub(super) fn is_current(&self, row: &Row, hashes: &[Option<String>; 2]) -> bool {
        let known = |name: &str| {
            self.text(row, name).is_some_and(|named| decode::Format::ALL.iter().any(|format| format.decoder() == named))
        };
        let same = |name: &str, hash: &Option<String>| hash.is_some() && self.text(row, name) == hash.as_deref();
        same("reference_hash", &hashes[0])
            && same("hash", &hashes[1])
            && known("reference_decoder")
            && known("decoder")
            && self.text(row, "version") == Some(VERSION)
    }

    /// The metrics of this run that a row does not have.
    pub(super) fn missing(&self, row: &Row) -> Vec<Metric> {
        let is_missing = |metric: &&Metric| score_columns(**metric).iter().any(|name| self.cell(row, name).is_none());
        self.metrics.iter().filter(is_missing).copied().collect()
    }

    /// All metrics of this run.
    pub(super) fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// The names of the columns that hold scores of this run.
    pub(super) fn score_names(&self) -> Vec<String> {
        self.metrics.iter().flat_map(|metric| score_columns(*metric)).collect()
    }

    /// What the name of a variant says of it.
    pub(super) fn labels(&self, pair: &Pair) -> Labels {
        self.labels.as_ref().map_or_else(Labels::default, |pattern| pattern.of(&pair.distorted))
    }

    /// The row of a pair. What this run did not compute is taken from the row that was there before.
    pub(super) fn row(&self, scored: &Scored, before: Option<&Row>) -> Row {
        let mut found: HashMap<String, Cell> = HashMap::new();
        let mut put = |name: &str, cell: Cell| drop(found.insert(name.to_owned(), cell));
        for (name, cell) in ["reference", "distorted", "settings"].into_iter().zip(self.key(&scored.pair)) {
            put(name, cell);
        }
        let labels = self.labels(&scored.pair);
        put("encoder", labels.encoder.into());
        put("quality", labels.quality.into());
        put("version", VERSION.into());
        let before = match &scored.outcome {
            Ok(scores) => {
                self.put_scores(&mut put, scores);
                before
            }
            Err(error) => {
                put("error", Cell::from(error.to_string()));
                None
            }
        };
        let cell = |(at, column): (usize, &Column)| {
            let known = found.remove(column.name());
            known.or_else(|| before.map(|row| row.cells()[at].clone())).unwrap_or_default()
        };
        Row::new(self.schema.columns().iter().enumerate().map(cell).collect::<Vec<_>>())
    }

    fn put_scores(&self, put: &mut impl FnMut(&str, Cell), scores: &PairScores) {
        let (size, file) = (scores.reference.image.size(), &scores.distorted);
        put("width", Cell::from(u64::from(size.width)));
        put("height", Cell::from(u64::from(size.height)));
        put("bytes", Cell::from(file.bytes));
        put("bits_per_pixel", Cell::from(bits_per_pixel(scores)));
        for score in scores.good() {
            let values = [Some(score.score.value), score.score.norm3];
            for (name, value) in score_columns(score.metric).iter().zip(values) {
                put(name, value.into());
            }
            if self.verbose {
                self.put_report(put, score);
            }
        }
        put("reference_decoder", scores.reference.decoder.into());
        put("decoder", file.decoder.into());
        put("reference_hash", hash_text(scores.reference.hash).into());
        put("hash", hash_text(file.hash).into());
        put("error", scores.failures().into());
    }

    fn put_report(&self, put: &mut impl FnMut(&str, Cell), score: &MetricScore) {
        let report = &score.report;
        let name = |what: &str| format!("{}_{what}", column_name(score.metric));
        put(&name("device"), device_name(report.device, &self.names).into());
        put(&name("rung"), report.rung.into());
        let spans = [("queued_ms", report.queued), ("prepare_ms", report.bring), ("open_ms", report.open)];
        for (what, span) in spans.into_iter().chain([("run_ms", report.run)]) {
            put(&name(what), milliseconds(span));
        }
        put(&name("bytes_promised"), Cell::from(report.bytes_predicted.0));
    }
}

fn milliseconds(span: Nanos) -> Cell {
    Cell::from(span.as_secs_f64() * 1e3)
}

/// The metrics whose columns are there, in their order.
fn existing_order(existing: &[String]) -> Vec<Metric> {
    let place = |metric: &Metric| existing.iter().position(|name| *name == column_name(*metric));
    let mut there: Vec<(usize, Metric)> =
        Metric::ALL.into_iter().filter_map(|metric| Some((place(&metric)?, metric))).collect();
    there.sort_unstable();
    there.into_iter().map(|(_, metric)| metric).collect()
}

fn schema(metrics: &[Metric], verbose: bool, with_labels: bool) -> Result<Schema, Stop> {
    let value = |name: &str, kind| Column::value(name, kind);
    let mut columns: Vec<Column> =
        ["reference", "distorted", "settings"].map(|name| Column::key(name, Kind::Text)).to_vec();
    columns.extend(["width", "height", "bytes"].map(|name| value(name, Kind::Integer)));
    columns.push(value("bits_per_pixel", Kind::Number));
    for metric in metrics {
        columns.extend(score_columns(*metric).into_iter().map(|name| Column::value(name, Kind::Number)));
    }
    for metric in metrics.iter().filter(|_| verbose) {
        let name = |what: &str| format!("{}_{what}", column_name(*metric));
        columns.extend(["device", "rung"].map(|what| Column::value(name(what), Kind::Text)));
        let spans = ["queued_ms", "prepare_ms", "open_ms", "run_ms"];
        columns.extend(spans.map(|what| Column::value(name(what), Kind::Number)));
        columns.push(Column::value(name("bytes_promised"), Kind::Integer));
    }
    if with_labels {
        columns.extend(["encoder", "quality"].map(|name| value(name, Kind::Text)));
    }
    let texts = ["reference_decoder", "decoder", "reference_hash", "hash"];
    columns.extend(texts.map(|name| value(name, Kind::Text)));
    columns.extend(["version", "error"].map(|name| value(name, Kind::Text)));
    Schema::new(columns).map_err(Stop::failed)
}

/// The size of a file for each pixel in it.
pub(super) fn bits_per_pixel(scores: &PairScores) -> f64 {
    scores.distorted.bytes as f64 * 8.0 / scores.reference.image.size().pixels() as f64
}

/// A content hash as it stands in a row.
pub(super) fn hash_text(hash: u64) -> String {
    format!("xxh3:{hash:016x}")
}

/// The columns of a metric's scores.
pub(super) fn score_columns(metric: Metric) -> Vec<String> {
    let name = column_name(metric);
    match metric {
        Metric::Butteraugli => vec![name.clone(), format!("{name}_3norm")],
        _ => vec![name],
    }
}

/// Without a hyphen, which query languages take for a minus.
fn column_name(metric: Metric) -> String {
    metric.name().replace('-', "_")
}
