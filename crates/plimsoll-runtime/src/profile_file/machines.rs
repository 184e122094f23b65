//! One file for each machine in one folder: a home may be shared, and a driver that did not load makes another machine.
//! Never touches the file of another machine, except for the oldest ones when there are too many.
//! Invariant: at most [`MACHINES_MAX`] files, whatever machines come and go (`the_files_are_bounded_and_the_oldest_go`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plimsoll_core::UnixSeconds;
use plimsoll_core::profile::Hardware;
use twox_hash::XxHash3_64;

use super::atomic::beside;
use super::lock::Lock;
use super::{ProfileFile, SET_ASIDE};

/// Machines whose profiles are kept in one folder. Beyond it the one that was written longest ago goes: each driver
/// version is a machine of its own, and the figures of old ones are never asked for again.
pub const MACHINES_MAX: usize = 16;

/// The one file for all machines that versions before this one wrote.
const COMMON: &str = "profile.toml";

/// The names in a folder that machines share.
#[derive(Clone, Debug)]
pub(super) struct Machines {
    folder: PathBuf,
    /// Whose file it is.
    key: String,
}

impl Machines {
    pub(super) fn new(folder: PathBuf, machine: &Hardware) -> Self {
        Self { folder, key: machine.key.clone() }
    }

    /// The file of this machine.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(format!("profile-{:016x}.toml", XxHash3_64::oneshot(self.key.as_bytes())))
    }

    /// One lock for the whole folder, that of the common file, so that taking it over and making room are safe from
    /// every writer. Lock files are never deleted, so there must not be one for each machine that ever was.
    pub(super) fn lock_path(&self) -> PathBuf {
        beside(&self.folder.join(COMMON), ".lock")
    }

    /// Whether there may be something to take over.
    pub(super) fn has_predecessor(&self) -> bool {
        !self.path().exists() && self.folder.join(COMMON).exists()
    }

    /// Makes the common file this machine's, if that is whose figures it holds. A rename, so that whoever is killed,
    /// it has one name or the other.
    pub(super) fn take_over(&self, _lock: &Lock) {
        if self.has_predecessor() && self.owns(&self.folder.join(COMMON)) {
            // Failing that, the figures are measured again.
            let _ = fs::rename(self.folder.join(COMMON), self.path());
        }
    }

    fn owns(&self, path: &Path) -> bool {
        // Whose it is does not depend on the date, nor may looking at it change it.
        let found = ProfileFile::at(path).read_profile(UnixSeconds(u64::MAX));
        let profile = found.ok().and_then(Result::ok).and_then(|loaded| loaded.profile);
        profile.is_some_and(|profile| profile.origin().machine.key == self.key)
    }

    /// Removes the files that were written longest ago, beyond the limit. Never this machine's.
    pub(super) fn make_room(&self, _lock: &Lock) {
        let ours = self.path();
        let mut others: Vec<(SystemTime, PathBuf)> = self.files().filter(|(_, path)| *path != ours).collect();
        others.sort();
        let too_many = (others.len() + 1).saturating_sub(MACHINES_MAX);
        for (_, path) in &others[..too_many] {
            for leftover in [path.clone(), beside(path, SET_ASIDE), beside(path, ".new")] {
                // What cannot be removed is tried again with the next machine.
                let _ = fs::remove_file(leftover);
            }
        }
    }

    /// Every machine's file, with when it was last written. Only what has exactly our kind of name.
    fn files(&self) -> impl Iterator<Item = (SystemTime, PathBuf)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_str().is_some_and(is_name)).filter_map(|entry| {
            let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((about.modified().ok()?, entry.path()))
        })
    }
}

fn is_name(name: &str) -> bool {
    let hash = name.strip_prefix("profile-").and_then(|rest| rest.strip_suffix(".toml"));
    hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_kind_of_name_is_one() {
        let machines = Machines::new(PathBuf::from("/p"), &Hardware { key: "k".into(), devices: vec![] });
        let path = machines.path();
        assert!(is_name(path.file_name().and_then(|name| name.to_str()).expect("a name")));
        for other in ["profile.toml", "profile-mine.toml", "profile-0123456789abcdef.toml.lock", "my-profile-0123.toml"]
        {
            assert!(!is_name(other), "{other}");
        }
    }
}
