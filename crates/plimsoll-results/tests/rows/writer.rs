//! A process that writes rows, so that it can be killed or run out of room: this very test binary, started once more.
#![cfg(unix)]

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_results::rows::{Existing, Format, RowsError};

use crate::table::*;

/// Set for a process that these tests start: the output, how many rows it should come to, what to do.
const TOLD: [&str; 3] = ["PLIMSOLL_TEST_ROWS_PATH", "PLIMSOLL_TEST_ROWS_COUNT", "PLIMSOLL_TEST_ROWS_DEED"];

/// After which a process that nobody killed ends by itself.
const LIFE: Duration = Duration::from_secs(60);

/// Adds rows up to a count, finishes, and does all that again until it is killed.
pub(crate) const OVER_AND_OVER: &str = "over and over";
/// Adds rows up to a count, and finishes.
pub(crate) const ONCE: &str = "once";
/// Adds one row and then does nothing, without an end.
pub(crate) const HOLD: &str = "hold";
/// Adds rows until there is no room, and then some.
pub(crate) const UNTIL_FULL: &str = "until full";

/// A started process. Killed when dropped, so that a failing test leaves none behind.
pub(crate) struct Writer(pub(crate) Child);

impl Drop for Writer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a writer. `before` is shell that runs first in its process.
pub(crate) fn start(path: &Path, count: u64, deed: &str, before: &str) -> Writer {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before} exec \"$0\" --exact writer::writer_process --test-threads=1")]);
    command.arg(env::current_exe().expect("this binary"));
    command.env(TOLD[0], path).env(TOLD[1], count.to_string()).env(TOLD[2], deed);
    Writer(command.stdout(Stdio::null()).spawn().expect("started"))
}

/// Where a writer notes each row after it was taken.
pub(crate) fn notes_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.notes", path.display()))
}

/// The rows that writers noted as taken.
pub(crate) fn noted(path: &Path) -> Vec<u64> {
    let notes = fs::read_to_string(notes_of(path)).unwrap_or_default();
    let whole = notes.rfind('\n').map_or("", |end| &notes[..end]);
    whole.lines().map(|line| line.parse().expect("a number")).collect()
}

/// What [`start`] runs. Started by the test runner it starts itself once more and looks at what that wrote: the other
/// tests rely on it.
#[test]
fn writer_process() {
    if let Ok(path) = env::var(TOLD[0]) {
        return write_as_told(Path::new(&path));
    }
    let (_folder, path) = place(Format::Csv);
    let ended = start(&path, 5, ONCE, "").0.wait().expect("ours");
    assert!(ended.success(), "{ended:?}");
    assert_eq!(noted(&path), [0, 1, 2, 3, 4]);
    assert_eq!(seen(&path), (0..5).map(seen_good).collect::<Vec<_>>());
}

fn write_as_told(path: &Path) {
    let text = |at: usize| env::var(TOLD[at]).expect("set by start");
    let count = text(1).parse().expect("a number");
    let start = Instant::now();
    match text(2).as_str() {
        ONCE => add_up_to(path, count),
        OVER_AND_OVER => {
            while start.elapsed() < LIFE {
                add_up_to(path, count);
            }
        }
        HOLD => {
            let mut file = open(path, Existing::Resume).expect("ours");
            file.push(&good(count)).expect("room");
            notes(path).write_all(b"1\n").expect("room");
            thread::sleep(LIFE);
        }
        UNTIL_FULL => add_until_full(path, count),
        other => panic!("{other}"),
    }
}

fn notes(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(notes_of(path)).expect("created")
}

/// Every fifth task fails at first.
fn add_up_to(path: &Path, count: u64) {
    let mut file = open(path, Existing::Resume).expect("ours");
    let mut notes = notes(path);
    for at in 0..count {
        if file.is_done(key(at)) {
            continue;
        }
        if at % 5 == 0 {
            file.push(&failed(at)).expect("room");
        }
        file.push(&good(at)).expect("room");
        notes.write_all(format!("{at}\n").as_bytes()).expect("room");
    }
    file.finish_ranked(|of| (0..count).find(|at| key(*at) == of)).expect("written");
}

/// The output has its columns' names in every row, so what does not fit in the journal fits even less in the output.
fn add_until_full(path: &Path, from: u64) {
    let mut file = open(path, Existing::Resume).expect("ours");
    let mut notes = notes(path);
    let mut full = 0;
    for at in from..from + 100_000 {
        match file.push(&good(at)) {
            Ok(()) => notes.write_all(format!("{at}\n").as_bytes()).expect("room"),
            Err(RowsError::Full { path: named, .. }) => {
                assert_eq!(named, journal_of(path));
                full += 1;
            }
            Err(error) => panic!("{error}"),
        }
        if full == 3 {
            let error = file.finish().expect_err("no room");
            assert!(matches!(error, RowsError::Full { .. }), "{error}");
            return;
        }
    }
    panic!("there was always room");
}
