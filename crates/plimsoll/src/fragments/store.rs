//! The tiers below devices: memory, disk, a server behind it. One for all holders of a process; the disk for all processes.
//! Never holds a device's bytes: that is [`super::Holder`].
//! Invariant: bytes are checked whenever they move. What is damaged in one tier is taken from the one below it.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use plimsoll_core::Bytes;
use plimsoll_fragments::file::{FragmentFile, Model};
use plimsoll_fragments::http::{Origin, PullWatch, Pulled, pull, pull_index};
use plimsoll_fragments::index::Fragment;
use plimsoll_fragments::restore::Fragments;
use plimsoll_fragments::store::{DiskStore, StoreLimits};
use plimsoll_fragments::{Digest, FragmentError};
use plimsoll_runtime::Orchestrator;

use super::ram::RamTier;

/// What a byte costs to bring back into memory, from disk and over a network: only their ratio counts.
const COST_DISK: f64 = 1.0;
/// As a line of 1 Gbit/s beside an NVMe disk.
const COST_SERVER: f64 = 20.0;
/// The part of free memory that the tier in memory takes if nobody says.
const RAM_SHARE: u64 = 4;

/// How large the tiers are.
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// The folder of the disk tier; one below the user's cache folder if `None`.
    pub folder: Option<PathBuf>,
    /// What the disk tier may hold.
    pub disk: StoreLimits,
    /// What the tier in memory may hold; a quarter of the memory that is free for us if `None`.
    pub memory: Option<Bytes>,
}

/// Fragments in memory and on disk, shared by all holders.
#[derive(Clone)]
pub struct Store(Arc<Tiers>);

struct Tiers {
    disk: DiskStore,
    ram: Mutex<RamTier>,
    /// Fragments that somebody is bringing into memory: others wait for him.
    under_way: Mutex<HashSet<Digest>>,
    came: Condvar,
    fetched: AtomicU64,
    read: AtomicU64,
}

/// What moved and what is held, in bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierBytes {
    /// Held in memory.
    pub in_memory: u64,
    /// That memory may hold.
    pub memory: u64,
    /// Read from disk so far.
    pub read: u64,
    /// Fetched from servers so far.
    pub fetched: u64,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("folder", &self.0.disk.root()).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Opens the tiers. Without a size the tier in memory gets a quarter of what is free under the CPU's line.
    ///
    /// # Errors
    /// If the folder cannot be made, or none is known.
    pub fn open(orchestrator: &Orchestrator, options: &StoreOptions) -> Result<Self, FragmentError> {
        let folder = options.folder.clone().or_else(DiskStore::default_folder);
        let none = || FragmentError::Malformed {
            what: "the environment".to_owned(),
            wanted: "one with a cache folder",
            why: "there is no home; name a folder for the store".to_owned(),
        };
        let disk = DiskStore::open(&folder.ok_or_else(none)?, options.disk)?;
        let line = orchestrator.reports().first().map_or(0, |cpu| cpu.line.0.saturating_sub(cpu.promised.0));
        let memory = options.memory.map_or(line / RAM_SHARE, |bytes| bytes.0);
        Ok(Self(Arc::new(Tiers {
            disk,
            ram: Mutex::new(RamTier::new(memory)),
            under_way: Mutex::default(),
            came: Condvar::new(),
            fetched: AtomicU64::new(0),
            read: AtomicU64::new(0),
        })))
    }

    /// The tier on disk.
    pub fn disk(&self) -> &DiskStore {
        &self.0.disk
    }

    /// What moved and what is held.
    pub fn bytes(&self) -> TierBytes {
        let ram = locked(&self.0.ram);
        TierBytes {
            in_memory: ram.held(),
            memory: ram.capacity(),
            read: self.0.read.load(Ordering::Relaxed),
            fetched: self.0.fetched.load(Ordering::Relaxed),
        }
    }

    /// A model in a file: the file is its tier on disk.
    ///
    /// # Errors
    /// If it is none.
    pub fn open_file(&self, path: &Path) -> Result<StoredModel, FragmentError> {
        let file = FragmentFile::open(path)?;
        let model = Arc::clone(file.model());
        Ok(StoredModel { store: self.clone(), model, below: Below::File(Arc::new(file)), pins: Arc::default() })
    }

    /// A model behind a URL. If nobody answers, it is the model that was there last time, as far as it is on disk.
    ///
    /// # Errors
    /// If nobody answers and it was never there.
    pub fn open_url(&self, address: &str) -> Result<StoredModel, FragmentError> {
        let opened = Origin::open(address).and_then(|origin| {
            let model = pull_index(&self.0.disk, &origin, &PullWatch::default())?;
            Ok((model, Some(Arc::new(origin))))
        });
        let (model, origin) = match opened {
            Ok(opened) => opened,
            Err(error) => match self.0.disk.recall(address)? {
                Some(model) => (model, None),
                None => return Err(error),
            },
        };
        Ok(StoredModel { store: self.clone(), model, below: Below::Disk(origin), pins: Arc::default() })
    }
}

