//! The columns of a row, and the row of a pair. The names of columns are a promise to other programs.

use plimsoll::image::metrics::Metric;
use plimsoll::machine::DeviceName;
use plimsoll::score::{MetricScore, Pair, PairScores, Scored};
use plimsoll_core::Nanos;
use plimsoll_results::rows::{Cell, Column, Kind, Row, Schema};

use super::device_name;
use crate::stop::Stop;

/// What every row of a run has in common.
pub(super) struct Columns {
    metrics: Vec<Metric>,
    verbose: bool,
    /// What changes a score beside the files: part of a row's identity.
    settings: String,
    names: Vec<DeviceName>,
}

impl Columns {
    pub(super) fn new(metrics: Vec<Metric>, settings: String, verbose: bool, names: Vec<DeviceName>) -> Self {
        Self { metrics, verbose, settings, names }
    }

    pub(super) fn schema(&self) -> Result<Schema, Stop> {
        let mut columns: Vec<Column> =
            ["reference", "distorted", "settings"].map(|name| Column::key(name, Kind::Text)).to_vec();
        let value = |name: &str, kind| Column::value(name, kind);
        columns.extend(["width", "height", "bytes"].map(|name| value(name, Kind::Integer)));
        columns.push(value("bits_per_pixel", Kind::Number));
        for metric in &self.metrics {
            columns.extend(score_columns(*metric).into_iter().map(|name| Column::value(name, Kind::Number)));
        }
        if self.verbose {
            for metric in &self.metrics {
                let name = |what: &str| format!("{}_{what}", column_name(*metric));
                columns.extend(["device", "rung"].map(|what| Column::value(name(what), Kind::Text)));
                columns.extend(
                    ["queued_ms", "prepare_ms", "open_ms", "run_ms"]
                        .map(|what| Column::value(name(what), Kind::Number)),
                );
                columns.push(Column::value(name("bytes_promised"), Kind::Integer));
            }
        }
        let texts = ["reference_decoder", "decoder", "reference_hash", "hash", "error"];
        columns.extend(texts.map(|name| value(name, Kind::Text)));
        Schema::new(columns).map_err(Stop::failed)
    }

    /// The cells that tell a pair's row from others.
    pub(super) fn key(&self, pair: &Pair) -> [Cell; 3] {
        let path = |path: &std::path::Path| Cell::from(path.to_string_lossy().into_owned());
        [path(&pair.reference), path(&pair.distorted), Cell::from(self.settings.as_str())]
    }

    /// The content hashes in a row: the reference's, then the distorted image's.
    pub(super) fn hashes(&self, row: &Row) -> [Option<String>; 2] {
        [3, 2].map(|from_end| match &row.cells()[self.count() - from_end] {
            Cell::Text(hash) => Some(hash.clone()),
            _ => None,
        })
    }

    pub(super) fn row(&self, scored: &Scored) -> Row {
        let mut cells = self.key(&scored.pair).to_vec();
        match &scored.outcome {
            Ok(scores) => self.add_scores(&mut cells, scores),
            Err(error) => {
                cells.resize_with(self.count() - 1, Cell::default);
                cells.push(Cell::from(error.to_string()));
            }
        }
        Row::new(cells)
    }

    fn add_scores(&self, cells: &mut Vec<Cell>, scores: &PairScores) {
        let size = scores.reference.image.size();
        let file = &scores.distorted;
        cells.extend([size.width.into(), size.height.into(), file.bytes].map(Cell::from));
        cells.push(Cell::from(bits_per_pixel(scores)));
        for score in &scores.scores {
            cells.push(Cell::from(score.score.value));
            cells.extend(score.score.norm3.map(Cell::from));
        }
        if self.verbose {
            scores.scores.iter().for_each(|score| cells.extend(self.report_cells(score)));
        }
        cells.extend([scores.reference.decoder, file.decoder].map(Cell::from));
        cells.extend([scores.reference.hash, file.hash].map(|hash| Cell::from(hash_text(hash))));
        cells.push(Cell::Empty);
    }

    fn report_cells(&self, score: &MetricScore) -> Vec<Cell> {
        let report = &score.report;
        let milliseconds = |span: Nanos| Cell::from(span.as_secs_f64() * 1e3);
        let mut cells = vec![Cell::from(device_name(report.device, &self.names)), Cell::from(report.rung)];
        cells.extend([report.queued, report.bring, report.open, report.run].map(milliseconds));
        cells.push(Cell::from(report.bytes_predicted.0));
        cells
    }

    fn count(&self) -> usize {
        let scores: usize = self.metrics.iter().map(|metric| score_columns(*metric).len()).sum();
        let reports = if self.verbose { 7 * self.metrics.len() } else { 0 };
        3 + 4 + scores + reports + 5
    }
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
