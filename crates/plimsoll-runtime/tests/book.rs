//! The book as several processes and orchestrators share it: real processes, real files, real kills.
//! Never relies on timing to pass: who must wait is asked again until its time, which is far longer than it takes, is over.

#![cfg(target_os = "linux")]

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::{Bytes, DeviceId, Priority, ShortfallError};
use plimsoll_runtime::book::{Book, BookError, ENTRIES_MAX, Entry, Listed, MemberId, Place};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::{Device, Grant, GrantRequest, Orchestrator};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Set for a process that this test starts of itself: what it does, and in which folder.
const ROLE: [&str; 2] = ["PLIMSOLL_TEST_BOOK_ROLE", "PLIMSOLL_TEST_BOOK_FOLDER"];
/// Until somebody does its part. Only a hang takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

const CPU: DeviceId = DeviceId(0);
const LINE: Bytes = Bytes::mib(128);
/// Nine tenths of the line: two of them never fit.
const MOST: Bytes = Bytes::mib(115);

fn place() -> (TempDir, Book) {
    let folder = tempfile::tempdir().expect("a folder");
    let book = Book::at(folder.path().join("book"));
    (folder, book)
}

/// A CPU with a small line whose memory is in the book.
fn device(book: &Book) -> Arc<dyn Device> {
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(1).memory_limit(LINE).build());
    Arc::new(Listed::new(cpu, Place { book: book.clone(), device: "memory".into() }))
}

fn orchestrator(book: &Book) -> Orchestrator {
    Orchestrator::builder().device(device(book)).build()
}

fn request() -> GrantRequest {
    GrantRequest::new(&[(CPU, MOST)])
}

fn granted(orchestrator: &Orchestrator, request: GrantRequest) -> Grant {
    orchestrator.grant(request).expect("it could be given").wait(PATIENCE).expect("it is given in time")
}

fn allotted(book: &Book) -> Bytes {
    book.entries().expect("a book that can be read").iter().map(|entry| entry.allotted).sum()
}

/// Asks over and over until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn two_orchestrators_of_one_process_never_pass_the_line_together() {
    let (_folder, book) = place();
    let (first, second) = (orchestrator(&book), orchestrator(&book));
    let held = first.lease(&[(CPU, MOST)]).expect("nobody else is there");
    let refused = second.lease(&[(CPU, MOST)]).expect_err("both would have it");
    assert!(matches!(refused, ShortfallError::NotNow { .. }), "not now, and not never: {refused}");
    assert!(allotted(&book) <= LINE);
    drop(held);
    let other = granted(&second, request());
    assert!(allotted(&book) <= LINE, "{:?}", book.entries());
    assert!(first.lease(&[(CPU, MOST)]).is_err());
    drop(other);
}

#[test]
fn who_is_alone_does_not_share() {
    let (_folder, book) = place();
    let alone = || Orchestrator::builder().device(device(&book)).alone().build();
    let (first, second) = (alone(), alone());
    let _held = first.lease(&[(CPU, MOST)]).expect("nobody else is there");
    let _both = second.lease(&[(CPU, MOST)]).expect("and nobody asks");
    assert!(!book.folder().exists(), "it is not even made");
}

#[test]
fn who_waits_is_served_when_the_other_leaves_whole() {
    let (_folder, book) = place();
    let (first, second) = (orchestrator(&book), orchestrator(&book));
    let held = granted(&first, request());
    let waiting = second.grant(request()).expect("it could be given");
    until("it wants", || book.entries().expect("read").iter().any(|entry| entry.wanted.is_some()));
    drop(held);
    drop(first);
    let _given = waiting.wait(PATIENCE).expect("given");
    drop(second);
    assert_eq!(book.entries().expect("read"), [], "who leaves takes its entries along");
}

#[test]
fn a_more_urgent_want_has_a_grant_of_another_orchestrator_recalled() {
    let (_folder, book) = place();
    let (first, second) = (orchestrator(&book), orchestrator(&book));
    let low = granted(&first, request().priority(Priority::Low));
    let equal = second.grant(request().priority(Priority::Low)).expect("it could be given");
    until("it wants", || book.entries().expect("read").iter().any(|entry| entry.wanted.is_some()));
    std::thread::sleep(Duration::from_millis(100));
    assert!(low.recalled().is_none(), "nobody is troubled for an equal");
    drop(equal);
    let urgent = second.grant(request().priority(Priority::High)).expect("it could be given");
    until("it is recalled", || low.recalled().is_some());
    drop(low);
    let _given = urgent.wait(PATIENCE).expect("given");
}

