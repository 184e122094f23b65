//! Two processes on one GPU (lavapipe) whose line is not enough for both at once: the book keeps them below it, and neither
//! steps down because of the other.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::{Bytes, DeviceId};
use plimsoll_runtime::book::{Book, Listed, Place};
use plimsoll_runtime::probe::workloads::{BlurInput, BlurWork, GPU_FULL};
use plimsoll_runtime::{Device, Orchestrator, Task};
use plimsoll_wgpu::OpenOptions;

const LINE: Bytes = Bytes::mib(128);
/// 3620 x 3620: 100 MiB on the full rung.
const SIDE: usize = 3620;
const TASKS: usize = 4;

/// Set for a process that this test starts of itself: where the book is.
const FOLDER: &str = "PLIMSOLL_TEST_BOOK_FOLDER";

fn gpu(book: &Book) -> Arc<dyn Device> {
    let found = plimsoll_wgpu::discover();
    let card = found.first().expect("a Vulkan device: install mesa-vulkan-drivers");
    let device = card.open(&OpenOptions::default().with_memory_limit(LINE)).expect("it opens").remove(0);
    Arc::new(Listed::new(device, Place { book: book.clone(), device: "card".into() }))
}

/// Blurs images of one colour, which stay as they were: a wrong pixel is seen at once.
fn blur(book: &Book) {
    let orchestrator = Orchestrator::builder().device(gpu(book)).build();
    let blur = orchestrator.register(BlurWork);
    let colour = |at: usize| (at + 1) as f32 / 8.0;
    let input =
        |at: usize| BlurInput::new(SIDE, SIDE, 1, vec![colour(at); SIDE * SIDE]).expect("a blur like any other");
    let tasks = (0..TASKS).map(|at| Task::new(input(at)));
    for (at, result) in orchestrator.run_all(&blur, tasks).ordered().enumerate() {
        let done = result.expect("no task fails");
        assert_eq!((done.report.rung, done.report.device), (GPU_FULL, DeviceId(0)), "task {at} stepped down");
        assert!(done.report.bytes_predicted > Bytes::mib(64), "two of them do not fit");
        let middle = SIDE / 2 * SIDE + SIDE / 2;
        assert!((done.output[middle] - colour(at)).abs() < 1e-4, "task {at}: {}", done.output[middle]);
        assert!(done.output.iter().all(|value| value.is_finite()), "task {at}: something was never written");
    }
}

fn start(folder: &Path) -> Child {
    let mut command = Command::new(env::current_exe().expect("this test"));
    command.args(["--exact", "two_processes_share_a_gpu_and_neither_steps_down", "--nocapture"]).env(FOLDER, folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
}

#[test]
fn two_processes_share_a_gpu_and_neither_steps_down() {
    if let Some(folder) = env::var_os(FOLDER) {
        return blur(&Book::at(PathBuf::from(folder)));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let book = Book::at(folder.path().join("book"));
    let mut children = [start(book.folder()), start(book.folder())];
    let (mut looks, mut wants, mut holders) = (0, 0, BTreeSet::new());
    while children.iter_mut().any(|child| child.try_wait().expect("ours").is_none()) {
        let entries = book.entries().expect("it can be read at any time");
        let together: Bytes = entries.iter().map(|entry| entry.allotted).sum();
        assert!(together <= LINE, "{together} of {LINE} are allotted: {entries:?}");
        looks += 1;
        wants += entries.iter().filter(|entry| entry.wanted.is_some()).count();
        holders.extend(entries.iter().filter(|entry| entry.allotted > Bytes::mib(64)).map(|entry| entry.member.pid));
        std::thread::sleep(Duration::from_millis(1));
    }
    for child in children {
        let ended = child.wait_with_output().expect("ended");
        let said = [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(ended.status.success(), "{said}");
    }
    assert_eq!(holders.len(), 2, "both had most of it at some time, in {looks} looks");
    assert!(wants > 0, "and one waited for the other, in {looks} looks");
    assert_eq!(book.entries().expect("read"), [], "nothing is left of them");
}
