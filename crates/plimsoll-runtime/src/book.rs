//! The book: which programs of this user may promise how much of which device, in one small file that all of them share.
//! Never decides who gets what (`plimsoll_core::allotment` does), never waits without an end, and never stops any work: whoever
//! cannot use it says so once and goes on alone.
//! Invariant: the file is whole at every moment, whoever is killed, and whoever changes it holds the lock
//! (`tests/book.rs`).
//!
//! | file | what it owns |
//! |---|---|
//! | `folder.rs` | where the book lies, and that nobody else can write there |
//! | `page.rs` | what is in it, as text with a checksum |
//! | `lock.rs` | who may change it |
//! | `process.rs` | whether a member still lives |
//! | `wakeup.rs` | how one member wakes another |
//! | `membership.rs` | how whoever promises bytes keeps its entries |
//! | `listed.rs` | devices whose bytes are in the book |

mod folder;
mod listed;
mod lock;
mod membership;
mod page;
mod process;
mod wakeup;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_core::allotment::Want;
use plimsoll_core::{Bytes, Moment};
use serde::{Deserialize, Serialize};

pub use listed::{Listed, Place};
pub use membership::{Membership, Promiser, Seen};
pub use page::{BYTES_MAX, ENTRIES_MAX};
pub(crate) use process::own_start;
pub(crate) use wakeup::Wakeup;

/// How long to wait for another member that changes the book. That takes well below a millisecond; one that was stopped
/// meanwhile should not stop everyone else.
pub const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Names another folder for the book than the user's.
pub const BOOK: &str = "PLIMSOLL_BOOK";
/// `1` keeps a program out of the book: it promises what it finds free, whatever others are about to take.
pub const ALONE: &str = "PLIMSOLL_ALONE";

/// What the system's memory is called in the book.
pub const MEMORY: &str = "memory";

/// One member of the book: an orchestrator, or whoever else promises bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberId {
    /// Its process.
    pub pid: u32,
    /// When that process was started, as the system counts it: process ids are used again.
    pub started: u64,
    /// Tells members of one process apart.
    pub number: u64,
}

/// What one member says of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Who.
    pub member: MemberId,
    /// What its program is called.
    pub program: String,
    /// Which device: the same name in every program.
    pub device: String,
    /// What it may promise.
    pub allotted: Bytes,
    /// What of that it has held for a while.
    pub in_use: Bytes,
    /// What of that it held when it wrote this.
    pub in_use_now: Bytes,
    /// What it saw others use, other members included.
    pub strangers: Bytes,
    /// What counts its bytes, unlike that of any member that counts others.
    pub counter: u64,
    /// The limit it was given.
    pub limit: Option<Bytes>,
    /// What it wants, if that is more than it was allotted.
    pub wanted: Option<Want>,
    /// When it wrote this, since 1970.
    pub written: Moment,
}

impl Entry {
    /// That a member is there, with nothing allotted yet.
    pub fn new(member: MemberId, device: impl Into<String>) -> Self {
        Self {
            member,
            program: process::program().to_owned(),
            device: device.into(),
            allotted: Bytes::ZERO,
            in_use: Bytes::ZERO,
            in_use_now: Bytes::ZERO,
            strangers: Bytes::ZERO,
            counter: 0,
            limit: None,
            wanted: None,
            written: Moment::START,
        }
    }
}

/// Why the book could not be used. Work goes on without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
    /// The folder is not this user's alone.
    #[error("{} is not used for the book of who was promised memory: {reason}; remove it, or name another folder with {BOOK}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}; programs of yours may promise the same memory until that works", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// Another member has held the lock for too long; it may have been stopped.
    #[error("{} has been locked for {waited:?}; a program that holds it may have been stopped", path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// There are as many entries as fit.
    #[error("the book {} is full: {} entries, {} bytes at most", path.display(), ENTRIES_MAX, BYTES_MAX)]
    Full {
        /// The book.
        path: PathBuf,
    },
}

/// Something about the book that did not stop the work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// It could not be used: this program goes on as if it were alone.
    #[error("this program does not share memory with others of yours for now: {0}")]
    Alone(#[from] BookError),
    /// It held something else than a book, and was begun anew.
    #[error("the book {} could not be read ({reason}) and is begun anew", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
}

type Hearer = Box<dyn Fn(&Warning) + Send + Sync>;

static HEARER: OnceLock<Hearer> = OnceLock::new();

/// Tells this function of warnings, each kind once; the first one set stays. Without any they are not told.
pub fn on_warning(hear: impl Fn(&Warning) + Send + Sync + 'static) {
    let _ = HEARER.set(Box::new(hear));
}

/// Tells a warning, unless one of its kind was told already.
pub(crate) fn warn(warning: &Warning) {
    static TOLD: Mutex<[bool; 2]> = Mutex::new([false; 2]);
    let kind = usize::from(matches!(warning, Warning::Unreadable { .. }));
    let was_told = std::mem::replace(&mut TOLD.lock().unwrap_or_else(PoisonError::into_inner)[kind], true);
    if let Some(hear) = HEARER.get().filter(|_| !was_told) {
        hear(warning);
    }
}

