//! One test program under one mutant: does it pass, fail, or hang?
//! Never lets a mutant take the machine down: its memory and its time are bounded, and its children end with it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::compile::Program;
use crate::site::MutantId;

/// Tells a test program which mutant is on.
pub(crate) const SWITCH_VARIABLE: &str = "PLIMSOLL_MUTANT";

/// Address space of one test program, in KiB: a mutant may allocate in a loop that no longer ends.
const MEMORY_MAX_KIB: u64 = 8 << 20;

/// Settings of the developer's own that would change what the tests see.
const NOT_FOR_TESTS: &[&str] = &[
    "PLIMSOLL_ALONE",
    "PLIMSOLL_BOOK",
    "PLIMSOLL_MEMORY_LIMIT",
    "PLIMSOLL_NO_GPU",
    "PLIMSOLL_PROFILE",
    "PLIMSOLL_SOFTWARE_GPU",
];

/// How a test program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Passed,
    /// With the first test that failed, or nothing if the program itself died.
    Failed(Option<String>),
    Hung,
}

/// Runs a program's tests, or only one of them, until the first one fails.
pub(crate) fn run(program: &Program, only: Option<&str>, mutant: MutantId, limit: Duration) -> Result<Ended, String> {
    let mut child = start(program, only, mutant)?;
    let output = child.stdout.take().ok_or("the tests' output is piped")?;
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || sender.send(first_failure(output)));
    let ended = match receiver.recv_timeout(limit) {
        Ok(Some(test)) => Ok(Ended::Failed(Some(test))),
        Ok(None) => match child.wait() {
            Ok(status) if status.success() => Ok(Ended::Passed),
            Ok(_) => Ok(Ended::Failed(None)),
            Err(error) => Err(format!("{}: {error}", program.path.display())),
        },
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(Ended::Hung),
    };
    end(&mut child);
    // It ends with the last process that could write to it.
    drop(reader.join());
    ended
}

/// The name of the first test that is reported as failed; `None` if the output ends without one.
fn first_failure(output: impl Read) -> Option<String> {
    BufReader::new(output).lines().map_while(Result::ok).find_map(|line| failed_test(&line))
}

fn failed_test(line: &str) -> Option<String> {
    let test = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    // `test name - should panic ... FAILED`
    Some(test.split(" - ").next()?.to_owned())
}

fn start(program: &Program, only: Option<&str>, mutant: MutantId) -> Result<Child, String> {
    let mut command = bounded(program);
    command.args(only.map(|test| ["--exact", test]).into_iter().flatten());
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    command.env(SWITCH_VARIABLE, mutant.to_string()).env("RUST_BACKTRACE", "0");
    NOT_FOR_TESTS.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().map_err(|error| format!("cannot start {}: {error}", program.path.display()))
}

/// The program in a process group of its own, with a limit to its memory.
#[cfg(unix)]
fn bounded(program: &Program) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MEMORY_MAX_KIB}; exec \"$0\" \"$@\"")]).arg(&program.path);
    command.process_group(0);
    command
}

#[cfg(not(unix))]
fn bounded(program: &Program) -> Command {
    Command::new(&program.path)
}

/// Ends the program and whatever it started.
fn end(child: &mut Child) {
    if cfg!(unix) && !matches!(child.try_wait(), Ok(Some(_))) {
        let group = format!("-{}", child.id());
        drop(Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status());
    }
    drop(child.kill());
    drop(child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failed_test_is_found_by_its_name() {
        let output = "running 3 tests\ntest a::b ... ok\ntest a::c - should panic ... FAILED\ntest d ... FAILED\n";
        assert_eq!(first_failure(output.as_bytes()), Some("a::c".to_owned()));
        assert_eq!(first_failure("test a ... ok\n".as_bytes()), None);
    }
}