/// What lies below memory for one model.
#[derive(Clone)]
enum Below {
    File(Arc<FragmentFile>),
    /// The store's disk, and the server, if it answered.
    Disk(Option<Arc<Origin>>),
}

/// A model whose fragments are where they are needed. Cheap to clone.
#[derive(Clone)]
pub struct StoredModel {
    store: Store,
    model: Arc<Model>,
    below: Below,
    pins: Arc<Mutex<Vec<Fragment>>>,
}

impl fmt::Debug for StoredModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredModel").field("model", &self.model.name).finish_non_exhaustive()
    }
}

impl StoredModel {
    /// What is in it.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Whether its server answered when it was opened.
    pub fn has_server(&self) -> bool {
        matches!(self.below, Below::Disk(Some(_)))
    }

    /// Fetches what a quality needs onto the disk.
    ///
    /// # Errors
    /// If it cannot be had; what came stays.
    pub fn pull(&self, quality: f64, watch: &PullWatch) -> Result<Pulled, FragmentError> {
        let fragments = self.model.index.fragments_for(quality);
        match &self.below {
            Below::Disk(Some(origin)) => {
                let pulled = pull(&self.store.0.disk, origin, &fragments, watch)?;
                self.store.0.fetched.fetch_add(pulled.fetched, Ordering::Relaxed);
                Ok(pulled)
            }
            _ => {
                let bytes = fragments.iter().map(|fragment| fragment.bytes).sum();
                Ok(Pulled { fragments: fragments.len() as u64, bytes, fetched: 0 })
            }
        }
    }

