//! The store on disk: fragments under the names of their content, shared by every process of the machine.
//!
//! ```text
//! objects/ab/cd…     a fragment, whole: its name is the SHA-256 of its bytes
//! partial/abcd….part one that is being fetched; whoever fetches it holds its lock, which goes with its process
//! models/abcd…       head and index of a model
//! names/abcd…        which model an address was when it was last asked
//! pins/abcd…         models that stay when room is made
//! wants/12…          what a process is about to fetch, while it holds the lock of this file
//! ```
//!
//! There is no other index: whatever a kill leaves is whole, or a part that the next one goes on with.
//!
//! | file | what it owns |
//! |---|---|
//! | `part.rs` | one fragment on its way in, under a lock |
//! | `room.rs` | how much the store may hold, and what goes to make room |
//! | `wants.rs` | what processes are about to fetch, so that the limit holds for all of them together |
//!
//! Invariant: a file below `objects` was whole and right when it got its name. (`tests/store.rs`)

mod part;
mod room;
mod wants;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

pub use part::{Claim, Part};
pub use room::{Collected, StoreLimits};
pub use wants::Reserved;

use crate::digest::Digest;
use crate::error::FragmentError;
use crate::file::{FileHead, Model};
use crate::index::Fragment;
use crate::limits::{FRAGMENT_BYTES_MAX, INDEX_BYTES_MAX};
use crate::positioned::read_new;

/// A store in a folder.
#[derive(Clone, Debug)]
pub struct DiskStore {
    root: PathBuf,
    limits: StoreLimits,
}

/// What a fragment is told by: everything that a store needs to know of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
}

impl From<&Fragment> for Wanted {
    fn from(fragment: &Fragment) -> Self {
        Self { digest: fragment.digest, bytes: fragment.bytes }
    }
}

