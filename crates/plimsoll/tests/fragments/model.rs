//! A model to test with: packed, in a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll::Bytes;
use plimsoll::Orchestrator;
use plimsoll::fragments::{FragmentsWatch, PackSpec, Server, Store, StoreLimits, StoreOptions, pack_file};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use tempfile::TempDir;

use crate::weights::Kind;

pub(crate) struct Packed {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
    /// Name and weights of each tensor.
    pub(crate) tensors: Vec<(&'static str, Vec<f32>)>,
}

fn safetensors(tensors: &[(&'static str, Vec<f32>)]) -> Vec<u8> {
    let (mut end, mut entries) = (0, Vec::new());
    for (name, weights) in tensors {
        let begin = end;
        end += 4 * weights.len();
        entries.push(format!(
            "{name:?}:{{\"dtype\":\"F32\",\"shape\":[{}],\"data_offsets\":[{begin},{end}]}}",
            weights.len()
        ));
    }
    let header = format!("{{{}}}", entries.join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    tensors.iter().for_each(|(_, weights)| file.extend(weights.iter().flat_map(|x| x.to_le_bytes())));
    file
}

/// Three tensors that are quantised, of 100,001 weights and less, and one that is not.
pub(crate) fn packed(orchestrator: &Orchestrator) -> Packed {
    let folder = tempfile::tempdir().unwrap();
    let tensors = vec![
        ("gaussian", Kind::Gaussian.weights(100_001, 1)),
        ("tails", Kind::HeavyTails.weights(65_536, 2)),
        ("outliers", Kind::OutlierChannels.weights(40_000, 3)),
        ("small", Kind::Gaussian.weights(100, 4)),
    ];
    let (input, path) = (folder.path().join("model.safetensors"), folder.path().join("model.frags"));
    fs::write(&input, safetensors(&tensors)).unwrap();
    pack_file(orchestrator, &input, &path, &PackSpec::default(), false, &FragmentsWatch::default()).unwrap();
    Packed { folder, path, tensors }
}

pub(crate) fn store(orchestrator: &Orchestrator, packed: &Packed, memory: Bytes) -> Store {
    let disk = StoreLimits { bytes: None, reserve: 0 };
    let options = StoreOptions { folder: Some(packed.folder.path().join("store")), disk, memory: Some(memory) };
    Store::open(orchestrator, &options).unwrap()
}

/// A server, until it is dropped.
pub(crate) struct Serving {
    pub(crate) url: String,
    pub(crate) served: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Serving {
    pub(crate) fn of(packed: &Packed) -> Self {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), &[&packed.path]).unwrap();
        let url = format!("http://{}/model.frags", server.address().unwrap());
        let (served, is_over) = (server.served(), Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || server.run(|| over.load(Ordering::Relaxed)).unwrap());
        Self { url, served, is_over, thread: Some(thread) }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}
