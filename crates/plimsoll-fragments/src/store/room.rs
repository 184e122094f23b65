//! How much a store may hold, and what goes to make room: what was of use longest ago over all processes, never what is
//! pinned or wanted now, and never what is being fetched.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::DiskStore;
use crate::digest::Digest;
use crate::error::FragmentError;

/// How long half a fragment waits for somebody to go on with it.
const LEFT_BEHIND: Duration = Duration::from_secs(7 * 24 * 3600);

/// How much a store may hold.
#[derive(Copy, Clone, Debug)]
pub struct StoreLimits {
    /// Bytes of all fragments at most; as much as the disk has if `None`.
    pub bytes: Option<u64>,
    /// Bytes of the disk that are left to others.
    pub reserve: u64,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self { bytes: None, reserve: 1 << 30 }
    }
}

/// What making room did.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Fragments that went.
    pub fragments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the store holds now.
    pub held: u64,
}

struct Object {
    path: PathBuf,
    digest: Option<Digest>,
    bytes: u64,
    used: SystemTime,
}

impl DiskStore {
    /// Bytes of all fragments in the store.
    pub fn held(&self) -> u64 {
        self.objects().iter().map(|object| object.bytes).sum()
    }

    fn objects(&self) -> Vec<Object> {
        let list = |folder: &Path| {
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let mut objects = Vec::new();
        for folder in list(&self.root.join("objects")) {
            let prefix = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for path in list(&folder) {
                let Ok(metadata) = fs::metadata(&path) else { continue };
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let digest = format!("{prefix}{name}").parse().ok();
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                objects.push(Object { digest, bytes: metadata.len(), used, path });
            }
        }
        objects
    }

    /// Fragments of models that are pinned.
    fn pinned(&self) -> HashSet<Digest> {
        let entries = fs::read_dir(self.root.join("pins")).into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
        // A pinned model whose index is damaged cannot say what it needs; its fragments can be fetched again.
        let models = ids.filter_map(|id| self.model(id, "pinned").ok().flatten());
        models
            .flat_map(|model| model.index.fragments().map(|(.., fragment)| fragment.digest).collect::<Vec<_>>())
            .collect()
    }

    /// Bytes of the disk that the store may still take, whatever its own limit says.
    fn free_on_disk(&self) -> u64 {
        free_bytes(&self.root).map_or(u64::MAX, |free| free.saturating_sub(self.limits.reserve))
    }

    /// Makes room for so many bytes beside `keep`, if the limits ask for it.
    ///
    /// # Errors
    /// [`FragmentError::Full`] if even without everything that may go there is no room; nothing is removed then.
    pub fn make_room(&self, wanted: u64, keep: &HashSet<Digest>) -> Result<Collected, FragmentError> {
        let lock = self.root.join("collecting.lock");
        let lock_file = File::create(&lock).map_err(|error| FragmentError::writing(&lock, error))?;
        lock_file.lock().map_err(|error| FragmentError::writing(&lock, error))?;
        self.sweep();
        let mut objects = self.objects();
        let held: u64 = objects.iter().map(|object| object.bytes).sum();
        let of_limit = self.limits.bytes.map_or(0, |limit| (held + wanted).saturating_sub(limit));
        let of_disk = wanted.saturating_sub(self.free_on_disk());
        let to_free = of_limit.max(of_disk);
        if to_free == 0 {
            return Ok(Collected { held, ..Collected::default() });
        }
        let pinned = self.pinned();
        objects
            .retain(|object| object.digest.is_none_or(|digest| !keep.contains(&digest) && !pinned.contains(&digest)));
        let may_go: u64 = objects.iter().map(|object| object.bytes).sum();
        if may_go < to_free {
            return Err(FragmentError::Full {
                path: self.root.clone(),
                wanted,
                free: wanted.saturating_sub(to_free - may_go),
            });
        }
        objects.sort_by_key(|object| object.used);
        let mut collected = Collected { held, ..Collected::default() };
        for object in objects {
            if collected.bytes >= to_free {
                break;
            }
            match fs::remove_file(&object.path) {
                // Whoever found it damaged took it out.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.map_err(|error| FragmentError::writing(&object.path, error))?,
            }
            collected.fragments += 1;
            collected.bytes += object.bytes;
            collected.held -= object.bytes;
        }
        Ok(collected)
    }
}

impl DiskStore {
    /// Removes what kills left behind and nobody came back for.
    fn sweep(&self) {
        let is_old = |path: &Path| {
            let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
            changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|ago| ago > LEFT_BEHIND))
        };
        for folder in ["partial", "models", "names", "pins"] {
            let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
            for path in entries.map(|entry| entry.path()) {
                let suffix = path.extension().unwrap_or_default();
                if (suffix == "part" || suffix == "new") && is_old(&path) {
                    // Whoever fetches it holds its lock, and has written to it lately.
                    let is_free = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
                    let _ = if is_free { fs::remove_file(&path) } else { Ok(()) };
                }
            }
        }
    }
}

/// Bytes that are free on the disk of a folder.
#[cfg(unix)]
fn free_bytes(path: &Path) -> Option<u64> {
    let facts = rustix::fs::statvfs(path).ok()?;
    Some(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// Where it cannot be asked, the disk's own error has to do.
#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}
