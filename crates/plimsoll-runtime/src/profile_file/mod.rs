//! The profile on disk: one TOML file for each machine in the user's cache folder, shared by every process of that user.
//! Never measures and never reads the environment beyond where the cache folder is: the caller names another path.
//! Never writes over the profile of another machine.
//! Invariant: whoever writes holds the lock and merges what others wrote (`no_update_is_lost_between_processes`), and
//! the file is whole at every moment, whoever is killed (`a_killed_writer_leaves_a_whole_file_and_no_lock`).

mod atomic;
mod error;
mod lock;
mod machines;
mod text;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use plimsoll_core::profile::{Dropped, Freshness, Hardware, Mismatch, Origin, Profile};
use plimsoll_core::{Bytes, UnixSeconds};

pub use error::ProfileFileError;
pub use machines::MACHINES_MAX;

use self::atomic::{beside, folder};
use self::lock::Lock;
use self::machines::Machines;
use self::text::{FILE_MAX, Unreadable};

/// How long to wait for another process that is writing. Writing takes milliseconds; a process stopped while it
/// writes should not stop everyone else.
pub const LOCK_WAIT: Duration = Duration::from_secs(5);

/// What is added to the name of a damaged file.
const SET_ASIDE: &str = ".corrupt";

type Result<T> = std::result::Result<T, ProfileFileError>;

/// Where a profile is kept.
///
/// ```
/// use plimsoll_core::UnixSeconds;
/// use plimsoll_core::profile::{Hardware, Profile};
/// use plimsoll_runtime::profile_file::ProfileFile;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("profile.toml");
/// let (file, now) = (ProfileFile::at(path), UnixSeconds(1_760_000_000));
/// assert!(file.load(now)?.profile.is_none());
/// let learnt = Profile::new(Hardware { key: "a1b2".into(), devices: vec![] }, "0.1.0", now);
/// let merged = file.save(&learnt, now)?.profile;
/// assert_eq!(file.load(now)?.profile, Some(merged));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProfileFile {
    path: PathBuf,
    lock_wait: Duration,
    /// Set if it is one of several, each of its own machine.
    machines: Option<Machines>,
}

/// What was found in the file.
#[derive(Debug)]
pub struct Loaded {
    /// The profile, if there was one that could be used.
    pub profile: Option<Profile>,
    /// What the user should hear about.
    pub warnings: Vec<Warning>,
}

/// What was written.
#[derive(Debug)]
pub struct Saved {
    /// The profile as it lies in the file now: what was handed in and what other processes had learnt.
    pub profile: Profile,
    /// Set if the file held a profile of before the driver or the software changed, which is gone now.
    pub replaced: Option<Mismatch>,
    /// What the user should hear about.
    pub warnings: Vec<Warning>,
}

/// What was imported.
#[derive(Debug)]
pub struct Imported {
    /// The profile, now in its place.
    pub profile: Profile,
    /// Whether it should be measured again soon.
    pub freshness: Freshness,
    /// What the user should hear about.
    pub warnings: Vec<Warning>,
}

/// Something about the file that did not stop the work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The file held no profile and was set aside.
    SetAside {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
        /// Where it lies now; `None` if it could not be moved.
        moved_to: Option<PathBuf>,
    },
    /// A part of the profile was left out.
    Dropped(Dropped),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped(dropped) => write!(f, "in the profile, {dropped}"),
            Self::SetAside { path, reason, moved_to } => {
                write!(f, "the profile {} is damaged ({reason})", path.display())?;
                match moved_to {
                    Some(to) => write!(f, "; it now lies at {}, and a new one is begun", to.display()),
                    None => f.write_str("; it could not be moved aside, so it is left unused"),
                }
            }
        }
    }
}

