//! Where results go: the table, rows in a file or on stdout, the page, the progress bar.
//! Never scores anything. Invariant: a row is handed to its file before it counts as done.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Stdout};
use std::ops::ControlFlow;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use plimsoll::machine::DeviceName;
use plimsoll::score::{Pair, Scored};
use plimsoll_results::rows::{self, Existing, Format, Key, Row, RowFile, RowStream, RowsError, Schema};

use super::args::Args;
use super::columns::Columns;
use super::explain;
use super::figures::Figures;
use super::heat_maps::HeatMapFolder;
use super::page::Page;
use super::resume::Left;
use super::summary::Summary;
use super::table::Shown;
use super::threshold::Threshold;
use crate::output;
use crate::stop::{Ended, Stop};

pub(super) struct Outputs {
    columns: Columns,
    rows: Rows,
    page: Option<Page>,
    heat_maps: Option<HeatMapFolder>,
    bar: ProgressBar,
    summary: Summary,
    /// What is to be said of each label.
    figures: Option<Figures>,
    thresholds: Vec<Threshold>,
    /// Pairs with a score that is worse than a threshold.
    missed: usize,
    /// Rows of an earlier run that lack what this one adds.
    partial: HashMap<usize, Row>,
    explain: bool,
    names: Vec<DeviceName>,
    /// What stopped the output, if anything did.
    stopped: Option<Stop>,
    started: Instant,
}

enum Rows {
    Table(Shown),
    /// In a file, ordered at the end by where each pair stands among all.
    File {
        file: RowFile,
        ranks: HashMap<Key, u64>,
    },
    /// On stdout as they come, in the order of the pairs.
    Stream(InOrder),
    /// On stdout when all are there.
    Array(Schema, BTreeMap<usize, Row>),
}

/// Rows on stdout in the order of their pairs. What is early waits; there are never more early rows than pairs under
/// way.
struct InOrder {
    stream: RowStream<Stdout>,
    next: usize,
    early: BTreeMap<usize, Row>,
}

impl Outputs {
    pub(super) fn open(
        args: &Args,
        columns: Columns,
        page: Option<Page>,
        names: Vec<DeviceName>,
    ) -> Result<Self, Stop> {
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} images, {per_sec}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Ok(Self {
            rows: Rows::open(args, &columns, &names)?,
            columns,
            page,
            heat_maps: args.heat_maps.as_deref().map(HeatMapFolder::open).transpose()?,
            bar: ProgressBar::new(0).with_style(style),
            summary: Summary::default(),
            figures: args.labels.is_some().then(|| Figures::new(&args.metrics())),
            thresholds: args.fail_below.clone(),
            missed: 0,
            partial: HashMap::new(),
            explain: args.explain,
            names,
            stopped: None,
            started: Instant::now(),
        })
    }

    /// What is still to be scored: with which metrics which pairs, each with its place among all.
    pub(super) fn left_to_do(&mut self, pairs: Vec<Pair>) -> Result<Left, Stop> {
        let mut left = match &mut self.rows {
            Rows::File { file, ranks } => {
                let key = |pair| file.schema().key_of(self.columns.key(pair));
                *ranks = pairs.iter().enumerate().filter_map(|(at, pair)| Some((key(pair)?, at as u64))).collect();
                Left::of(pairs, file, &self.columns).map_err(with_causes)?
            }
            _ => Left::all(pairs, &self.columns),
        };
        self.summary.kept = left.kept.len();
        for (at, pair, row) in std::mem::take(&mut left.kept) {
            self.take_kept(at, &pair, &row);
        }
        self.partial = std::mem::take(&mut left.partial);
        self.bar.set_length(left.count() as u64);
        Ok(left)
    }

    /// A row of an earlier run counts as those of this one do.
    fn take_kept(&mut self, at: usize, pair: &Pair, row: &Row) {
        if let Some(page) = &mut self.page {
            page.add_kept(at, pair, row, &self.columns);
        }
        if let Some(figures) = &mut self.figures {
            figures.add_kept(pair, row, &self.columns);
        }
        let is_missed = |threshold: &Threshold| {
            let scores = super::columns::score_columns(threshold.metric);
            scores
                .first()
                .and_then(|name| self.columns.number(row, name))
                .is_some_and(|score| threshold.is_missed(score))
        };
        self.missed += usize::from(self.thresholds.iter().any(is_missed));
    }

    /// Takes what came of a pair; says whether to go on.
    pub(super) fn take(&mut self, mut scored: Scored) -> ControlFlow<()> {
        self.summary.count(&scored, &self.names);
        self.missed += usize::from(self.thresholds.iter().any(|threshold| threshold.is_missed_by(&scored)));
        if self.explain {
            let lines = explain::lines(&scored, &self.names);
            self.bar.suspend(|| output::aside(lines.trim_end()));
        }
        let before = self.partial.remove(&scored.at);
        if let Some(figures) = &mut self.figures {
            figures.add(&scored, &self.columns);
        }
        if let Some(page) = &mut self.page {
            let labels = self.columns.labels(&scored.pair);
            page.add(&mut scored, labels);
        }
        // Before the row: what --resume finds done has its map.
        let mapped = self.heat_maps.as_ref().map_or(Ok(()), |folder| folder.write(&scored));
        let taken = mapped.and_then(|()| self.rows.take(&self.columns, &scored, before.as_ref()));
        self.bar.inc(1);
        match taken {
            Ok(()) => ControlFlow::Continue(()),
            Err(stop) => {
                self.stopped = Some(stop);
                ControlFlow::Break(())
            }
        }
    }

    /// Ends the output: what is there is kept, whatever happened before.
    pub(super) fn finish(self, interrupted: bool) -> Ended {
        let took = self.started.elapsed();
        self.bar.finish_and_clear();
        if let Some(stop) = self.stopped {
            return Err(stop);
        }
        let to_stdout = matches!(self.rows, Rows::Table(_) | Rows::File { .. });
        let kept = self.rows.finish()?;
        let lines = self.summary.lines(took);
        let figures = self.figures.map(|figures| figures.lines()).unwrap_or_default();
        if let Some(page) = self.page {
            page.write(lines.clone(), &figures)?;
        }
        print_summary(&lines, to_stdout)?;
        for line in &figures {
            match to_stdout {
                true => output::line(line)?,
                false => output::aside(line),
            }
        }
        match (interrupted, self.summary.failed) {
            (true, _) => {
                let next = if kept { "; the same command with --resume goes on" } else { "" };
                Err(Stop::interrupted(format!("finished rows are kept{next}")))
            }
            (false, 0) if self.missed > 0 => Err(Stop::Missed { count: self.missed }),
            (false, 0) => Ok(()),
            (false, failed) => Err(Stop::failed(without_score(failed, failed + self.summary.scored))),
        }
    }
}