impl DiskStore {
    /// Opens the store in this folder, and makes it if there is none.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(root: &Path, limits: StoreLimits) -> Result<Self, FragmentError> {
        for folder in ["objects", "partial", "models", "names", "pins", "wants"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).map_err(|error| FragmentError::writing(&folder, error))?;
        }
        Ok(Self { root: root.to_owned(), limits })
    }

    /// The folder that is used unless another is named: below the user's cache folder.
    pub fn default_folder() -> Option<PathBuf> {
        use etcetera::BaseStrategy;
        etcetera::choose_base_strategy().ok().map(|folders| folders.cache_dir().join("plimsoll").join("fragments"))
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn object(&self, digest: Digest) -> PathBuf {
        let name = digest.to_string();
        self.root.join("objects").join(&name[..2]).join(&name[2..])
    }

    fn beside(&self, folder: &str, digest: Digest) -> PathBuf {
        self.root.join(folder).join(digest.to_string())
    }

    /// Whether a fragment is there. Its bytes are checked when they are read.
    pub fn has(&self, wanted: Wanted) -> bool {
        fs::metadata(self.object(wanted.digest)).is_ok_and(|metadata| metadata.len() == wanted.bytes)
    }

    /// Reads a fragment and checks it; `None` if it is not there. A damaged one is taken out, so that it can be fetched again.
    /// One that is what its name says stays, whatever an index says of it: it may be another model's too.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or its index is wrong about it.
    pub fn read(&self, fragment: &Fragment) -> Result<Option<Vec<u8>>, FragmentError> {
        let path = self.object(fragment.digest);
        let Some(file) = opened(&path)? else { return Ok(None) };
        let reading = |error| FragmentError::reading(&path, error);
        let damaged = |why: &str| {
            if self.is_what_its_name_says(fragment.digest) {
                return FragmentError::malformed(path.display().to_string(), "what its index says", why);
            }
            // If it cannot be removed it is found out again the next time.
            let _ = fs::remove_file(&path);
            FragmentError::damaged(path.display().to_string(), why)
        };
        if file.metadata().map_err(reading)?.len() != fragment.bytes {
            return Err(damaged("it has another size than the index says"));
        }
        let (bytes, checksum) = read_new(&file, fragment.bytes as usize, 0).map_err(reading)?;
        if checksum != fragment.checksum {
            return Err(damaged("its checksum is not the one in the index"));
        }
        // When it was last of use: only a hint for making room.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(bytes))
    }

    /// Whether what has this name is right. Reads all of it: only asked when something is wrong.
    fn is_what_its_name_says(&self, digest: Digest) -> bool {
        let mut bytes = Vec::new();
        let read = File::open(self.object(digest));
        let read = read.and_then(|file| file.take(FRAGMENT_BYTES_MAX + 1).read_to_end(&mut bytes));
        read.is_ok() && Digest::of(&bytes) == digest
    }

    /// Reads what has this name, and checks that it is that.
    ///
    /// # Errors
    /// If it is not there, or damaged.
    pub(crate) fn read_by_digest(&self, digest: Digest) -> Result<Vec<u8>, FragmentError> {
        let path = self.object(digest);
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(|error| FragmentError::reading(&path, error))?;
        file.take(INDEX_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| FragmentError::reading(&path, error))?;
        if Digest::of(&bytes) != digest {
            let _ = fs::remove_file(&path);
            return Err(FragmentError::damaged(path.display().to_string(), "it is not what its name says"));
        }
        Ok(bytes)
    }

    /// Puts bytes in that are at hand already. Says nothing if they are there.
    ///
    /// # Errors
    /// If they cannot be written, or there is no room.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, FragmentError> {
        let wanted = Wanted { digest: Digest::of(bytes), bytes: bytes.len() as u64 };
        if self.has(wanted) {
            return Ok(wanted.digest);
        }
        let _room = self.reserve(&[wanted])?;
        if let Claim::Mine(mut part) = self.claim(wanted)? {
            part.restart()?;
            part.append(bytes)?;
            part.commit()?;
        }
        Ok(wanted.digest)
    }

    /// Claims a fragment that is to be fetched, without waiting.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn claim(&self, wanted: Wanted) -> Result<Claim, FragmentError> {
        Part::claim(self.object(wanted.digest), self.beside("partial", wanted.digest).with_extension("part"), wanted)
    }

    /// Bytes of a fragment that another process has fetched so far.
    pub fn fetched_so_far(&self, wanted: Wanted) -> u64 {
        let part = self.beside("partial", wanted.digest).with_extension("part");
        fs::metadata(part).map_or(0, |metadata| metadata.len())
    }

    /// Remembers a model: its head, which names its index, and the index.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn remember(&self, address: &str, head: &FileHead, index: &[u8]) -> Result<(), FragmentError> {
        let mut bytes = head.to_bytes().to_vec();
        bytes.extend_from_slice(index);
        written_aside(&self.beside("models", head.index_digest), &bytes)?;
        let name = format!("{}\n{address}\n", head.index_digest);
        written_aside(&self.beside("names", Digest::of(address.as_bytes())), name.as_bytes())
    }

    /// The model that an address was when it was last asked, if it is known here.
    ///
    /// # Errors
    /// If what is there is damaged.
    pub fn recall(&self, address: &str) -> Result<Option<Arc<Model>>, FragmentError> {
        let path = self.beside("names", Digest::of(address.as_bytes()));
        let Some(file) = opened(&path)? else { return Ok(None) };
        let mut name = String::new();
        file.take(1 << 16).read_to_string(&mut name).map_err(|error| FragmentError::reading(&path, error))?;
        let Some(id) = name.lines().next().and_then(|id| id.parse().ok()) else { return Ok(None) };
        self.model(id, address)
    }

    /// A model by its name among all models, if it is known here.
    ///
    /// # Errors
    /// If what is there is damaged.
    pub fn model(&self, id: Digest, name: &str) -> Result<Option<Arc<Model>>, FragmentError> {
        let path = self.beside("models", id);
        let Some(file) = opened(&path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let limit = FileHead::BYTES + INDEX_BYTES_MAX + 1;
        file.take(limit).read_to_end(&mut bytes).map_err(|error| FragmentError::reading(&path, error))?;
        let what = path.display().to_string();
        let parsed = || {
            let (head, index) =
                bytes.split_first_chunk::<64>().ok_or_else(|| FragmentError::damaged(&what, "it is too short"))?;
            let head = FileHead::parse(head, &what)?;
            if head.index_digest != id {
                return Err(FragmentError::damaged(&what, "it is another model"));
            }
            Ok(Model { name: name.to_owned(), id, index: head.index(index, &what)? })
        };
        match parsed() {
            Ok(model) => Ok(Some(Arc::new(model))),
            Err(error) => {
                // It can be had again from where it came from.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Keeps a model when room is made, until it is unpinned. Several processes may pin it; one unpins it for all.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn pin(&self, model: Digest) -> Result<(), FragmentError> {
        written_aside(&self.beside("pins", model), b"")
    }

    /// Lets a model go again when room is made.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn unpin(&self, model: Digest) -> Result<(), FragmentError> {
        let path = self.beside("pins", model);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FragmentError::writing(&path, error)),
            _ => Ok(()),
        }
    }
}

/// A file, if it is there.
fn opened(path: &Path) -> Result<Option<File>, FragmentError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FragmentError::reading(path, error)),
    }
}

/// Writes a small file beside its name and renames it: it is whole at every moment.
fn written_aside(path: &Path, bytes: &[u8]) -> Result<(), FragmentError> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let aside = path.with_extension(format!("{}-{}.new", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let written =
        fs::write(&aside, bytes).and_then(|()| File::open(&aside)?.sync_all()).and_then(|()| fs::rename(&aside, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&aside);
        FragmentError::writing(path, error)
    })
}