impl ProfileFile {
    /// The profile at this path, whichever machine's it is.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), lock_wait: LOCK_WAIT, machines: None }
    }

    /// The profile of this machine in a folder that it may share with others. A `profile.toml` of this machine there,
    /// from when all shared that one, is taken over.
    pub fn of_machine_in(folder: impl Into<PathBuf>, machine: &Hardware) -> Self {
        let machines = Machines::new(folder.into(), machine);
        Self { path: machines.path(), lock_wait: LOCK_WAIT, machines: Some(machines) }
    }

    /// The profile of this machine in the user's cache folder.
    ///
    /// # Errors
    /// [`ProfileFileError::NoCacheFolder`] if the platform names none.
    pub fn in_cache(machine: &Hardware) -> Result<Self> {
        let folders = etcetera::choose_base_strategy().map_err(|_| ProfileFileError::NoCacheFolder)?;
        Ok(Self::of_machine_in(folders.cache_dir().join("plimsoll"), machine))
    }

    /// The same file, waiting this long for another process that writes.
    #[must_use]
    pub fn with_lock_wait(mut self, lock_wait: Duration) -> Self {
        self.lock_wait = lock_wait;
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the profile. A damaged file is set aside with a warning rather than standing in the way.
    ///
    /// # Errors
    /// If the system refuses to read it, or a later version wrote it.
    pub fn load(&self, now: UnixSeconds) -> Result<Loaded> {
        self.take_over();
        let found = self.read_profile(now)?;
        Ok(found.unwrap_or_else(|Damage(reason)| self.reload_under_lock(reason, now)))
    }

    /// Writes what was learnt, together with what other processes have written since.
    ///
    /// # Errors
    /// If another process writes for too long, the system refuses, the disk is full, or a later version or another
    /// machine wrote what is there. What was there stays then.
    pub fn save(&self, learnt: &Profile, now: UnixSeconds) -> Result<Saved> {
        self.save_with(learnt, now, Profile::merge)
    }

    /// Writes what was measured anew in place of what was known of the same cells. What is known of others stays.
    ///
    /// # Errors
    /// As [`ProfileFile::save`].
    pub fn save_anew(&self, measured: &Profile, now: UnixSeconds) -> Result<Saved> {
        self.save_with(measured, now, Profile::keep_unmeasured)
    }

    fn save_with(
        &self,
        learnt: &Profile,
        now: UnixSeconds,
        take_over: fn(&mut Profile, &Profile) -> std::result::Result<(), Mismatch>,
    ) -> Result<Saved> {
        let lock = self.lock()?;
        let Loaded { profile: on_disk, warnings } = self.load_locked(&lock, now)?;
        let mut profile = learnt.clone();
        let replaced = on_disk.and_then(|theirs| take_over(&mut profile, &theirs).err());
        self.refuse_foreign(replaced.as_ref())?;
        profile.failures_mut().expire(now);
        self.write(&lock, &profile)?;
        Ok(Saved { profile, replaced, warnings })
    }

    /// Writes a profile in place of whatever this machine had there.
    ///
    /// # Errors
    /// As [`ProfileFile::save`].
    pub fn replace(&self, profile: &Profile) -> Result<()> {
        let lock = self.lock()?;
        // Only whose it is counts here, not when it was measured.
        let on_disk = self.load_locked(&lock, UnixSeconds(u64::MAX))?.profile;
        self.refuse_foreign(on_disk.and_then(|theirs| theirs.origin().mismatch(profile.origin())).as_ref())?;
        self.write(&lock, profile)
    }

    /// Whether a profile of this machine could be kept here, before the trouble of measuring one.
    ///
    /// # Errors
    /// [`ProfileFileError::Occupied`] if another machine's lies there; otherwise as [`ProfileFile::load`].
    pub fn check_place(&self, here: Origin<'_>, now: UnixSeconds) -> Result<()> {
        let there = self.load(now)?.profile;
        self.refuse_foreign(there.and_then(|profile| profile.origin().mismatch(here)).as_ref())
    }

    /// Forgets where memory ran out and what devices cannot do, of one workload or of all. What was measured stays.
    /// Says how much was forgotten.
    ///
    /// # Errors
    /// As [`ProfileFile::save`].
    pub fn forget_failures(&self, here: Origin<'_>, workload: Option<&str>, now: UnixSeconds) -> Result<usize> {
        if !folder(&self.path).exists() {
            return Ok(0);
        }
        let lock = self.lock()?;
        let Some(mut profile) = self.load_locked(&lock, now)?.profile else { return Ok(0) };
        self.refuse_foreign(profile.origin().mismatch(here).as_ref())?;
        let forgotten = profile.failures_mut().forget(workload);
        if forgotten > 0 {
            self.write(&lock, &profile)?;
        }
        Ok(forgotten)
    }

    /// Forgets the profile, and a damaged one set aside. Says whether there was anything to forget.
    ///
    /// # Errors
    /// If another process writes for too long, or the system refuses.
    pub fn clear(&self) -> Result<bool> {
        if !folder(&self.path).exists() {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let profile = remove(&self.path)?;
        let set_aside = remove(&self.set_aside_path())?;
        Ok(profile || set_aside)
    }

    /// Copies the profile to a file of the user's choice, to be imported on an identical machine.
    ///
    /// # Errors
    /// If there is no sound profile, or the system refuses to write the file.
    pub fn export(&self, to: &Path, now: UnixSeconds) -> Result<()> {
        self.take_over();
        let text = self.read_text()?.ok_or_else(|| ProfileFileError::Missing { path: self.path.clone() })?;
        self.parse(&text, now)?;
        // Another export to the same place must not share the draft; a process has one at a time per file.
        atomic::write(to, &format!(".{}.new", std::process::id()), &text)
    }

    /// Puts an exported profile in place of the one that is there.
    ///
    /// # Errors
    /// [`ProfileFileError::Foreign`] if it is of another machine, driver or version; otherwise if it is no profile,
    /// or as [`ProfileFile::save`].
    pub fn import(&self, from: &Path, here: Origin<'_>, now: UnixSeconds) -> Result<Imported> {
        let source = Self::at(from);
        let text = source.read_text()?.ok_or_else(|| ProfileFileError::Missing { path: from.to_owned() })?;
        let (profile, dropped) = source.parse(&text, now)?;
        if let Some(mismatch) = profile.origin().mismatch(here) {
            return Err(ProfileFileError::Foreign { path: from.to_owned(), mismatch });
        }
        self.replace(&profile)?;
        let freshness = profile.freshness(now, here.machine, here.software);
        Ok(Imported { profile, freshness, warnings: dropped.into_iter().map(Warning::Dropped).collect() })
    }

    fn lock(&self) -> Result<Lock> {
        let folder = folder(&self.path);
        fs::create_dir_all(folder).map_err(|source| ProfileFileError::system("create", folder, source))?;
        let path = self.machines.as_ref().map_or_else(|| beside(&self.path, ".lock"), Machines::lock_path);
        let lock = Lock::take(&path, self.lock_wait)?;
        if let Some(machines) = &self.machines {
            machines.take_over(&lock);
        }
        Ok(lock)
    }

    /// Takes over what this machine wrote before each had its own file, if there is such a thing.
    fn take_over(&self) {
        if self.machines.as_ref().is_some_and(Machines::has_predecessor) {
            // Every lock does it. Who may not write goes on without.
            let _ = self.lock();
        }
    }

    fn refuse_foreign(&self, mismatch: Option<&Mismatch>) -> Result<()> {
        match mismatch.filter(|mismatch| mismatch.is_foreign()) {
            Some(mismatch) => Err(ProfileFileError::Occupied { path: self.path.clone(), mismatch: mismatch.clone() }),
            None => Ok(()),
        }
    }

    fn set_aside_path(&self) -> PathBuf {
        beside(&self.path, SET_ASIDE)
    }

    /// What is there, and if it is damaged then set aside.
    fn load_locked(&self, lock: &Lock, now: UnixSeconds) -> Result<Loaded> {
        let found = self.read_profile(now)?;
        Ok(found.unwrap_or_else(|Damage(reason)| self.set_aside(lock, reason)))
    }

    /// Looks again under the lock before it sets anything aside: another process may have done so already, and
    /// written a sound one. A reader that may not write goes on without a profile.
    fn reload_under_lock(&self, reason: String, now: UnixSeconds) -> Loaded {
        let again = self.lock().and_then(|lock| self.load_locked(&lock, now));
        again.unwrap_or_else(|_| self.damaged(reason, None))
    }

    fn set_aside(&self, _lock: &Lock, reason: String) -> Loaded {
        let to = self.set_aside_path();
        let moved = fs::rename(&self.path, &to).is_ok();
        self.damaged(reason, moved.then_some(to))
    }

    fn damaged(&self, reason: String, moved_to: Option<PathBuf>) -> Loaded {
        Loaded { profile: None, warnings: vec![Warning::SetAside { path: self.path.clone(), reason, moved_to }] }
    }

    fn write(&self, lock: &Lock, profile: &Profile) -> Result<()> {
        let text = text::print(profile).map_err(|error| {
            ProfileFileError::system("write", &self.path, io::Error::new(io::ErrorKind::InvalidData, error))
        })?;
        // One draft name for all: only the holder of the lock writes, and a killed one's draft is overwritten.
        let is_new = !self.path.exists();
        atomic::write(&self.path, ".new", &text)?;
        if let Some(machines) = self.machines.as_ref().filter(|_| is_new) {
            machines.make_room(lock);
        }
        Ok(())
    }

    /// What is there. Damage, which is set aside, is told apart from errors that the user must hear of.
    fn read_profile(&self, now: UnixSeconds) -> Result<std::result::Result<Loaded, Damage>> {
        let read = || {
            let Some(text) = self.read_text()? else { return Ok(Loaded { profile: None, warnings: vec![] }) };
            let (profile, dropped) = self.parse(&text, now)?;
            Ok(Loaded { profile: Some(profile), warnings: dropped.into_iter().map(Warning::Dropped).collect() })
        };
        match read() {
            Ok(loaded) => Ok(Ok(loaded)),
            Err(ProfileFileError::Corrupt { reason, .. }) => Ok(Err(Damage(reason))),
            Err(ProfileFileError::TooBig { bytes, .. }) => Ok(Err(Damage(format!("it holds {bytes}")))),
            Err(error) => Err(error),
        }
    }

    fn parse(&self, text: &str, now: UnixSeconds) -> Result<(Profile, Vec<Dropped>)> {
        text::parse(text, now).map_err(|unreadable| match unreadable {
            Unreadable::Newer { found } => ProfileFileError::Newer { path: self.path.clone(), found },
            Unreadable::Corrupt { reason } => ProfileFileError::Corrupt { path: self.path.clone(), reason },
        })
    }

    /// The text of the file, within the bound; `None` if there is no file.
    fn read_text(&self) -> Result<Option<String>> {
        let failed = |source| ProfileFileError::system("read", &self.path, source);
        // Before it is opened: opening a pipe would wait for its writer.
        let size = match fs::metadata(&self.path) {
            Ok(found) if found.is_file() => found.len(),
            Ok(_) => return Err(ProfileFileError::NotAFile { path: self.path.clone() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if size > FILE_MAX {
            return Err(ProfileFileError::TooBig { path: self.path.clone(), bytes: Bytes(size) });
        }
        let mut bytes = Vec::with_capacity(size as usize);
        match File::open(&self.path).and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let corrupt = |_| ProfileFileError::Corrupt { path: self.path.clone(), reason: "it is not text".into() };
        String::from_utf8(bytes).map(Some).map_err(corrupt)
    }
}

/// What is wrong with a file that holds no profile.
struct Damage(String);

fn remove(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ProfileFileError::system("remove", path, error)),
    }
}
