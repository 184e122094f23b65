//! Who writes: we, and the peers through `peers.py`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::rows::Row;

/// What a side is asked to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) row: Row,
    /// The elements of one array.
    pub(crate) input: PathBuf,
    pub(crate) output: PathBuf,
}

/// What it took.
#[derive(Copy, Clone, Debug, Deserialize)]
pub(crate) struct Figures {
    pub(crate) seconds: f64,
    pub(crate) cpu: f64,
    /// The longest append.
    pub(crate) stall: f64,
    /// Bytes that it took at most while it wrote, and what was said before: of our side.
    #[serde(default)]
    pub(crate) peak: u64,
    #[serde(default)]
    pub(crate) plan: u64,
    #[serde(skip)]
    pub(crate) gib: f64,
}

/// Who does it.
pub(crate) const OURS: &str = "plimsoll";

/// The sides that can do a row.
pub(crate) fn of(row: &Row) -> Vec<&'static str> {
    // acquire-zarr has no plain zstd and no gzip; the others make no levels.
    let acquires = matches!(row.codec.as_str(), "none" | "blosc-lz4");
    let plain = !row.has_levels && row.arrays == 1 && row.append.is_none();
    let peers = [("acquire", acquires), ("tensorstore", plain), ("zarrs", plain)];
    [(OURS, true)].into_iter().chain(peers).filter(|(_, can)| *can).map(|(side, _)| side).collect()
}

/// Lets a side write, and has the result checked the first time.
pub(crate) fn run(side: &str, row: &Row, mib: u64, folder: &Path, is_first: bool) -> Figures {
    let (input, bytes) = elements(row, mib, folder);
    let output = folder.join("out");
    let _ = std::fs::remove_dir_all(&output);
    std::fs::create_dir_all(&output).expect("a folder");
    let asked = serde_json::to_string(&Asked { row: row.clone(), input, output }).expect("JSON");
    let mut command = match side {
        OURS => {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.arg("ours");
            command
        }
        _ => python(&[side]),
    };
    let figures = answered(command.arg(&asked));
    if is_first {
        let said = python(&["check"]).arg(&asked).status().expect("python");
        assert!(said.success(), "{side} wrote something else: {}", row.name());
    }
    let gib = (bytes * row.arrays as u64) as f64 / f64::from(1 << 30);
    Figures { gib, ..figures }
}

/// The better of two runs, by processor time.
pub(crate) fn keep_best(best: &mut Vec<(&'static str, Figures)>, side: &'static str, figures: Figures) {
    match best.iter_mut().find(|(other, _)| *other == side) {
        Some((_, before)) if before.seconds <= figures.seconds => {}
        Some((_, before)) => *before = figures,
        None => best.push((side, figures)),
    }
}

fn answered(command: &mut Command) -> Figures {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("figures")
}

fn python(words: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = root.join("../../target/python/bin/python");
    let python = std::env::var_os("PLIMSOLL_PYTHON").map_or(own, PathBuf::from);
    let mut command = Command::new(python);
    command.arg(root.join("benches/array/peers.py")).args(words);
    command
}

/// Elements like a detector's: smooth, with noise in the lowest bits. Made once for a type and size.
fn elements(row: &Row, mib: u64, folder: &Path) -> (PathBuf, u64) {
    let name: String = row.step.iter().map(|size| format!("-{size}")).collect();
    let path = folder.join(format!("{}{name}.raw", row.data_type));
    let width: u64 =
        row.data_type.trim_start_matches(|letter: char| letter.is_alphabetic()).parse::<u64>().expect("bits") / 8;
    let step = row.step.iter().product::<u64>() * width;
    // Whole shards, so that nobody pays for a ragged end.
    let shard = step * row.shard[0];
    let bytes = ((mib << 20) / shard).max(1) * shard;
    if !path.exists() {
        let made = python(&["make", &row.data_type, &(bytes / width).to_string()]).arg(&path).status().expect("python");
        assert!(made.success(), "elements of {}", row.data_type);
    }
    (path, bytes)
}
