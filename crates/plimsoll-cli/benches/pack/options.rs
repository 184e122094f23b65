//! Which cells of the table are measured, and in how many rounds.

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
        }
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(|kind| self.kinds.iter().any(|name| name == kind.name))
    }

    /// Whether a cell is measured.
    pub(crate) fn takes(&self, size: usize, level: i32) -> bool {
        self.all || size < LARGE || level < 19
    }

    /// The shorter a run, the more of it is chance.
    pub(crate) fn rounds(&self, size: usize) -> usize {
        self.rounds.unwrap_or(match size {
            0..=65_536 => 15,
            65_537..=4_194_304 => 7,
            4_194_305..LARGE => 3,
            _ => 1,
        })
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("numbers with commas between")
}
