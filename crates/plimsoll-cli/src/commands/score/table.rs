//! The table that people see.

use comfy_table::Cell;
use comfy_table::CellAlignment::{Left, Right};
use plimsoll::image::metrics::{Better, Metric};
use plimsoll::machine::DeviceName;
use plimsoll::score::{PairScores, Scored};
use plimsoll_core::{Bytes, Nanos};

use super::columns::{bits_per_pixel, score_columns};
use super::{device_name, names, naming_devices};
use crate::output;
use crate::stop::Ended;

/// Letters of a name that are shown in one line before scores go to another table.
const NAME_WIDTH: usize = 32;
/// The size, the bytes and the bits per pixel.
const SIZES_WIDTH: usize = 32;
/// A score.
const SCORE_WIDTH: usize = 8;

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
    figures: Option<Figures>,
    /// What went wrong, with all of it or with a metric.
    failed: Option<String>,
}

struct Figures {
    size: String,
    bytes: Bytes,
    bits_per_pixel: f64,
    /// One for each column of a score; `None` where a metric failed.
    scores: Vec<Option<f64>>,
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
        // Errors have lines of their own; what is in a line is not to steer the terminal.
        let told = |error: String| {
            let lines: Vec<String> = error.lines().map(names::harmless).collect();
            naming_devices(&lines.join("\n"), &self.names)
        };
        let (outcome, failed) = match &scored.outcome {
            Ok(scores) => (Some(self.figures(scores)), scores.failures()),
            Err(error) => (None, Some(error.to_string())),
        };
        let (reference, file) = (names::shown(&scored.pair.reference), names::shown(&scored.pair.distorted));
        self.rows.push((scored.at, ShownRow { reference, file, figures: outcome, failed: failed.map(told) }));
    }

    fn figures(&self, scores: &PairScores) -> Figures {
        let each = scores.good();
        let score = |metric: &Metric| scores.good().find(|score| score.metric == *metric).map(|score| score.score);
        let cells = |metric: &Metric| match score_columns(*metric).len() {
            1 => vec![score(metric).map(|score| score.value)],
            _ => vec![score(metric).map(|score| score.value), score(metric).and_then(|score| score.norm3)],
        };
        Figures {
            size: scores.reference.image.size().to_string(),
            bytes: Bytes(scores.distorted.bytes),
            bits_per_pixel: bits_per_pixel(scores),
            scores: self.metrics.iter().flat_map(cells).collect(),
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
        if self.rows.iter().any(|(_, row)| row.figures.is_some()) {
            if self.verbose { self.print_verbose()? } else { self.print_scores()? }
        }
        for (_, row) in &self.rows {
            if let Some(error) = &row.failed {
                match error.starts_with(&row.file) {
                    true => output::error_line(error),
                    false => output::error_line(format_args!("{}: {error}", row.file)),
                }
            }
        }
        Ok(())
    }

    /// All scores in one table, or in several below each other where one would leave no space for names.
    fn print_scores(&self) -> Ended {
        let several = self.rows.iter().any(|(_, row)| row.reference != self.rows[0].1.reference);
        let names: Vec<String> = self.metrics.iter().flat_map(|metric| score_columns(*metric)).collect();
        let titles: Vec<String> = names.iter().map(|name| name.to_uppercase().replace('_', "-")).collect();
        let mut first = 0;
        while first < titles.len() {
            let count = self.fitting(&titles[first..], several, first == 0);
            if first > 0 {
                output::line("")?;
            }
            self.print_part(several, first, &titles[first..first + count], first == 0)?;
            first += count;
        }
        Ok(())
    }

    /// How many scores fit beside names; at least one.
    fn fitting(&self, titles: &[String], several: bool, with_sizes: bool) -> usize {
        let Some(width) = output::width() else { return titles.len() };
        let longest = |name: fn(&ShownRow) -> &str| {
            self.rows.iter().map(|(_, row)| name(row).chars().count()).max().unwrap_or(0).min(NAME_WIDTH) + 1
        };
        let names = longest(|row| &row.file) + if several { longest(|row| &row.reference) } else { 0 };
        let mut left = usize::from(width).saturating_sub(names + if with_sizes { SIZES_WIDTH } else { 0 });
        let fits = |title: &&String| {
            let wanted = title.chars().count().max(SCORE_WIDTH) + 2;
            let fits = wanted <= left;
            left = left.saturating_sub(wanted);
            fits
        };
        titles.iter().take_while(fits).count().max(1)
    }

    fn print_part(&self, several: bool, first: usize, titles: &[String], with_sizes: bool) -> Ended {
        let mut columns = vec![("FILE", Left)];
        if several {
            columns.insert(0, ("REFERENCE", Left));
        }
        if with_sizes {
            columns.extend([("SIZE", Right), ("BYTES", Right), ("BPP", Right)]);
        }
        columns.extend(titles.iter().map(|title| (title.as_str(), Right)));
        let best = if several { Vec::new() } else { self.best() };
        let mut table = output::table(&columns);
        for (_, row) in &self.rows {
            let Some(figures) = &row.figures else { continue };
            let mut cells: Vec<Cell> = several.then(|| Cell::new(&row.reference)).into_iter().collect();
            cells.push(Cell::new(&row.file));
            if with_sizes {
                let bpp = format!("{:.3}", figures.bits_per_pixel);
                cells.extend([&figures.size, &figures.bytes.to_string(), &bpp].map(Cell::new));
            }
            let scores = figures.scores.iter().enumerate().skip(first).take(titles.len());
            cells.extend(scores.map(|(at, score)| self.score_cell(at, *score, &best)));
            table.add_row(cells);
        }
        output::print_table(&table)
    }

    fn score_cell(&self, at: usize, score: Option<f64>, best: &[f64]) -> Cell {
        let Some(score) = score else { return output::bad("failed") };
        let metric = self.metrics.iter().flat_map(|metric| vec![metric; score_columns(*metric).len()]).nth(at);
        // A number would say that there is something to measure.
        let is_identical = metric.is_some_and(|metric| *metric == Metric::Psnr && score == metric.about().perfect);
        let text = if is_identical { "identical".to_owned() } else { score_text(score) };
        if best.get(at) == Some(&score) { output::good(text) } else { Cell::new(text) }
    }

    /// The best score of each column, where there is more than one to choose from.
    fn best(&self) -> Vec<f64> {
        let rows: Vec<&Figures> = self.rows.iter().filter_map(|(_, row)| row.figures.as_ref()).collect();
        if rows.len() < 2 {
            return Vec::new();
        }
        let better = self.metrics.iter().flat_map(|metric| vec![metric.about().better; score_columns(*metric).len()]);
        let pick = |(at, better): (usize, Better)| {
            let scores = rows.iter().filter_map(|figures| figures.scores[at]);
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
            for place in row.figures.iter().flat_map(|figures| &figures.reports) {
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
pub(super) fn score_text(score: f64) -> String {
    match score.abs() {
        large if large >= 10.0 => format!("{score:.3}"),
        _ => format!("{score:.5}"),
    }
}
