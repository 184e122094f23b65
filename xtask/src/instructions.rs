//! `cargo xtask instructions`: how many instructions the scheduler spends on a task, counted by callgrind.
//! Never a time: the same build gives the same figure on a busy machine too, to within a few instructions.

use std::path::PathBuf;
use std::process::Command;

use crate::{packages, steps};

/// The ways in which `benches/decide.rs` submits and takes tasks.
const WAYS: &[&str] = &["one by one", "in batches"];
/// Two runs of different lengths: what they differ by is the tasks' own.
const FEW: u64 = 1_000;
const MANY: u64 = 11_000;

/// Counts and prints.
pub(crate) fn count() -> Result<(), String> {
    if !packages::is_program("valgrind") {
        packages::install("valgrind", "install valgrind, then run this again")?;
    }
    let bench = build()?;
    println!("instructions a task (callgrind, benches/decide.rs)");
    for way in WAYS {
        let (few, many) = (counted(&bench, FEW, way)?, counted(&bench, MANY, way)?);
        println!("    {way:12} {:>7}", many.saturating_sub(few) / (MANY - FEW));
    }
    Ok(())
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
fn executable(message: &str) -> Option<PathBuf> {
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

    #[test]
    fn counts_and_programs_are_found_in_what_the_tools_say() {
        assert_eq!(collected("==3== Collected : 77012"), Some(77_012));
        assert_eq!(collected("==3== I   refs:      77,012"), None);
        let message = r#"{"reason":"compiler-artifact","executable":"/t/deps/decide-1f","fresh":true}"#;
        assert_eq!(executable(message), Some(PathBuf::from("/t/deps/decide-1f")));
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
    }
}