/// Starts a process of this test that does so.
fn start(role: &str, folder: &Path) -> Child {
    let test = env::current_exe().expect("this test");
    let mut command = Command::new(test);
    command.args(["--exact", "another_process", "--nocapture"]).env(ROLE[0], role).env(ROLE[1], folder);
    command.stdout(Stdio::piped()).spawn().expect("started")
}

/// What [`start`] runs. Started by the test runner it starts itself once more, and looks whether that did its part: the
/// other tests rely on it.
#[test]
fn another_process() {
    let Ok(role) = env::var(ROLE[0]) else {
        let (folder, _book) = place();
        let ended = start("takes turns", folder.path()).wait_with_output().expect("ended");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        assert!(folder.path().join("done").exists());
        return;
    };
    let folder = PathBuf::from(env::var(ROLE[1]).expect("a folder"));
    let book = Book::at(folder.join("book"));
    match role.as_str() {
        "takes turns" => take_turns(&book, &folder),
        "writes" => write_for_ever(&book),
        "holds the lock" => hold_the_lock(&book),
        other => panic!("nobody does '{other}'"),
    }
}

/// Takes nine tenths of the line again and again, and looks whether it is the only one.
fn take_turns(book: &Book, folder: &Path) {
    let orchestrator = orchestrator(book);
    for _ in 0..10 {
        let grant = granted(&orchestrator, request());
        let alone = OpenOptions::new().write(true).create_new(true).open(folder.join("held"));
        assert!(alone.is_ok(), "two hold nine tenths each: {:?}", book.entries());
        std::thread::sleep(Duration::from_millis(5));
        fs::remove_file(folder.join("held")).expect("it was there");
        drop(grant);
    }
    fs::write(folder.join("done"), "").expect("written");
}

fn write_for_ever(book: &Book) {
    let member = book.join();
    println!("ready");
    for round in 0.. {
        let written = member.change(|entries| {
            entries.retain(|entry| entry.member != *member.id());
            entries.push(Entry { allotted: Bytes(round), ..Entry::new(member.id().clone(), "memory") });
        });
        written.expect("written");
    }
}

fn hold_the_lock(book: &Book) {
    let member = book.join();
    let held = member.change(|_| {
        println!("ready");
        std::thread::sleep(PATIENCE);
    });
    held.expect("held");
}

/// Reads lines until the process says that it is ready.
fn wait_until_ready(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let said = lines.any(|line| line.is_ok_and(|line| line.contains("ready")));
    assert!(said, "the process ended before it was ready");
}

#[test]
fn processes_that_start_together_never_pass_the_line_together() {
    let (folder, book) = place();
    let children: Vec<Child> = (0..3).map(|_| start("takes turns", folder.path())).collect();
    for child in children {
        let ended = child.wait_with_output().expect("ended");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    }
    assert_eq!(book.entries().expect("read"), []);
}

#[test]
fn a_hundred_kills_leave_the_book_right() {
    let (folder, book) = place();
    let mut pause = 1_u64;
    for kill in 0..50 {
        let mut pair = [start("writes", folder.path()), start("writes", folder.path())];
        pair.iter_mut().for_each(wait_until_ready);
        pause = (pause * 48_271) % 2_147_483_647;
        std::thread::sleep(Duration::from_micros(pause % 3_000));
        for child in &mut pair {
            child.kill().expect("killed");
            child.wait().expect("gone");
        }
        assert_eq!(book.entries().expect("a whole book"), [], "kill {kill}");
    }
    let orchestrator = orchestrator(&book);
    let _held = orchestrator.lease(&[(CPU, MOST)]).expect("all that the dead had is there");
    let sockets = || {
        let files = fs::read_dir(book.folder()).expect("a folder").flatten();
        files.filter(|file| file.path().extension().is_some_and(|extension| extension == "wake")).count()
    };
    assert!(sockets() <= 3, "sockets of the dead are removed");
}

#[test]
fn a_killed_holder_gives_back_what_it_held() {
    let (folder, book) = place();
    let mut child = start("takes turns", folder.path());
    until("it holds", || folder.path().join("held").exists());
    let orchestrator = orchestrator(&book);
    child.kill().expect("killed");
    child.wait().expect("gone");
    drop(granted(&orchestrator, request()));
}