    /// The bytes of a fragment, from the nearest tier that has it. If a tier has it damaged, the next one is asked.
    ///
    /// # Errors
    /// If no tier has it whole.
    pub fn fragment(&self, fragment: &Fragment) -> Result<Arc<Vec<u8>>, FragmentError> {
        let tiers = &*self.store.0;
        let damaged = match self.in_memory(fragment) {
            Ok(Some(bytes)) => {
                self.placed(fragment, &bytes);
                return Ok(bytes);
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        let mut under_way = locked(&tiers.under_way);
        while !under_way.insert(fragment.digest) {
            under_way = tiers.came.wait(under_way).unwrap_or_else(PoisonError::into_inner);
            if let Ok(Some(bytes)) = self.in_memory(fragment) {
                return Ok(bytes);
            }
        }
        drop(under_way);
        let _mine = UnderWay(tiers, fragment.digest);
        // Somebody may have brought it between our look and our turn.
        if let Ok(Some(bytes)) = self.in_memory(fragment) {
            self.placed(fragment, &bytes);
            return Ok(bytes);
        }
        let bytes = Arc::new(self.read_below(fragment).map_err(|error| damaged.unwrap_or(error))?);
        tiers.read.fetch_add(fragment.bytes, Ordering::Relaxed);
        self.placed(fragment, &bytes);
        Ok(bytes)
    }

    /// The bytes of a fragment as they lie in memory, for whoever checks them himself while he copies them: they are read
    /// once. If they are damaged, [`StoredModel::fragment`] has them from the tier below.
    pub(super) fn lying_in_memory(&self, fragment: &Fragment) -> Option<Arc<Vec<u8>>> {
        let bytes = locked(&self.store.0.ram).get(fragment)?;
        self.placed(fragment, &bytes);
        Some(bytes)
    }

    /// The bytes of a fragment in memory, checked. Damaged ones go.
    fn in_memory(&self, fragment: &Fragment) -> Result<Option<Arc<Vec<u8>>>, FragmentError> {
        let found = locked(&self.store.0.ram).get(fragment);
        let Some(bytes) = found else { return Ok(None) };
        let checked = fragment.checksum.check(&bytes, || format!("fragment {} in memory", fragment.digest));
        checked.inspect_err(|_| locked(&self.store.0.ram).forget(fragment))?;
        Ok(Some(bytes))
    }

    /// From disk, or from the server onto the disk and from there.
    fn read_below(&self, fragment: &Fragment) -> Result<Vec<u8>, FragmentError> {
        let disk = &self.store.0.disk;
        let origin = match &self.below {
            Below::File(file) => return file.read(fragment),
            Below::Disk(origin) => origin,
        };
        let missing = match (disk.read(fragment), origin) {
            (Ok(Some(bytes)), _) => return Ok(bytes),
            (Err(error), None) => return Err(error),
            (Ok(None), None) => {
                let why = "it is not in the store, and its server does not answer".to_owned();
                return Err(FragmentError::Server { url: self.model.name.clone(), why });
            }
            (_, Some(origin)) => origin,
        };
        let pulled = pull(disk, missing, &[*fragment], &PullWatch::default())?;
        self.store.0.fetched.fetch_add(pulled.fetched, Ordering::Relaxed);
        let gone =
            || FragmentError::Server { url: self.model.name.clone(), why: "what came went away again".to_owned() };
        disk.read(fragment)?.ok_or_else(gone)
    }

    /// It was used: memory keeps it or what is worth more; what has to go is on disk, or goes there.
    pub(super) fn placed(&self, fragment: &Fragment, bytes: &Arc<Vec<u8>>) {
        let demoted = locked(&self.store.0.ram).used(fragment, bytes, self.cost());
        for (bytes, fragment) in demoted {
            if matches!(self.below, Below::Disk(_)) && !self.store.0.disk.has((&fragment).into()) {
                // A full disk loses nothing that its server does not have.
                let _ = self.store.0.disk.put(&bytes);
            }
        }
    }

    fn cost(&self) -> f64 {
        if self.has_server() { COST_SERVER } else { COST_DISK }
    }

    /// Whether memory would take it without anything going for it, and has it not.
    pub(super) fn wants_in_memory(&self, fragment: &Fragment) -> bool {
        let ram = locked(&self.store.0.ram);
        !ram.has(fragment) && ram.has_room(fragment.bytes)
    }

    /// Whether it lies in memory.
    pub fn is_in_memory(&self, fragment: &Fragment) -> bool {
        locked(&self.store.0.ram).has(fragment)
    }

    /// The fragments that these tensors need at a quality, in order of use.
    fn fragments_of(&self, tensors: &[&str], quality: f64) -> Result<Vec<Fragment>, FragmentError> {
        let mut all = Vec::new();
        for name in tensors {
            let tensor = self.model.index.tensor(name);
            let model = self.model.name.clone();
            let tensor = tensor.ok_or_else(|| FragmentError::NoSuchTensor { name: (*name).to_owned(), model })?;
            let level = tensor.level_for(quality);
            all.extend(tensor.pieces.iter().flat_map(|piece| piece.iter().take(level + 1)).copied());
        }
        Ok(all)
    }

    /// These tensors will be used next, in this order: what is hinted stays before what is not.
    ///
    /// # Errors
    /// If there is no such tensor.
    pub fn hint(&self, tensors: &[&str], quality: f64) -> Result<(), FragmentError> {
        let fragments = self.fragments_of(tensors, quality)?;
        locked(&self.store.0.ram).hint(fragments, self.cost());
        Ok(())
    }

    /// What was hinted of this model does not hold any more: its request has ended.
    pub fn withdraw_hints(&self) {
        let fragments = self.model.index.fragments().map(|(.., fragment)| *fragment);
        locked(&self.store.0.ram).withdraw(fragments);
    }

    /// Brings tensors into memory ahead of their use, on a thread of its own. What does not fit stays on disk.
    ///
    /// # Errors
    /// If there is no such tensor.
    pub fn prefetch(
        &self,
        tensors: &[&str],
        quality: f64,
    ) -> Result<thread::JoinHandle<Result<(), FragmentError>>, FragmentError> {
        let fragments = self.fragments_of(tensors, quality)?;
        self.hint(tensors, quality)?;
        let model = self.clone();
        Ok(thread::spawn(move || fragments.iter().try_for_each(|fragment| model.fragment(fragment).map(|_| ()))))
    }

    /// Keeps tensors in memory once they are there, and the whole model on disk, until [`StoredModel::unpin`].
    ///
    /// # Errors
    /// If there is no such tensor, or the pin cannot be written.
    pub fn pin(&self, tensors: &[&str], quality: f64) -> Result<(), FragmentError> {
        let fragments = self.fragments_of(tensors, quality)?;
        if matches!(self.below, Below::Disk(_)) {
            self.store.0.disk.pin(self.model.id)?;
        }
        let mut ram = locked(&self.store.0.ram);
        fragments.iter().for_each(|fragment| ram.pin(fragment));
        locked(&self.pins).extend(fragments);
        Ok(())
    }

    /// Takes all pins of this handle and its clones back.
    ///
    /// # Errors
    /// If the pin on disk cannot be removed.
    pub fn unpin(&self) -> Result<(), FragmentError> {
        let pins = std::mem::take(&mut *locked(&self.pins));
        let mut ram = locked(&self.store.0.ram);
        pins.iter().for_each(|fragment| ram.unpin(fragment));
        if matches!(self.below, Below::Disk(_)) { self.store.0.disk.unpin(self.model.id) } else { Ok(()) }
    }

    /// Takes a fragment out of memory; it stays on disk.
    pub fn drop_from_memory(&self, fragment: &Fragment) {
        locked(&self.store.0.ram).forget(fragment);
    }

    /// Changes a byte of a fragment in memory, as broken memory would: for tests.
    #[doc(hidden)]
    pub fn corrupt_in_memory(&self, fragment: &Fragment) -> bool {
        locked(&self.store.0.ram).corrupt(fragment)
    }
}

impl Fragments for StoredModel {
    fn fragment(&self, fragment: &Fragment) -> Result<Arc<Vec<u8>>, FragmentError> {
        Self::fragment(self, fragment)
    }
}

/// Somebody brings a fragment into memory, until this is dropped.
struct UnderWay<'a>(&'a Tiers, Digest);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        locked(&self.0.under_way).remove(&self.1);
        self.0.came.notify_all();
    }
}
