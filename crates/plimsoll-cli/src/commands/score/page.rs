//! The report: what the page shows of each pair, which is small so that memory stays bounded.

use std::path::{Path, PathBuf};

use plimsoll::image::Image;
use plimsoll::image::decode::Format;
use plimsoll::image::metrics::{Better, Metric};
use plimsoll::score::{Pair, PairScores, Scored};
use plimsoll_results::report::{self, Detail, HeatMap, MetricColumn, Picture, ReferenceImage, Report, ReportRow};
use plimsoll_results::rows::Row;

use super::columns::{Columns, score_columns};
use super::labels::Labels;
use super::names;
use crate::stop::{Ended, Stop};

/// What heat maps hold.
pub(super) const HEAT_MAP_OF: &str = "Butteraugli distance";

/// A page in the making.
pub(super) struct Page {
    path: PathBuf,
    report: Report,
    rows: Vec<(usize, ReportRow)>,
    metrics: Vec<Metric>,
}

fn row_of(pair: &Pair) -> ReportRow {
    let (reference, file) = (names::in_row(&pair.reference), names::in_row(&pair.distorted));
    ReportRow { reference, file, ..ReportRow::default() }
}

impl Page {
    pub(super) fn new(path: &Path, metrics: &[Metric], command: String) -> Self {
        let asked = metrics.to_vec();
        let metrics = metrics.iter().flat_map(|metric| metric_columns(*metric)).collect();
        let heat_map_of = HEAT_MAP_OF.to_owned();
        let title = "Image scores".to_owned();
        let report = Report { title, command, metrics, heat_map_of, ..Report::default() };
        Self { path: path.to_owned(), report, rows: Vec::new(), metrics: asked }
    }

    /// Adds what came of a pair.
    pub(super) fn add(&mut self, scored: &mut Scored, labels: Labels) {
        let mut row = row_of(&scored.pair);
        match &mut scored.outcome {
            Ok(scores) => {
                self.fill(&mut row, scores);
                row.series = labels.encoder.unwrap_or(row.series);
            }
            Err(error) => {
                row.scores = vec![None; self.report.metrics.len()];
                row.error = Some(error.to_string());
            }
        }
        self.rows.push((scored.at, row));
    }

    /// Adds a row of an earlier run, of which there are no pictures.
    pub(super) fn add_kept(&mut self, at: usize, pair: &Pair, kept: &Row, columns: &Columns) {
        let mut row = row_of(pair);
        let whole = |name: &str| columns.number(kept, name).unwrap_or_default();
        (row.width, row.height, row.bytes) = (whole("width") as u32, whole("height") as u32, whole("bytes") as u64);
        let decoder = columns.text(kept, "decoder").unwrap_or_default();
        let format = Format::ALL.into_iter().find(|format| format.decoder() == decoder);
        let series = format.map(|format| format.to_string()).unwrap_or_default();
        row.series = columns.labels(pair).encoder.unwrap_or(series);
        row.scores = columns.score_names().iter().map(|name| columns.number(kept, name)).collect();
        self.rows.push((at, row));
    }

    fn fill(&mut self, row: &mut ReportRow, scores: &mut PairScores) {
        let size = scores.reference.image.size();
        (row.width, row.height, row.bytes) = (size.width, size.height, scores.distorted.bytes);
        row.series = scores.distorted.format.to_string();
        row.error = scores.failures();
        for (score, metric) in scores.scores.iter().zip(&self.metrics) {
            let values = score.as_ref().map_or([None; 2], |score| [Some(score.score.value), score.score.norm3]);
            row.scores.extend(values.into_iter().take(score_columns(*metric).len()));
        }
        let drawn = scores.drawn.take();
        row.picture = drawn.as_ref().map(|drawn| picture_of(&drawn.picture));
        row.heat_map = drawn.as_ref().map(|drawn| {
            let map = &drawn.heat_map;
            HeatMap { width: map.width, height: map.height, values: map.distances.clone() }
        });
        row.detail = drawn.as_ref().and_then(|drawn| drawn.detail.as_ref()).map(|detail| Detail {
            left: detail.left,
            top: detail.top,
            picture: picture_of(&detail.picture),
            reference: picture_of(&detail.reference),
        });
        if self.report.references.iter().all(|known| known.name != row.reference) {
            let picture = drawn.as_ref().map(|drawn| picture_of(&drawn.reference));
            let (name, bytes) = (row.reference.clone(), scores.reference.bytes);
            self.report.references.push(ReferenceImage {
                name,
                width: size.width,
                height: size.height,
                bytes,
                picture,
            });
        }
    }

    /// Writes the page.
    pub(super) fn write(mut self, summary: Vec<(&str, String)>, figures: &[String]) -> Ended {
        self.rows.sort_by_key(|(at, _)| *at);
        self.report.rows = self.rows.into_iter().map(|(_, row)| row).collect();
        self.report.summary = summary.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        // Colours are for terminals.
        let figures = anstream::adapter::strip_str(&figures.join("\n")).to_string();
        self.report.figures = figures.trim().to_owned();
        report::write(&self.report, &self.path).map_err(|error| Stop::failed_with_causes(&error))
    }
}

fn picture_of(image: &Image) -> Picture {
    let size = image.size();
    Picture { width: size.width, height: size.height, rgb: image.to_rgb8() }
}

fn metric_columns(metric: Metric) -> Vec<MetricColumn> {
    let about = metric.about();
    let better_higher = about.better == Better::Higher;
    let column =
        |name: String| MetricColumn { name: name.replace('_', "-"), better_higher, what: about.what.to_owned() };
    score_columns(metric).into_iter().map(column).collect()
}
