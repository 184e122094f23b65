//! Which cells of the table are measured, in how many rounds, and until when.

use std::time::{Duration, Instant};

use crate::corpus::{KINDS, Kind};

/// Bytes from which level 19 takes minutes for each side.
const LARGE: usize = 256 << 20;

pub(crate) struct Options {
    kinds: Vec<String>,
    pub(crate) sizes: Vec<usize>,
    pub(crate) levels: Vec<i32>,
    pub(crate) gzip_levels: Vec<i32>,
    rounds: Option<usize>,
    all: bool,
    begun: Instant,
    /// No cell and no further round of one is begun after that.
    at_most: Duration,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Self {
        let has = |flag: &str| words.iter().any(|word| word == flag);
        let value = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
        let list = |flag: &str, quick: &str, usual: &str| -> Vec<String> {
            let usual = if has("--quick") { quick } else { usual };
            let text = value(flag).map_or(usual, |text| text.as_str());
            text.split(',').filter(|part| *part != "none").map(str::to_owned).collect()
        };
        let levels = |flag, quick, usual| list(flag, quick, usual).iter().map(|text| number(text) as i32).collect();
        Self {
            kinds: list("--kinds", "text,noise", "text,binary,numeric,noise,repetitive"),
            sizes: list("--sizes", "1048576", "4096,1048576,16777216,268435456")
                .iter()
                .map(|text| number(text))
                .collect(),
            levels: levels("--levels", "1,3", "1,3,9,19"),
            gzip_levels: levels("--gzip-levels", "6", "1,6,9"),
            rounds: value("--rounds").map(|text| number(text).max(1)),
            all: has("--all"),
            begun: Instant::now(),
            at_most: value("--minutes").map_or(Duration::MAX, |text| Duration::from_secs(60 * number(text) as u64)),
        }
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(|kind| self.kinds.iter().any(|name| name == kind.name))
    }

    /// Whether a cell is measured, among those that take minutes or among the others.
    pub(crate) fn takes(&self, size: usize, level: i32, among_slow: bool) -> bool {
        let is_slow = size >= LARGE && level >= 19;
        is_slow == among_slow && (self.all || !is_slow)
    }

    /// How long it has been going on.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.elapsed() >= self.at_most
    }

    /// The rounds of a cell, at least one of them. The shorter a run, the more of it is chance.
    pub(crate) fn rounds(&self, size: usize, level: i32) -> impl Iterator<Item = usize> {
        let most = self.rounds.unwrap_or(match (size, level) {
            (..=65_536, _) => 15,
            (..=4_194_304, ..9) => 7,
            (..=4_194_304, _) => 3,
            (..LARGE, ..9) => 3,
            _ => 1,
        });
        (0..most).take_while(move |round| *round == 0 || !self.is_over())
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("numbers with commas between")
}
