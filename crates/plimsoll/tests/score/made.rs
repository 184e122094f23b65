//! Files made for a test, and a sweep over them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll::score::{Pair, Scored, Sweep, SweepOptions};
use plimsoll::{Bytes, Device, Orchestrator};
use plimsoll_runtime::cpu::CpuDevice;
use tempfile::TempDir;

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.at(name), bytes).expect("written");
        self.at(name)
    }

    /// A pixmap; a larger `noise` is further from the same picture without.
    pub(crate) fn picture(&self, name: &str, (width, height): (u32, u32), noise: u32) -> PathBuf {
        self.write(name, &pixmap((width, height), noise))
    }
}

/// The bytes of a PPM file.
pub(crate) fn pixmap((width, height): (u32, u32), noise: u32) -> Vec<u8> {
    let mut bytes = format!("P6\n{width} {height}\n255\n").into_bytes();
    let mut dice = 0x9e37_79b9_u32;
    for at in 0..width * height * 3 {
        dice ^= dice << 13;
        dice ^= dice >> 17;
        dice ^= dice << 5;
        bytes.push(((at / 3 % width + at / width) % 200 + (dice >> 8) % (noise + 1)) as u8);
    }
    bytes
}

/// An orchestrator of two cores with so much memory.
pub(crate) fn cores(memory: Bytes) -> Arc<Orchestrator> {
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(2).memory_limit(memory).build());
    Arc::new(Orchestrator::builder().devices([cpu]).build())
}

/// Scores variants of one reference; what came of each, in their order.
pub(crate) fn scored(
    orchestrator: &Arc<Orchestrator>,
    options: SweepOptions,
    reference: &Path,
    variants: &[PathBuf],
) -> Vec<Scored> {
    let pair = |distorted: &PathBuf| Pair { reference: reference.to_owned(), distorted: distorted.clone() };
    let pairs: Vec<Pair> = variants.iter().map(pair).collect();
    let mut all: Vec<Scored> = Sweep::new(Arc::clone(orchestrator), options).stream(pairs).collect();
    all.sort_by_key(|scored| scored.at);
    all
}