/// What is said at the end of a run in which some images have no score.
fn without_score(failed: usize, all: usize) -> String {
    match (failed, all) {
        (1, 1) => "the image has no score".to_owned(),
        _ if failed == all => format!("none of the {all} images has a score"),
        (1, _) => format!("1 of {all} images has no score; the others do"),
        _ => format!("{failed} of {all} images have no score; the others do"),
    }
}

impl Rows {
    fn open(args: &Args, columns: &Columns, names: &[DeviceName]) -> Result<Self, Stop> {
        let Some(format) = args.row_format()? else {
            return Ok(Self::Table(Shown::new(args.metrics(), args.verbose, names.to_vec())));
        };
        let schema = columns.schema();
        if let Some(path) = &args.output {
            let existing = match (args.resume, args.overwrite) {
                (true, _) => Existing::Resume,
                (false, true) => Existing::Replace,
                (false, false) => Existing::Refuse,
            };
            let file = RowFile::create(path, format, schema, existing).map_err(with_causes)?;
            return Ok(Self::File { file, ranks: HashMap::new() });
        }
        if format.streams() {
            let stream = RowStream::new(io::stdout(), format, schema).map_err(with_causes)?;
            return Ok(Self::Stream(InOrder { stream, next: 0, early: BTreeMap::new() }));
        }
        Ok(Self::Array(schema, BTreeMap::new()))
    }

    fn take(&mut self, columns: &Columns, scored: &Scored, before: Option<&Row>) -> Result<(), Stop> {
        match self {
            Self::Table(shown) => shown.add(scored),
            Self::File { file, .. } => file.push(&columns.row(scored, before)).map_err(with_causes)?,
            Self::Stream(rows) => rows.push(scored.at, columns.row(scored, before)).map_err(with_causes)?,
            Self::Array(_, rows) => {
                rows.insert(scored.at, columns.row(scored, before));
            }
        }
        Ok(())
    }

    /// Writes what is still held. Says whether the rows are in a file that a later run can go on with.
    fn finish(self) -> Result<bool, Stop> {
        match self {
            Self::Table(mut shown) => shown.print().map(|()| false),
            Self::File { file, ranks } => {
                file.finish_ranked(|key| ranks.get(&key).copied()).map(|_| true).map_err(with_causes)
            }
            Self::Stream(rows) => rows.finish().map(|()| false).map_err(with_causes),
            Self::Array(schema, rows) => {
                let shown = rows::show_all(io::stdout(), Format::Json, &schema, rows.into_values());
                shown.map(|()| false).map_err(with_causes)
            }
        }
    }
}

impl InOrder {
    fn push(&mut self, at: usize, row: Row) -> Result<(), RowsError> {
        self.early.insert(at, row);
        while let Some(row) = self.early.remove(&self.next) {
            self.stream.push(&row)?;
            self.next += 1;
        }
        Ok(())
    }

    /// After an interruption some rows wait for one that never comes.
    fn finish(mut self) -> Result<(), RowsError> {
        for row in std::mem::take(&mut self.early).into_values() {
            self.stream.push(&row)?;
        }
        Ok(())
    }
}

fn with_causes(error: RowsError) -> Stop {
    let stop = Stop::failed_with_causes(&error);
    match error {
        RowsError::PipeClosed => Stop::ReaderLeft,
        RowsError::OutputExists { .. } | RowsError::JournalExists { .. } | RowsError::Full { .. } => {
            stop.with_next("the same command with --resume")
        }
        RowsError::NotAFile { .. } => stop.with_next("the same command without --output"),
        RowsError::NeedsFile { .. } => stop.with_next("the same command with --output FILE"),
        _ => stop,
    }
}

/// Beside a table on stdout; beside rows for other programs on stderr.
fn print_summary(lines: &[(&'static str, String)], to_stdout: bool) -> Ended {
    if to_stdout {
        output::line("")?;
    }
    for (name, value) in lines {
        match to_stdout {
            true => output::line(format_args!("{name:<13} {value}"))?,
            false => output::aside(format_args!("{name:<13} {value}")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_are_named_only_where_there_are_some() {
        assert_eq!(without_score(1, 1), "the image has no score");
        assert_eq!(without_score(2, 2), "none of the 2 images has a score");
        assert_eq!(without_score(1, 3), "1 of 3 images has no score; the others do");
        assert_eq!(without_score(2, 3), "2 of 3 images have no score; the others do");
    }
}
