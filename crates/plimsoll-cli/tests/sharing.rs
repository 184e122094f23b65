//! Several runs of `plimsoll score` on one device whose memory is not enough for all of them at once.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use plimsoll::Bytes;
use plimsoll::book::Book;
use serde_json::Value;

const LINE: Bytes = Bytes::mib(128);
/// So large that one of them needs more than half of the line.
const SIDE: u32 = 1128;
const VARIANTS: u32 = 3;

fn picture(path: &Path, noise: u32) -> PathBuf {
    let picture = image::RgbImage::from_fn(SIDE, SIDE, |x, y| {
        image::Rgb([x * 3, y * 2, x ^ y].map(|base| ((base % 200) + (x * 7 + y * 13) % (noise + 1)) as u8))
    });
    picture.save(path).expect("written");
    path.to_owned()
}

/// A software GPU is the processor: beside another test a run would take longer than the one behind it may wait.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Scores a reference and its variants on a software GPU with a small line.
fn score(folder: &Path, name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    for own in ["PLIMSOLL_ALONE", "PLIMSOLL_MEMORY_LIMIT", "PLIMSOLL_NO_GPU", "CLICOLOR_FORCE"] {
        command.env_remove(own);
    }
    command.env("PLIMSOLL_BOOK", folder.join("book")).env("PLIMSOLL_PROFILE", folder.join(format!("{name}.toml")));
    command.args(["score", "--software-gpu", "--device", "gpu:0", "--memory-limit", "gpu0=128MiB"]);
    command.args(["-m", "ssim2", "--json", "--verbose"]).arg(folder.join("reference.png"));
    command.args((0..VARIANTS).map(|number| folder.join(format!("{number}.png"))));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn rows(child: Child) -> Vec<Value> {
    let output = child.wait_with_output().expect("ended");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("warning"), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn two_runs_that_do_not_fit_together_both_finish_on_their_best_rung() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    picture(&folder.path().join("reference.png"), 0);
    (0..VARIANTS).for_each(|number| drop(picture(&folder.path().join(format!("{number}.png")), number + 5)));
    let right = rows(score(folder.path(), "alone").spawn().expect("started"));
    let mut both: Vec<Option<Child>> =
        ["first", "second"].map(|name| Some(score(folder.path(), name).spawn().expect("started"))).into();
    let book = Book::at(folder.path().join("book"));
    let (mut looks, mut wanted, mut holders) = (0, 0, std::collections::BTreeSet::new());
    let is_under_way =
        |child: &mut Option<Child>| child.as_mut().is_some_and(|child| child.try_wait().expect("ours").is_none());
    while both.iter_mut().any(is_under_way) {
        let entries = book.entries().expect("it can be read at any time");
        let gpu = || entries.iter().filter(|entry| entry.limit.is_some());
        let together: Bytes = gpu().map(|entry| entry.allotted).sum();
        assert!(together <= LINE, "{together} of {LINE} are allotted: {entries:?}");
        looks += 1;
        wanted += gpu().filter(|entry| entry.wanted.is_some()).count();
        holders.extend(gpu().filter(|entry| entry.allotted > Bytes::mib(64)).map(|entry| entry.member.pid));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    for child in both.into_iter().flatten() {
        let rows = rows(child);
        assert_eq!(rows.len(), right.len());
        for (row, right) in rows.iter().zip(&right) {
            assert_eq!((&row["ssim2_rung"], &row["ssim2_device"]), (&"gpu-full".into(), &"gpu0".into()), "{row}");
            assert_eq!(row["ssim2"], right["ssim2"], "the same answer: {row}");
            let promised = Bytes(row["ssim2_bytes_promised"].as_u64().expect("bytes"));
            assert!(promised > Bytes::mib(64) && promised < LINE, "{promised}: two of them do not fit");
        }
    }
    assert_eq!(holders.len(), 2, "both had most of it at some time, in {looks} looks");
    assert!(wanted > 0, "and one waited for the other, in {looks} looks");
    assert_eq!(book.entries().expect("read"), [], "nothing is left of them");
}

#[test]
fn a_book_that_cannot_be_used_is_a_warning_and_nothing_more() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("book"), "no folder").expect("written");
    let small = image::RgbImage::from_pixel(32, 32, image::Rgb([9, 9, 9]));
    let path = folder.path().join("small.png");
    small.save(&path).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.env("PLIMSOLL_BOOK", folder.path().join("book")).env("PLIMSOLL_PROFILE", folder.path().join("p.toml"));
    command.env_remove("PLIMSOLL_ALONE").args(["score", "--no-gpu", "-m", "psnr"]).args([&path, &path]);
    let output = command.output().expect("started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("warning:").count(), 1, "said once: {said}");
    assert!(said.contains("PLIMSOLL_BOOK") && said.contains("does not share memory"), "{said}");
    let output = command.env("PLIMSOLL_ALONE", "1").output().expect("started");
    assert!(output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("warning"), "nobody asked");
}

/// What the software GPU is called in the book: it is there while a run is.
fn name_in_book(folder: &Path) -> String {
    let mut child = score(folder, "name").spawn().expect("started");
    let book = Book::at(folder.join("book"));
    let mut name = None;
    while name.is_none() && child.try_wait().expect("ours").is_none() {
        name = book.entries().expect("read").into_iter().find(|entry| entry.limit.is_some()).map(|entry| entry.device);
    }
    child.wait().expect("ours");
    name.expect("it was in the book")
}

/// A daemon that shares the same GPU, of which all together may use as much as the runs may.
fn daemon(folder: &Path, device: &str) -> Child {
    let script = format!("[[devices]]\nname = 'gpu0'\ncapacity = '1GiB'\nby_process = false\nin_book = '{device}'\n");
    fs::write(folder.join("truth.toml"), script).expect("written");
    fs::write(folder.join("serve.toml"), "margin = 1.0\nreserve = '896MiB'\ndiscover = false\n").expect("written");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    serve.args(["serve", "--http", "off", "--config", "serve.toml", "--truth", "truth.toml", "--socket", "run/s"]);
    serve.env("PLIMSOLL_BOOK", folder.join("book")).env_remove("PLIMSOLL_ALONE").stderr(Stdio::null());
    serve.current_dir(folder).spawn().expect("started")
}

#[test]
fn two_runs_and_a_lease_of_the_daemon_stay_below_one_line() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    picture(&at.join("reference.png"), 0);
    (0..VARIANTS).for_each(|number| drop(picture(&at.join(format!("{number}.png")), number + 5)));
    let mut serving = daemon(at, &name_in_book(at));
    let connect = || plimsoll_daemon::client::Client::connect(&at.join("run/s"));
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while connect().is_err() {
        assert!(std::time::Instant::now() < end, "the daemon did not come");
    }
    let mut lease = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    lease.args(["run", "--vram", "60MiB", "--name", "leased", "--socket", "run/s", "--", "sleep", "2"]);
    let lease = lease.current_dir(at).spawn().expect("started");
    let runs = ["first", "second"].map(|name| score(at, name).spawn().expect("started"));
    let mut all: Vec<Child> = [lease].into_iter().chain(runs).collect();
    let book = Book::at(at.join("book"));
    let (mut members, mut was_leased, mut client) =
        (std::collections::BTreeSet::new(), false, connect().expect("it serves"));
    while all.iter_mut().any(|child| child.try_wait().expect("ours").is_none()) {
        let entries = book.entries().expect("it can be read at any time");
        let together: Bytes = entries.iter().filter(|entry| entry.limit.is_some()).map(|entry| entry.allotted).sum();
        assert!(together <= LINE, "{together} of {LINE} are allotted: {entries:?}");
        let state = client.state().expect("it serves");
        assert!(state.devices[0].promised <= LINE.0, "{:?}", state.devices);
        was_leased |= state.holders.iter().any(|holder| holder.name == "leased");
        members.extend(
            state.holders.iter().filter(|holder| holder.name == "plimsoll score").filter_map(|holder| holder.pid),
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pids: Vec<u32> = all.iter().skip(1).map(Child::id).collect();
    assert!(was_leased && pids.iter().all(|pid| members.contains(pid)), "{pids:?} were seen: {members:?}");
    let mut ended = all.into_iter();
    assert!(ended.next().expect("the lease").wait().expect("ours").success());
    for run in ended {
        for row in rows(run) {
            assert_eq!(row["ssim2_rung"], "gpu-full", "no fallback by a collision: {row}");
        }
    }
    serving.kill().expect("ours");
    serving.wait().expect("ours");
}
