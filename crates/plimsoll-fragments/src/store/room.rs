//! How much a store may hold, and what goes to make room: what was of use longest ago over all processes, never what is
//! pinned or wanted now by any of them, and never what is being fetched.
//! Invariant: what the store holds and what living processes are about to fetch stay within the limit together, each fragment
//! counted once however many want it. (`tests/store.rs`)

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::wants::{self, Reserved};
use super::{DiskStore, Wanted};
use crate::digest::Digest;
use crate::error::FragmentError;

/// How long half a fragment waits for somebody to go on with it.
const LEFT_BEHIND: Duration = Duration::from_secs(7 * 24 * 3600);

/// How much a store may hold.
#[derive(Copy, Clone, Debug)]
pub struct StoreLimits {
    /// Bytes of all fragments at most, with those that are being fetched; as much as the disk has if `None`.
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

/// A file with bytes of a fragment.
struct Object {
    path: PathBuf,
    digest: Option<Digest>,
    bytes: u64,
    used: SystemTime,
    /// Half a fragment, which somebody may be fetching.
    is_part: bool,
}

impl Object {
    fn at(path: PathBuf, name: &str, is_part: bool) -> Option<Self> {
        let metadata = fs::metadata(&path).ok()?;
        let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Self { digest: name.parse().ok(), bytes: metadata.len(), used, is_part, path })
    }

    /// Removes it, if nobody is fetching it.
    fn remove(&self) -> Result<bool, FragmentError> {
        // Held until it is removed: whoever claims it next finds that it is another file.
        let lock = self.is_part.then(|| File::open(&self.path));
        if let Some(Ok(part)) = &lock
            && part.try_lock().is_err()
        {
            return Ok(false);
        }
        match fs::remove_file(&self.path) {
            // Whoever found it damaged took it out.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
            removed => removed.map(|()| true).map_err(|error| FragmentError::writing(&self.path, error)),
        }
    }
}

/// What lies in the store, and what is about to.
struct Account {
    objects: Vec<Object>,
    parts: Vec<Object>,
    /// Wanted by anybody and not there yet; each once.
    coming: HashMap<Digest, u64>,
}

impl Account {
    fn held(&self) -> u64 {
        self.objects.iter().map(|object| object.bytes).sum()
    }

    fn coming(&self) -> u64 {
        self.coming.values().sum()
    }

    /// Bytes of what is coming that lie on the disk already.
    fn come(&self) -> u64 {
        let of_coming = |part: &&Object| part.digest.is_some_and(|digest| self.coming.contains_key(&digest));
        self.parts.iter().filter(of_coming).map(|part| part.bytes).sum()
    }

    /// Bytes of parts that nobody wants at the moment.
    fn left_behind(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum::<u64>() - self.come()
    }
}

fn list(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl DiskStore {
    /// Bytes of all fragments in the store.
    pub fn held(&self) -> u64 {
        self.objects().iter().map(|object| object.bytes).sum()
    }

    fn objects(&self) -> Vec<Object> {
        let mut objects = Vec::new();
        for folder in list(&self.root.join("objects")) {
            let prefix = file_name(&folder);
            let named = |path: PathBuf| Object::at(path.clone(), &format!("{prefix}{}", file_name(&path)), false);
            objects.extend(list(&folder).into_iter().filter_map(named));
        }
        objects
    }

    fn parts(&self) -> Vec<Object> {
        let part = |path: PathBuf| Object::at(path.clone(), file_name(&path).strip_suffix(".part")?, true);
        list(&self.root.join("partial")).into_iter().filter_map(part).collect()
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

    /// Makes room for fragments that are about to be fetched, and keeps it for them. Those that are there already stay until
    /// it is dropped.
    ///
    /// # Errors
    /// As [`DiskStore::make_room`].
    pub fn reserve(&self, wanted: &[Wanted]) -> Result<Reserved, FragmentError> {
        let _alone = self.collecting()?;
        self.make_room_alone(wanted, 0, &HashSet::new())?;
        Reserved::write(&self.root.join("wants"), wanted)
    }

    /// Makes room for so many bytes beside `keep`, if the limits ask for it.
    ///
    /// # Errors
    /// [`FragmentError::Full`] if even without everything that may go there is no room; nothing is removed then.
    pub fn make_room(&self, wanted: u64, keep: &HashSet<Digest>) -> Result<Collected, FragmentError> {
        let _alone = self.collecting()?;
        self.make_room_alone(&[], wanted, keep)
    }

    /// One process at a time looks at what there is and what is wanted.
    fn collecting(&self) -> Result<File, FragmentError> {
        let path = self.root.join("collecting.lock");
        let writing = |error| FragmentError::writing(&path, error);
        let lock = File::create(&path).map_err(writing)?;
        lock.lock().map_err(writing)?;
        Ok(lock)
    }

    /// Room for these fragments and so many bytes more.
    fn make_room_alone(
        &self,
        wanted: &[Wanted],
        more: u64,
        keep: &HashSet<Digest>,
    ) -> Result<Collected, FragmentError> {
        self.sweep();
        let mut all_wanted = wants::all(&self.root.join("wants"));
        all_wanted.extend_from_slice(wanted);
        let account = self.account(&all_wanted);
        let (held, coming) = (account.held(), account.coming() + more);
        let filled = held.saturating_add(account.left_behind()).saturating_add(coming);
        let of_limit = self.limits.bytes.map_or(0, |limit| filled.saturating_sub(limit));
        let of_disk = coming.saturating_sub(account.come()).saturating_sub(self.free_on_disk());
        let to_free = of_limit.max(of_disk);
        if to_free == 0 {
            return Ok(Collected { held, ..Collected::default() });
        }
        let mut stays = self.pinned();
        stays.extend(keep.iter().copied().chain(all_wanted.iter().map(|wanted| wanted.digest)));
        let mut may_go: Vec<Object> = account.objects.into_iter().chain(account.parts).collect();
        may_go.retain(|object| object.digest.is_none_or(|digest| !stays.contains(&digest)));
        let bytes: u64 = may_go.iter().map(|object| object.bytes).sum();
        if bytes < to_free {
            return Err(FragmentError::Full {
                path: self.root.clone(),
                wanted: coming,
                free: coming.saturating_sub(to_free - bytes),
            });
        }
        may_go.sort_by_key(|object| object.used);
        let mut collected = Collected { held, ..Collected::default() };
        for object in may_go {
            if collected.bytes >= to_free {
                break;
            }
            if object.remove()? {
                collected.fragments += 1;
                collected.bytes += object.bytes;
                collected.held -= if object.is_part { 0 } else { object.bytes };
            }
        }
        Ok(collected)
    }

    fn account(&self, wanted: &[Wanted]) -> Account {
        let objects = self.objects();
        let there: HashMap<Digest, u64> =
            objects.iter().filter_map(|object| Some((object.digest?, object.bytes))).collect();
        let is_coming = |wanted: &&Wanted| there.get(&wanted.digest) != Some(&wanted.bytes);
        let coming = wanted.iter().filter(is_coming).map(|wanted| (wanted.digest, wanted.bytes)).collect();
        Account { objects, parts: self.parts(), coming }
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
            for path in list(&self.root.join(folder)) {
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
