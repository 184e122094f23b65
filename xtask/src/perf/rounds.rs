//! A row on both sides in turns, and somebody else's program after them.
//! Never lets one side always go first: what the first leaves in the caches is the second's gain.

use std::fs;
use std::path::{Path, PathBuf};

use super::builds::{Build, Sides};
use super::judge::{Compared, Verdict};
use super::matrix::{Peer, Reads, Row};
use super::process::{self, Ran};
use crate::packages;

/// A row that looks worse gets so many more rounds, so often: a busy moment is no regression.
const SECOND_LOOKS: usize = 2;

/// Measures a row: each of its figures on both sides.
pub(crate) fn measure(row: &Row, sides: &Sides, folder: &Path, rounds: usize) -> Result<Vec<Compared>, String> {
    let input = row.input.ensure(folder, &sides.this)?;
    let mut course = Course::new(row, input, folder);
    let rounds = rounds.min(row.rounds_max);
    course.go(sides, rounds);
    for _ in 0..SECOND_LOOKS {
        if row.rounds_max > 1 && course.compared.iter().any(looks_worse) {
            course.go(sides, rounds);
        }
    }
    for problem in &course.problems {
        println!("{}: {problem}", row.name);
    }
    Ok(course.compared)
}

fn looks_worse(compared: &Compared) -> bool {
    !compared.this.is_empty() && matches!(compared.verdict(), Verdict::Worse(_))
}

/// One for each that the row reads; what is not to be found is missing.
type Figures = Vec<Option<f64>>;

struct Course<'a> {
    row: &'a Row,
    input: PathBuf,
    folder: &'a Path,
    peer: Option<Peer>,
    compared: Vec<Compared>,
    /// Why a side could not do it.
    problems: Vec<String>,
}

impl<'a> Course<'a> {
    fn new(row: &'a Row, input: PathBuf, folder: &'a Path) -> Self {
        let peer = row.peer.filter(is_installed);
        let compared = |reads: &Reads| Compared {
            row: row.name.to_owned(),
            figure: reads.figure(),
            base: Vec::new(),
            this: Vec::new(),
            peer: peer.map(|peer| (peer.name, Vec::new())),
        };
        Self { row, input, folder, peer, compared: row.reads.iter().map(compared).collect(), problems: Vec::new() }
    }

    fn go(&mut self, sides: &Sides, rounds: usize) {
        for round in 0..rounds {
            let (base, this) = if round % 2 == 0 {
                let base = self.base(sides);
                (base, self.side(&sides.this, "this"))
            } else {
                let this = self.side(&sides.this, "this");
                (self.base(sides), this)
            };
            let peer = self.peer.and_then(|peer| self.peer_figures(peer));
            self.add(base, this, peer);
            if !self.problems.is_empty() {
                return;
            }
        }
    }

    /// A side that failed once cannot do the row, whatever it gave before.
    fn add(&mut self, base: Option<Figures>, this: Option<Figures>, peer: Option<Figures>) {
        for (at, compared) in self.compared.iter_mut().enumerate() {
            for (values, figures) in [(&mut compared.base, &base), (&mut compared.this, &this)] {
                match figures.as_ref().and_then(|figures| figures[at]) {
                    Some(value) => values.push(value),
                    None => values.clear(),
                }
            }
            if let (Some((_, values)), Some(figures)) = (&mut compared.peer, &peer) {
                values.extend(figures[at]);
            }
        }
    }

    fn base(&mut self, sides: &Sides) -> Option<Figures> {
        self.side(sides.base.as_ref()?, "base")
    }

    /// The row's figures on one side; nothing if it cannot do it.
    fn side(&mut self, build: &Build, name: &str) -> Option<Figures> {
        let output = self.folder.join(format!("out-{name}"));
        let environment = [
            ("PLIMSOLL_NO_GPU", "1".to_owned()),
            ("PLIMSOLL_PROFILE", self.folder.join(format!("profile-{name}.toml")).display().to_string()),
        ];
        let program = build.program(self.row.program)?;
        match process::run(program, &self.words(self.row.words, &output), &environment) {
            Ok(ran) => Some(self.figures(&ran, &output)),
            Err(problem) => {
                self.problems.push(format!("{name}: {problem}"));
                None
            }
        }
    }

    fn peer_figures(&self, peer: Peer) -> Option<Figures> {
        let output = self.folder.join("out-peer");
        let words = self.words(&peer.command[1..], &output);
        let ran = process::run(Path::new(peer.command[0]), &words, &[]).ok()?;
        let beside = PathBuf::from(format!("{}.pigz", self.input.display()));
        if beside.exists() {
            fs::rename(&beside, &output).ok()?;
        }
        Some(self.figures(&ran, &output))
    }

    fn words(&self, words: &[&str], output: &Path) -> Vec<String> {
        let (input, output) = (self.input.display().to_string(), output.display().to_string());
        words.iter().map(|word| word.replace("{in}", &input).replace("{out}", &output)).collect()
    }

    fn figures(&self, ran: &Ran, output: &Path) -> Figures {
        let size = |path: &Path| fs::metadata(path).ok().map(|file| file.len() as f64);
        let read = |reads: &Reads| match *reads {
            Reads::Throughput => Some(self.row.input.units() / ran.seconds),
            Reads::Peak => Some(ran.peak_bytes as f64).filter(|peak| *peak > 0.0),
            Reads::Ratio => Some(size(&self.input)? / size(output)?),
            Reads::Administration => administration(&ran.said),
            Reads::Word { line, word } => word_of(&ran.said, line, word),
            Reads::Json(name) => json(&ran.said, name),
        };
        self.row.reads.iter().map(read).collect()
    }
}

fn is_installed(peer: &Peer) -> bool {
    packages::is_program(peer.command[0]) || packages::answers(peer.command[0], "-version")
}

fn administration(said: &str) -> Option<f64> {
    let slots = json(said, "slots")? * json(said, "elapsed_seconds")?;
    Some(json(said, "administration_seconds")? / slots)
}

/// The first number under this name.
fn json(said: &str, name: &str) -> Option<f64> {
    let (_, rest) = said.split_once(&format!("\"{name}\":"))?;
    let end = rest.find([',', '}', '\n']).unwrap_or(rest.len());
    rest[..end].trim().parse().ok()
}

fn word_of(said: &str, begins: &str, word: usize) -> Option<f64> {
    let line = said.lines().find(|line| line.starts_with(begins))?;
    line.split_whitespace().nth(word)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_what_programs_say() {
        let said = "{\"slots\":2,\"elapsed_seconds\": 0.5,\"administration_seconds\":0.01}";
        assert_eq!(administration(said), Some(0.01));
        assert_eq!(administration("{\"slots\":2}"), None);
        let table = "tasks  ms\n2000 of 200µs   201.0  200.0  1.005  9 9\n";
        assert_eq!(word_of(table, "2000 of 200", 5), Some(1.005));
        assert_eq!(json("{\n  \"ratio\": 1.25\n}", "ratio"), Some(1.25));
    }
}
