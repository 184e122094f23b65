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
    /// Files whose names do not say who made them: how many, and the first.
    unlabelled: (usize, Option<String>),
}

impl Figures {
    pub(super) fn new(metrics: &[Metric]) -> Self {
        let metrics = metrics.iter().map(|metric| (*metric, Vec::new())).collect();
        Self { metrics, unlabelled: (0, None) }
    }

    pub(super) fn add(&mut self, scored: &Scored, columns: &Columns) {
        let Ok(scores) = &scored.outcome else { return };
        let Some(label) = self.label(&scored.pair, columns) else { return };
        let (reference, rate) = (names::in_row(&scored.pair.reference), bits_per_pixel(scores));
        for score in scores.good() {
            let (label, reference) = (label.clone(), reference.clone());
            self.put(score.metric, LabelledScore { label, reference, rate, score: score.score.value });
        }
    }

    pub(super) fn add_kept(&mut self, pair: &Pair, row: &Row, columns: &Columns) {
        let Some(label) = self.label(pair, columns) else { return };
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

    /// Who made a file. One that does not say it is counted: else it would be missing without a word.
    fn label(&mut self, pair: &Pair, columns: &Columns) -> Option<String> {
        let Labels { encoder, quality } = columns.labels(pair);
        if encoder.is_none() && quality.is_none() {
            let (count, first) = &mut self.unlabelled;
            *count += 1;
            first.get_or_insert_with(|| names::in_row(&pair.distorted));
        }
        encoder
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
        let lines = if lines.len() > 2 { [vec![String::new()], lines].concat() } else { Vec::new() };
        let unlabelled = match &self.unlabelled {
            (1, Some(first)) => Some(format!("no label for {}: its name does not match", names::harmless(first))),
            (count, Some(first)) => {
                let first = names::harmless(first);
                Some(format!("no label for {count} files, {first} the first: their names do not match"))
            }
            _ => None,
        };
        lines.into_iter().chain(unlabelled).collect()
    }
}
