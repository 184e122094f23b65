//! `plimsoll score` beside a program that holds most of the machine's memory, and takes and gives back the rest again and
//! again.
//! Not among the usual tests: whatever else runs on the machine would feel it. `cargo xtask campaign memory-hog`

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

/// Of what is available, so much is left to everybody else.
const LEFT_MIB: u64 = 700;
/// Of what is taken, so much comes and goes.
const COMES_AND_GOES_MIB: u64 = 1_500;
const METRICS: &str = "ssim2,butteraugli,dssim,psnr";
/// How often each variant is scored: long enough for the hog to come and go several times.
const COPIES: usize = 50;

/// Holds nearly all memory, and takes most of the rest for two seconds, frees it for one, and so on until it ends. A virtual
/// machine gives new memory so slowly that all of it would not come and go more than once in a sweep.
struct Hog {
    _held: Vec<u8>,
    ends: Arc<AtomicBool>,
    takes: Option<JoinHandle<u32>>,
}

impl Hog {
    fn of(mib: u64) -> Self {
        let held = taken(mib.checked_sub(COMES_AND_GOES_MIB).expect("a machine with more memory than that"));
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let takes = std::thread::spawn(move || {
            let mut times = 0;
            while !ended.load(Ordering::Relaxed) {
                let memory = taken(COMES_AND_GOES_MIB);
                std::thread::sleep(Duration::from_secs(2));
                drop(std::hint::black_box(memory));
                times += 1;
                std::thread::sleep(Duration::from_secs(1));
            }
            times
        });
        Self { _held: held, ends, takes: Some(takes) }
    }

    /// Says how often it took them.
    fn end(mut self) -> u32 {
        self.ends.store(true, Ordering::Relaxed);
        self.takes.take().map_or(0, |takes| takes.join().expect("it ended"))
    }
}

/// Written to, so that it is really taken.
fn taken(mib: u64) -> Vec<u8> {
    vec![1_u8; (mib << 20) as usize]
}

fn available_mib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("Linux has it");
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).expect("it says what is available");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// The scores of every copy of the sample images, by name; and how little memory was available meanwhile.
fn scores(folder: &Path, profile: &str) -> (BTreeMap<String, [Option<f64>; 4]>, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.env("PLIMSOLL_PROFILE", folder.join(profile)).args(["score", "--no-gpu", "-m", METRICS, "--json"]);
    command.arg(folder.join("harbour.png")).args(files_in(&folder.join("v")));
    let child = command.stdout(Stdio::piped()).spawn().expect("started");
    let reader = std::thread::spawn(move || child.wait_with_output().expect("ended"));
    let mut least = u64::MAX;
    while !reader.is_finished() {
        least = least.min(available_mib());
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = reader.join().expect("read");
    assert!(output.status.success(), "{:?}", output.status);
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("rows");
    let score = |row: &Value, metric: &str| row[metric].as_f64();
    let of_row = |row: &Value| {
        let name = row["distorted"].as_str().expect("its name").to_owned();
        (name, ["ssim2", "butteraugli", "dssim", "psnr"].map(|metric| score(row, metric)))
    };
    (rows.iter().map(of_row).collect(), least)
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).expect("a folder");
    listed.map(|entry| entry.expect("readable").path()).collect()
}

fn copies_of_the_samples(folder: &Path) -> usize {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    fs::copy(samples.join("harbour.png"), folder.join("harbour.png")).expect("copied");
    fs::create_dir(folder.join("v")).expect("made");
    let variants = files_in(&samples.join("variants"));
    for copy in 0..COPIES {
        for variant in &variants {
            let name = format!("{copy:02}-{}", variant.file_name().expect("a file").to_string_lossy());
            fs::copy(variant, folder.join("v").join(name)).expect("copied");
        }
    }
    variants.len() * COPIES
}

#[test]
#[ignore = "takes most of the machine's memory: cargo xtask campaign memory-hog"]
fn every_image_is_scored_beside_a_hog_that_comes_and_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = copies_of_the_samples(folder.path());
    let (quiet, _) = scores(folder.path(), "quiet.toml");
    assert_eq!(quiet.len(), count);
    assert!(quiet.values().flatten().all(Option::is_some));
    let before = available_mib();
    let hog = Hog::of(before.checked_sub(LEFT_MIB).expect("a machine with more memory than that"));
    let (beside, least) = scores(folder.path(), "beside.toml");
    let times = hog.end();
    println!("{before} MiB were available before, {least} MiB at the least; taken {times} times");
    assert!(times >= 3, "the sweep was over too soon");
    assert!(least < before / 10, "the hog took too little: {least} of {before} MiB were left");
    assert_eq!(beside, quiet);
}
