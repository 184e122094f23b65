//! The table that people see.

use std::path::Path;

use comfy_table::Cell;
use comfy_table::CellAlignment::{Left, Right};
use plimsoll::image::metrics::{Better, Metric};
use plimsoll::machine::DeviceName;
use plimsoll::score::{PairScores, Scored};
use plimsoll_core::{Bytes, Nanos};

use super::columns::{bits_per_pixel, score_columns};
use super::device_name;
use crate::output;
use crate::stop::Ended;

/// The rows of a table, kept until all are there, so that columns fit what is in them.
pub(super) struct Shown {
    metrics: Vec<Metric>,
    verbose: bool,
    names: Vec<DeviceName>,
    rows: Vec<(usize, ShownRow)>,
}

struct ShownRow {
    reference: String,
    file: String,
    outcome: Result<Figures, String>,
}

struct Figures {
    size: String,
    bytes: Bytes,
    bits_per_pixel: f64,
    scores: Vec<f64>,
    reports: Vec<Where>,
}

/// Where and how a score was computed.
struct Where {
    metric: Metric,
    score: f64,
    device: String,
    rung: &'static str,
    queued: Nanos,
    prepare: Nanos,
    run: Nanos,
    promised: Bytes,
}

impl Shown {
    pub(super) fn new(metrics: Vec<Metric>, verbose: bool, names: Vec<DeviceName>) -> Self {
        Self { metrics, verbose, names, rows: Vec::new() }
    }

    pub(super) fn add(&mut self, scored: &Scored) {
        let text = |path: &Path| path.display().to_string();
        let outcome = match &scored.outcome {
            Ok(scores) => Ok(self.figures(scores)),
            Err(error) => Err(error.to_string()),
        };
        let (reference, file) = (text(&scored.pair.reference), text(&scored.pair.distorted));
        self.rows.push((scored.at, ShownRow { reference, file, outcome }));
    }

    fn figures(&self, scores: &PairScores) -> Figures {
        let each = scores.scores.iter();
        Figures {
            size: scores.reference.image.size().to_string(),
            bytes: Bytes(scores.distorted.bytes),
            bits_per_pixel: bits_per_pixel(scores),
            scores: each.clone().flat_map(|score| [Some(score.score.value), score.score.norm3]).flatten().collect(),
            reports: each
                .map(|score| Where {
                    metric: score.metric,
                    score: score.score.value,
                    device: device_name(score.report.device, &self.names),
                    rung: score.report.rung,
                    queued: score.report.queued,
                    prepare: score.report.bring,
                    run: score.report.run,
                    promised: score.report.bytes_predicted,
                })
                .collect(),
        }
    }

    /// The table in the order of the pairs, and below it what went wrong.
    pub(super) fn print(&mut self) -> Ended {
        self.rows.sort_by_key(|(at, _)| *at);
        if self.rows.iter().any(|(_, row)| row.outcome.is_ok()) {
            if self.verbose { self.print_verbose()? } else { self.print_scores()? }
        }
        for (_, row) in &self.rows {
            if let Err(error) = &row.outcome {
                output::error_line(format_args!("{}: {error}", row.file));
            }
        }
        Ok(())
    }

    fn print_scores(&self) -> Ended {
        let several = self.rows.iter().any(|(_, row)| row.reference != self.rows[0].1.reference);
        let names: Vec<String> = self.metrics.iter().flat_map(|metric| score_columns(*metric)).collect();
        let titles: Vec<String> = names.iter().map(|name| name.to_uppercase().replace('_', "-")).collect();
        let mut columns = vec![("FILE", Left), ("SIZE", Right), ("BYTES", Right), ("BPP", Right)];
        if several {
            columns.insert(0, ("REFERENCE", Left));
        }
        columns.extend(titles.iter().map(|title| (title.as_str(), Right)));
        let best = if several { Vec::new() } else { self.best() };
        let mut table = output::table(&columns);
        for (_, row) in &self.rows {
            let Ok(figures) = &row.outcome else { continue };
            let mut cells: Vec<Cell> = several.then(|| Cell::new(&row.reference)).into_iter().collect();
            let bpp = format!("{:.3}", figures.bits_per_pixel);
            cells.extend([&row.file, &figures.size, &figures.bytes.to_string(), &bpp].map(Cell::new));
            cells.extend(figures.scores.iter().enumerate().map(|(at, score)| match best.get(at) {
                Some(best) if best == score => output::good(score_text(*score)),
                _ => Cell::new(score_text(*score)),
            }));
            table.add_row(cells);
        }
        output::print_table(&table)
    }

    /// The best score of each column, where there is more than one to choose from.
    fn best(&self) -> Vec<f64> {
        let rows: Vec<&Figures> = self.rows.iter().filter_map(|(_, row)| row.outcome.as_ref().ok()).collect();
        if rows.len() < 2 {
            return Vec::new();
        }
        let better = self.metrics.iter().flat_map(|metric| vec![metric.about().better; score_columns(*metric).len()]);
        let pick = |(at, better): (usize, Better)| {
            let scores = rows.iter().map(|figures| figures.scores[at]);
            match better {
                Better::Higher => scores.fold(f64::NEG_INFINITY, f64::max),
                Better::Lower => scores.fold(f64::INFINITY, f64::min),
            }
        };
        better.enumerate().map(pick).collect()
    }

    fn print_verbose(&self) -> Ended {
        let columns = [
            ("FILE", Left),
            ("METRIC", Left),
            ("SCORE", Right),
            ("DEVICE", Left),
            ("RUNG", Left),
            ("QUEUED", Right),
            ("PREPARE", Right),
            ("RUN", Right),
            ("PROMISED", Right),
        ];
        let mut table = output::table(&columns);
        for (_, row) in &self.rows {
            for place in row.outcome.iter().flat_map(|figures| &figures.reports) {
                let (file, metric, score) = (row.file.clone(), place.metric.to_string(), score_text(place.score));
                let spans = [place.queued, place.prepare, place.run].map(|span| span.to_string());
                let texts = [file, metric, score, place.device.clone(), place.rung.to_owned()].into_iter();
                table.add_row(texts.chain(spans).chain([place.promised.to_string()]).map(Cell::new));
            }
        }
        output::print_table(&table)
    }
}

/// As many digits as a score is good for.
fn score_text(score: f64) -> String {
    match score.abs() {
        large if large >= 10.0 => format!("{score:.3}"),
        _ => format!("{score:.5}"),
    }
}
