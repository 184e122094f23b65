//! What the scores say of each label: mean, percentiles, and the bits that it needs beside the first one.

use comfy_table::CellAlignment::{Left, Right};
use plimsoll::image::metrics::{Better, Metric};
use plimsoll::score::{Pair, Scored};
use plimsoll_results::labels::{LabelledScore, figures};
use plimsoll_results::rows::Row;

use super::columns::{Columns, bits_per_pixel, score_columns};
use super::labels::Labels;
use super::names;
use crate::output;

/// The scores of a run, by metric.
pub(super) struct Figures {
    metrics: Vec<(Metric, Vec<LabelledScore>)>,
}

impl Figures {
    pub(super) fn new(metrics: &[Metric]) -> Self {
        Self { metrics: metrics.iter().map(|metric| (*metric, Vec::new())).collect() }
    }

    pub(super) fn add(&mut self, scored: &Scored, columns: &Columns) {
        let Ok(scores) = &scored.outcome else { return };
        let Labels { encoder: Some(label), .. } = columns.labels(&scored.pair) else { return };
        let (reference, rate) = (names::in_row(&scored.pair.reference), bits_per_pixel(scores));
        for score in scores.good() {
            let (label, reference) = (label.clone(), reference.clone());
            self.put(score.metric, LabelledScore { label, reference, rate, score: score.score.value });
        }
    }

    pub(super) fn add_kept(&mut self, pair: &Pair, row: &Row, columns: &Columns) {
        let Labels { encoder: Some(label), .. } = columns.labels(pair) else { return };
        let Some(rate) = columns.number(row, "bits_per_pixel") else { return };
        let reference = names::in_row(&pair.reference);
        for at in 0..self.metrics.len() {
            let metric = self.metrics[at].0;
            let name = score_columns(metric).swap_remove(0);
            if let Some(score) = columns.number(row, &name) {
                let (label, reference) = (label.clone(), reference.clone());
                self.put(metric, LabelledScore { label, reference, rate, score });
            }
        }
    }

    fn put(&mut self, metric: Metric, score: LabelledScore) {
        if let Some((_, scores)) = self.metrics.iter_mut().find(|(known, _)| known.name() == metric.name()) {
            scores.push(score);
        }
    }

    /// A table of all labels and metrics.
    pub(super) fn lines(&self) -> Vec<String> {
        let columns = [
            ("LABEL", Left),
            ("METRIC", Left),
            ("FILES", Right),
            ("MEAN", Right),
            ("P5", Right),
            ("P50", Right),
            ("P95", Right),
            ("BD-RATE", Right),
        ];
        let mut table = output::table(&columns);
        for (metric, scores) in &self.metrics {
            for row in figures(scores, metric.about().better == Better::Higher) {
                let numbers = [row.mean, row.p5, row.p50, row.p95].map(super::table::score_text);
                let rate = row.bd_rate.map_or_else(|| "-".to_owned(), |rate| format!("{:+.1} %", rate * 100.0));
                let texts = [names::harmless(&row.label), metric.to_string(), row.count.to_string()];
                table.add_row(texts.into_iter().chain(numbers).chain([rate]));
            }
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        if lines.len() > 2 { [vec![String::new()], lines].concat() } else { Vec::new() }
    }
}