#[test]
fn a_stopped_process_that_holds_the_lock_holds_up_nobody_for_long() {
    let (folder, book) = place();
    let mut child = start("holds the lock", folder.path());
    wait_until_ready(&mut child);
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process");
    kill_process(pid, Signal::STOP).expect("stopped");
    let impatient = book.clone().with_lock_wait(Duration::from_millis(50));
    let orchestrator = orchestrator(&impatient);
    // Alone: it takes what is free, and does not wait for the lock.
    drop(granted(&orchestrator, request()));
    let busy = impatient.join().change(|_| ()).expect_err("locked");
    assert!(matches!(busy, BookError::Busy { .. }), "{busy}");
    assert!(book.entries().is_ok(), "looking needs no lock");
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert!(book.join().change(|_| ()).is_ok());
}

/// Work goes on, whatever became of the book.
fn works_alone(book: &Book) {
    let orchestrator = orchestrator(book);
    drop(granted(&orchestrator, request()));
}

#[test]
fn a_book_that_cannot_be_written_is_no_reason_to_stop() {
    let (folder, book) = place();
    fs::write(folder.path().join("file"), "no folder").expect("written");
    works_alone(&Book::at(folder.path().join("file/book")));
    works_alone(&Book::at(folder.path().join("file")));
    let target = folder.path().join("elsewhere");
    fs::create_dir(&target).expect("made");
    symlink(&target, folder.path().join("link")).expect("linked");
    works_alone(&Book::at(folder.path().join("link")));
    assert_eq!(fs::read_dir(&target).expect("a folder").count(), 0, "a link is not followed");
    // A full disk, where the book is whole and stays so.
    let member = book.join();
    member.change(|entries| entries.push(Entry::new(member.id().clone(), "memory"))).expect("written");
    let name = |file: &fs::DirEntry| file.file_name().to_string_lossy().into_owned();
    let files: Vec<String> = fs::read_dir(book.folder()).expect("a folder").flatten().map(|file| name(&file)).collect();
    let file = files.iter().find(|name| name.starts_with("book-")).expect("the book");
    symlink("/dev/full", book.folder().join(file).with_extension("new")).expect("linked");
    let more = Entry::new(member.id().clone(), "more");
    let full = member.change(|entries| entries.push(more)).expect_err("no room");
    assert!(matches!(full, BookError::Io { doing: "write", .. }), "{full}");
    assert_eq!(book.entries().expect("whole").len(), 1);
    works_alone(&book);
}

#[test]
fn garbage_is_a_book_begun_anew() {
    let (_folder, book) = place();
    let member = book.join();
    member.change(|entries| entries.push(Entry::new(member.id().clone(), "memory"))).expect("written");
    let files = fs::read_dir(book.folder()).expect("a folder").flatten();
    let path = files.map(|file| file.path()).find(|path| path.to_string_lossy().contains("book-1-")).expect("the book");
    for garbage in [&b"\xff\xfe\x00"[..], b"", b"plimsoll-book 1 0000000000000000\n[]", &vec![b'['; 2 << 20]] {
        fs::write(&path, garbage).expect("written");
        assert_eq!(book.entries().expect("no trouble"), []);
        let orchestrator = orchestrator(&book);
        let _held = granted(&orchestrator, request());
        assert!(allotted(&book) >= MOST, "it is in the new book");
    }
}

#[test]
fn a_thousand_dead_are_swept_and_a_full_book_is_said() {
    let (_folder, book) = place();
    let member = book.join();
    let dead = |number| MemberId { pid: u32::MAX, started: 1, number };
    let write = |entries: &mut Vec<Entry>, count: u64, id: &dyn Fn(u64) -> MemberId| {
        entries.extend((0..count).map(|number| Entry { allotted: MOST, ..Entry::new(id(number), "memory") }));
    };
    member.change(|entries| write(entries, 1_000, &dead)).expect("written");
    let orchestrator = orchestrator(&book);
    let held = granted(&orchestrator, request());
    assert_eq!(allotted(&book), book.entries().expect("read").iter().map(|entry| entry.allotted).sum());
    assert!(book.entries().expect("read").iter().all(|entry| entry.member.pid == std::process::id()));
    drop(held);
    let alive = |number| MemberId { number: number + 1_000_000, ..member.id().clone() };
    let full = member.change(|entries| write(entries, ENTRIES_MAX as u64 + 1, &alive)).expect_err("too many");
    assert!(matches!(full, BookError::Full { .. }), "{full}");
    assert!(book.entries().expect("read").len() < 10, "it stays as it was");
}
