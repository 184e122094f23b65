//! The report: what the page shows of each pair, made small at once so that memory stays bounded.

use std::path::{Path, PathBuf};

use plimsoll::image::Image;
use plimsoll::image::metrics::{Better, Metric};
use plimsoll::score::{PairScores, Scored};
use plimsoll_results::report::{self, HeatMap, MetricColumn, Picture, ReferenceImage, Report, ReportRow};

use super::columns::score_columns;
use crate::stop::{Ended, Stop};

/// A page in the making.
pub(super) struct Page {
    path: PathBuf,
    report: Report,
    rows: Vec<(usize, ReportRow)>,
}

impl Page {
    pub(super) fn new(path: &Path, metrics: &[Metric], command: String) -> Self {
        let metrics = metrics.iter().flat_map(|metric| metric_columns(*metric)).collect();
        let heat_map_of = "Butteraugli distance".to_owned();
        let title = "Image scores".to_owned();
        let report = Report { title, command, metrics, heat_map_of, ..Report::default() };
        Self { path: path.to_owned(), report, rows: Vec::new() }
    }

    /// Adds what came of a pair.
    pub(super) fn add(&mut self, scored: &mut Scored) {
        let name = |path: &Path| path.display().to_string();
        let mut row = ReportRow {
            reference: name(&scored.pair.reference),
            file: name(&scored.pair.distorted),
            ..ReportRow::default()
        };
        match &mut scored.outcome {
            Ok(scores) => self.fill(&mut row, scores),
            Err(error) => {
                row.scores = vec![None; self.report.metrics.len()];
                row.error = Some(error.to_string());
            }
        }
        self.rows.push((scored.at, row));
    }

    fn fill(&mut self, row: &mut ReportRow, scores: &mut PairScores) {
        let size = scores.reference.image.size();
        (row.width, row.height, row.bytes) = (size.width, size.height, scores.distorted.bytes);
        row.series = scores.distorted.format.to_string();
        let values = scores.scores.iter().flat_map(|score| [Some(score.score.value), score.score.norm3]);
        row.scores = values.flatten().map(Some).collect();
        row.picture = scores.picture.take().map(|image| small_picture(&image));
        row.heat_map = scores.heat_map.take().map(|map| {
            HeatMap { width: map.width, height: map.height, values: map.distances }.shrunk(HeatMap::SIDE_MAX)
        });
        if self.report.references.iter().all(|known| known.name != row.reference) {
            let picture = row.picture.is_some().then(|| small_picture(&scores.reference.image));
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
    pub(super) fn write(mut self, summary: Vec<(&str, String)>) -> Ended {
        self.rows.sort_by_key(|(at, _)| *at);
        self.report.rows = self.rows.into_iter().map(|(_, row)| row).collect();
        self.report.summary = summary.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        report::write(&self.report, &self.path).map_err(|error| Stop::failed_with_causes(&error))
    }
}

fn small_picture(image: &Image) -> Picture {
    let size = image.size();
    Picture { width: size.width, height: size.height, rgb: image.to_rgb8() }.shrunk(Picture::SIDE_MAX)
}

fn metric_columns(metric: Metric) -> Vec<MetricColumn> {
    let about = metric.about();
    let better_higher = about.better == Better::Higher;
    let column =
        |name: String| MetricColumn { name: name.replace('_', "-"), better_higher, what: about.what.to_owned() };
    score_columns(metric).into_iter().map(column).collect()
}