/// Where all programs of a user write down what they may promise.
///
/// ```
/// use plimsoll_core::Bytes;
/// use plimsoll_runtime::book::{Book, Entry};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path().join("book");
/// let book = Book::at(folder);
/// let member = book.join();
/// member.change(|entries| {
///     let taken: Bytes = entries.iter().filter(|entry| entry.device == "gpu").map(|entry| entry.allotted).sum();
///     entries.push(Entry { allotted: Bytes::gib(8) - taken, ..Entry::new(member.id().clone(), "gpu") });
/// })?;
/// assert_eq!(book.entries()?[0].allotted, Bytes::gib(8));
/// drop(member);
/// assert!(book.entries()?.is_empty(), "who leaves takes its entries along");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Book {
    folder: PathBuf,
    lock_wait: Duration,
}

impl Book {
    /// The user's own: in the folder for things that last as long as a login, or one of the user's alone among those for
    /// temporary files. The folder named by the environment comes before both.
    pub fn of_user() -> Self {
        Self::at(folder::of_user())
    }

    /// The one in this folder, which is made when it is first needed.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), lock_wait: LOCK_WAIT }
    }

    /// How long to wait for another member that changes the book.
    #[must_use]
    pub fn with_lock_wait(self, lock_wait: Duration) -> Self {
        Self { lock_wait, ..self }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Who is in it now, those that have died left out. Changes nothing.
    ///
    /// # Errors
    /// Why it could not be read. A book that is not there is empty.
    pub fn entries(&self) -> Result<Vec<Entry>, BookError> {
        let mut entries = page::read(&self.path())?.unwrap_or_else(|reason| self.unreadable(reason));
        sweep(&mut entries);
        Ok(entries)
    }

    /// A new member, which has no entries yet.
    pub fn join(&self) -> Member {
        static MEMBERS: AtomicU64 = AtomicU64::new(0);
        let number = MEMBERS.fetch_add(1, Ordering::Relaxed);
        let id = MemberId { pid: std::process::id(), started: process::own_start(), number };
        let wakeup = Arc::new(Wakeup::bind(&self.folder, &id));
        Member { book: self.clone(), id, wakeup }
    }

    /// Changes the book while nobody else can. Members that have died are swept before.
    fn change<T>(&self, act: impl FnOnce(&mut Vec<Entry>) -> T) -> Result<T, BookError> {
        folder::make(&self.folder)?;
        let _lock = lock::Lock::take(&self.folder.join("lock"), self.lock_wait)?;
        let path = self.path();
        let mut entries = page::read(&path)?.unwrap_or_else(|reason| self.unreadable(reason));
        let before = entries.clone();
        let dead = sweep(&mut entries);
        let result = act(&mut entries);
        if entries != before {
            page::write(&path, &entries)?;
        }
        dead.iter().for_each(|id| wakeup::remove(&self.folder, id));
        Ok(result)
    }

    fn path(&self) -> PathBuf {
        self.folder.join(process::book_name())
    }

    fn unreadable(&self, reason: String) -> Vec<Entry> {
        warn(&Warning::Unreadable { path: self.path(), reason });
        // Whoever was in it should write itself down again.
        wakeup::wake_all(&self.folder);
        Vec::new()
    }
}

/// Takes out who has died; says who that was.
fn sweep(entries: &mut Vec<Entry>) -> Vec<MemberId> {
    let mut known: Vec<(MemberId, bool)> = Vec::new();
    entries.retain(|entry| {
        if let Some((_, lives)) = known.iter().find(|(id, _)| *id == entry.member) {
            return *lives;
        }
        let lives = process::is_alive(&entry.member, entry.written);
        known.push((entry.member.clone(), lives));
        lives
    });
    known.into_iter().filter(|(_, lives)| !lives).map(|(id, _)| id).collect()
}

/// Now, by the clock that all members share.
pub fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A member of the book. Dropped, it takes its entries out.
pub struct Member {
    book: Book,
    id: MemberId,
    wakeup: Arc<Wakeup>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Member {
    /// Who it is.
    pub fn id(&self) -> &MemberId {
        &self.id
    }

    /// The book it is in.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// Changes the book while nobody else can: keep it short. Members that have died are gone from it.
    ///
    /// # Errors
    /// Why the book could not be used; it is then as it was.
    pub fn change<T>(&self, act: impl FnOnce(&mut Vec<Entry>) -> T) -> Result<T, BookError> {
        self.book.change(act)
    }

    /// Wakes other members that are to look at the book.
    pub fn wake<'a>(&self, members: impl IntoIterator<Item = &'a MemberId>) {
        members.into_iter().filter(|id| **id != self.id).for_each(|id| wakeup::wake(&self.book.folder, id));
    }

    /// Sleeps until another member wakes it, or this long; `None` is for ever.
    pub fn wait(&self, at_most: Option<Duration>) {
        self.wakeup.wait(at_most);
    }

    /// What wakes it from within this process.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wakeup))
    }

    pub(crate) fn wakeup(&self) -> &Arc<Wakeup> {
        &self.wakeup
    }
}

/// Wakes a member from within its process.
#[derive(Clone)]
pub struct Waker(Arc<Wakeup>);

impl Waker {
    /// Ends its sleep, or the next one if it is awake.
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let left = self.book.change(|entries| {
            entries.retain(|entry| entry.member != self.id);
            entries.iter().filter(|entry| entry.wanted.is_some()).map(|entry| entry.member.clone()).collect::<Vec<_>>()
        });
        // One that cannot take its entries out is swept once its process has ended.
        self.wake(&left.unwrap_or_default());
        wakeup::remove(&self.book.folder, &self.id);
    }
}
