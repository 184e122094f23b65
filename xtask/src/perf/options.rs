//! What can be typed after `cargo xtask perf`.

/// Rounds of each row unless said otherwise: the median of so many is steady to a percent or two on a quiet machine.
const ROUNDS: usize = 9;
/// Rounds of a quick look.
const ROUNDS_QUICK: usize = 5;

pub(crate) const HELP: &str = "\
cargo xtask perf [OPTION...]    this revision against another, in turns, on this machine; fails if it is worse

  --base REV      the other revision; where this branch left main, or the one before, if not given
  --quick         the rows that take little time, in fewer rounds
  --rows A,B      only rows whose names contain one of these: pack, score, frames, array, overhead, schedule
  --rounds N      rounds of each row
  --update        measure this revision alone and keep it as the baseline, xtask/perf.json

Worse is: 4 % less throughput, 0.02 more overhead, a worse compression ratio, 10 % more memory, or a row that is missing.";

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) help: bool,
    pub(crate) base: Option<String>,
    pub(crate) quick: bool,
    pub(crate) rows: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) update: bool,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().map(|value| (*value).to_owned()).ok_or_else(|| needs_value(word));
            match *word {
                "help" | "-h" | "--help" => options.help = true,
                "--quick" => options.quick = true,
                "--update" => options.update = true,
                "--base" => options.base = Some(value()?),
                "--rows" => options.rows = value()?.split(',').map(str::to_owned).collect(),
                "--rounds" => options.rounds = count(&value()?)?,
                unknown => return Err(format!("perf has no '{unknown}'; `cargo xtask perf --help` lists its options")),
            }
        }
        if options.update && !options.is_whole() {
            return Err("--update keeps every row; leave out --quick and --rows".to_owned());
        }
        if options.rounds == 0 {
            options.rounds = if options.quick { ROUNDS_QUICK } else { ROUNDS };
        }
        Ok(options)
    }

    /// Every row was asked for.
    pub(crate) fn is_whole(&self) -> bool {
        !self.quick && self.rows.is_empty()
    }
}

fn needs_value(word: &str) -> String {
    format!("{word} needs a value; `cargo xtask perf --help` says which")
}

fn count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1_000).contains(count));
    count.ok_or_else(|| format!("--rounds takes a number from 1 to 1000, not '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = Options::parse(&["--base", "main~3", "--rows", "pack,frames", "--rounds", "3"]).unwrap();
        assert_eq!(options.base.as_deref(), Some("main~3"));
        assert_eq!((options.rows.len(), options.rounds, options.is_whole()), (2, 3, false));
        assert_eq!(Options::parse(&[]).unwrap().rounds, ROUNDS);
        assert_eq!(Options::parse(&["--quick"]).unwrap().rounds, ROUNDS_QUICK);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(Options::parse(&["--bse"]).unwrap_err().contains("'--bse'"));
        assert!(Options::parse(&["--update", "--quick"]).unwrap_err().contains("every row"));
        assert!(Options::parse(&["--base"]).unwrap_err().contains("needs a value"));
        assert!(Options::parse(&["--rounds", "0"]).unwrap_err().contains("1 to 1000"));
    }
}
