//! Who writes: we, and the peers through `peers.py`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::rows::{self, Row};

/// What a side is asked to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) row: Row,
    /// The elements of one array: so many bytes of this file.
    pub(crate) input: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) output: PathBuf,
}

/// What it took.
#[derive(Copy, Clone, Debug, Deserialize)]
pub(crate) struct Figures {
    pub(crate) seconds: f64,
    pub(crate) cpu: f64,
    /// The longest append.
    pub(crate) stall: f64,
    /// Bytes of memory that it took at most while it wrote, beside the elements.
    pub(crate) peak: u64,
    /// What was said before that it takes: of our side.
    #[serde(default)]
    pub(crate) plan: u64,
    #[serde(skip)]
    pub(crate) gib: f64,
}

/// Who does it.
pub(crate) const OURS: &str = "plimsoll";

/// The peers.
pub(crate) const PEERS: [&str; 3] = ["acquire", "tensorstore", "zarrs"];

/// The sides that can do a row.
pub(crate) fn of(row: &Row) -> Vec<&'static str> {
    // acquire-zarr has no plain zstd and no gzip; the others take whole shards, and zarrs makes no levels.
    let acquires = matches!(row.codec.as_str(), "none" | "blosc-lz4");
    let has_whole_shards = row.append.is_none();
    let can = [acquires, has_whole_shards, has_whole_shards && !row.has_levels];
    [OURS].into_iter().chain(PEERS.into_iter().zip(can).filter(|(_, can)| *can).map(|(side, _)| side)).collect()
}

/// Lets a side write. Says what it was asked to do, and what that took.
pub(crate) fn run(side: &str, row: &Row, mib: u64, folder: &Path) -> (String, Figures) {
    let (input, bytes, output) = (elements(row, mib, folder), rows::bytes(row, mib), folder.join("out"));
    let _ = std::fs::remove_dir_all(&output);
    std::fs::create_dir_all(&output).expect("a folder");
    let asked = serde_json::to_string(&Asked { row: row.clone(), input, bytes, output }).expect("JSON");
    let mut command = match side {
        OURS => {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.arg("ours");
            command
        }
        _ => python(&[side]),
    };
    let figures = answered(command.arg(&asked));
    let gib = (bytes * row.arrays as u64) as f64 / f64::from(1 << 30);
    (asked, Figures { gib, ..figures })
}

/// The better of two runs, by wall time.
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

/// An error that says what to do, unless the peers' packages are there.
pub(crate) fn ready() -> Result<(), String> {
    let asked = python(&["ready"]).output().map_err(|error| error.to_string());
    let why = match asked {
        Ok(output) if output.status.success() => return Ok(()),
        // The last line of what Python says is the reason.
        Ok(output) => String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it failed").to_owned(),
        Err(error) => error,
    };
    Err(format!(
        "no Python with the peers' packages at {} ({why}); `cargo xtask python` makes it",
        interpreter().display()
    ))
}

/// That of the tests: `cargo xtask` makes it.
fn interpreter() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    let own = root.join("target/python/bin/python");
    std::env::var_os("PLIMSOLL_PYTHON").map_or(own, PathBuf::from)
}

pub(crate) fn python(words: &[&str]) -> Command {
    let mut command = Command::new(interpreter());
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/array/peers.py")).args(words);
    command
}

/// Elements like a detector's: smooth, with noise in the lowest bits. Made once for a type, for the largest of its rows.
fn elements(row: &Row, mib: u64, folder: &Path) -> PathBuf {
    let path = folder.join(format!("{}.raw", row.data_type));
    if !path.exists() {
        let of_type = rows::all().into_iter().filter(|other| other.data_type == row.data_type);
        let bytes = of_type.map(|other| rows::bytes(&other, mib)).max().unwrap_or(0);
        let count = (bytes / row.element()).to_string();
        let made = python(&["make", &row.data_type, &count]).arg(&path).status().expect("python");
        assert!(made.success(), "elements of {}", row.data_type);
    }
    path
}
