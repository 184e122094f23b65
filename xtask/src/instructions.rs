//! `cargo xtask instructions`: how many instructions the scheduler spends on a task, counted by callgrind; and whether that
//! is more than the baseline says.
//! Never a time: the same build gives the same figure on a busy machine too, to within a few instructions.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{packages, steps};

/// The ways in which `benches/decide.rs` submits and takes tasks.
const WAYS: &[&str] = &["one by one", "in batches"];
/// Two runs of different lengths: what they differ by is the tasks' own.
const FEW: u64 = 1_000;
const MANY: u64 = 11_000;

/// More instructions than the baseline by this share are too many.
const RISE_MAX: f64 = 0.02;

/// Instructions a task, for each way.
type Counts = Vec<(String, u64)>;

/// Counts and prints; checks against the baseline, or makes it.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    match words {
        [] => count().map(|_| ()),
        ["--check"] => check(&kept()?, &count()?),
        ["--update"] => keep(&count()?),
        _ => Err("instructions takes --check, --update or nothing".to_owned()),
    }
}

fn count() -> Result<Counts, String> {
    if !packages::is_program("valgrind") {
        packages::install("valgrind", "install valgrind, then run this again")?;
    }
    let bench = build()?;
    println!("instructions a task (callgrind, benches/decide.rs)");
    let mut counts = Counts::new();
    for way in WAYS {
        let (few, many) = (counted(&bench, FEW, way)?, counted(&bench, MANY, way)?);
        let each = many.saturating_sub(few) / (MANY - FEW);
        println!("    {way:12} {each:>7}");
        counts.push(((*way).to_owned(), each));
    }
    Ok(counts)
}

/// Every way that was kept is there and takes no more than it may.
fn check(kept: &Counts, now: &Counts) -> Result<(), String> {
    let judge = |(way, before): &(String, u64)| match now.iter().find(|(name, _)| name == way) {
        None => Some(format!("{way}: missing")),
        Some((_, now)) if *now as f64 > *before as f64 * (1.0 + RISE_MAX) => {
            Some(format!("{way}: {now}, and {before} in the baseline"))
        }
        Some(_) => None,
    };
    let worse: Vec<String> = kept.iter().filter_map(judge).collect();
    if worse.is_empty() {
        return Ok(());
    }
    Err(format!(
        "a task takes more instructions than it did ({}); make it cheaper, or say why it must be so in the commit that \
         runs `cargo xtask instructions --update`",
        worse.join("; ")
    ))
}

fn keep(counts: &Counts) -> Result<(), String> {
    let lines: String = counts.iter().map(|(way, each)| format!("{way}\t{each}\n")).collect();
    fs::write(kept_path(), lines).map_err(|error| format!("cannot write {}: {error}", kept_path().display()))
}

fn kept() -> Result<Counts, String> {
    let path = kept_path();
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("{}: {error}; make it with `cargo xtask instructions --update`", path.display()))?;
    parse(&text).ok_or_else(|| format!("{} is no list of ways and counts; make it anew with --update", path.display()))
}

fn parse(text: &str) -> Option<Counts> {
    let line = |line: &str| line.split_once('\t').and_then(|(way, each)| Some((way.to_owned(), each.parse().ok()?)));
    text.lines().map(line).collect()
}

fn kept_path() -> PathBuf {
    steps::root().join("xtask/instructions.tsv")
}

/// Builds the bench and says where it is.
fn build() -> Result<PathBuf, String> {
    let mut command = steps::cargo();
    command.args(["bench", "--package", "plimsoll-core", "--bench", "decide", "--no-run", "--message-format", "json"]);
    let output = command.output().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("the bench does not build\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    messages.lines().rev().find_map(executable).ok_or_else(|| "cargo named no program".to_owned())
}

/// The program that one of cargo's messages names.
pub(crate) fn executable(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once("\"executable\":\"")?;
    rest.split('"').next().map(PathBuf::from)
}

fn counted(bench: &PathBuf, tasks: u64, way: &str) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(bench);
    command.args(["--tasks", &tasks.to_string(), way]);
    let output = command.output().map_err(|error| format!("cannot start valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().find_map(collected).ok_or_else(|| format!("callgrind gave no count\n{said}"))
}

/// The count in a line such as `==12== Collected : 3456`.
fn collected(line: &str) -> Option<u64> {
    line.split_once("Collected :")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ways: &[(&str, u64)]) -> Counts {
        ways.iter().map(|(way, each)| ((*way).to_owned(), *each)).collect()
    }

    #[test]
    fn more_than_2_percent_fails_as_does_a_way_that_is_missing() {
        let kept = counts(&[("a", 1_000), ("b", 500)]);
        assert_eq!(check(&kept, &counts(&[("a", 1_020), ("b", 400)])), Ok(()));
        let told = check(&kept, &counts(&[("a", 1_021)])).unwrap_err();
        assert!(told.contains("(a: 1021, and 1000 in the baseline; b: missing)"), "{told}");
    }

    #[test]
    fn the_baseline_is_read() {
        assert_eq!(parse("a b\t12\n"), Some(counts(&[("a b", 12)])));
        assert_eq!(parse("a b 12\n"), None);
    }

    #[test]
    fn counts_and_programs_are_found_in_what_the_tools_say() {
        assert_eq!(collected("==3== Collected : 77012"), Some(77_012));
        assert_eq!(collected("==3== I   refs:      77,012"), None);
        let message = r#"{"reason":"compiler-artifact","executable":"/t/deps/decide-1f","fresh":true}"#;
        assert_eq!(executable(message), Some(PathBuf::from("/t/deps/decide-1f")));
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
    }
}
