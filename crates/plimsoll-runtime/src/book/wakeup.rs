//! Wake-ups: how one member wakes another that sleeps, so that nobody has to look at the book over and over.
//! Never waits for whoever is woken. A member whom others cannot wake looks once a second while it sleeps.
//! Invariant: a wake-up from within the process is never lost.

use std::path::Path;
use std::time::Duration;

use super::MemberId;

#[cfg(unix)]
const SUFFIX: &str = "wake";

/// How long a member whom others cannot wake sleeps at most.
const PRIVATE_NAP_MAX: Duration = Duration::from_secs(1);

/// Where a member sleeps.
pub(crate) enum Wakeup {
    /// Others can wake it.
    #[cfg(unix)]
    Shared {
        socket: std::os::unix::net::UnixDatagram,
        /// Leads to the socket even if its name is gone.
        own: std::os::unix::net::UnixDatagram,
    },
    /// Only this process can.
    Private { woken: std::sync::Mutex<bool>, condvar: std::sync::Condvar },
}

impl Wakeup {
    /// A socket beside the book, if that can be made.
    pub(super) fn bind(folder: &Path, id: &MemberId) -> Self {
        #[cfg(unix)]
        if let Some(shared) = bind(folder, id) {
            return shared;
        }
        let _ = (folder, id);
        Self::Private { woken: Default::default(), condvar: Default::default() }
    }

    /// Wakes it from within this process.
    pub(crate) fn wake(&self) {
        match self {
            // One that is being woken need not be woken twice.
            #[cfg(unix)]
            Self::Shared { own, .. } => drop(own.send(&[1])),
            Self::Private { woken, condvar } => {
                *woken.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = true;
                condvar.notify_all();
            }
        }
    }

    /// Sleeps until it is woken, or this long; `None` is for ever.
    pub(crate) fn wait(&self, at_most: Option<Duration>) {
        match self {
            #[cfg(unix)]
            Self::Shared { socket, .. } => wait_for(socket, at_most),
            Self::Private { woken, condvar } => {
                let nap = at_most.unwrap_or(PRIVATE_NAP_MAX).min(PRIVATE_NAP_MAX);
                let woken = woken.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let waited = condvar.wait_timeout_while(woken, nap, |woken| !*woken);
                *waited.unwrap_or_else(std::sync::PoisonError::into_inner).0 = false;
            }
        }
    }
}

#[cfg(unix)]
fn path(folder: &Path, id: &MemberId) -> std::path::PathBuf {
    folder.join(format!("{}-{}-{}.{SUFFIX}", id.pid, id.started, id.number))
}

/// Whose socket a file is.
#[cfg(unix)]
fn owner_of(path: &Path) -> Option<MemberId> {
    let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?.strip_suffix('.')?;
    let mut parts = name.splitn(3, '-');
    let mut next = || parts.next()?.parse().ok();
    let (pid, started, number): (u64, u64, u64) = (next()?, next()?, next()?);
    Some(MemberId { pid: u32::try_from(pid).ok()?, started, number })
}

/// Removes the sockets of those who died before they were in the book.
#[cfg(unix)]
fn sweep(folder: &Path) {
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let owner = owner_of(&file.path());
        if owner.is_some_and(|owner| !super::process::is_alive(&owner, super::now())) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

#[cfg(unix)]
fn bind(folder: &Path, id: &MemberId) -> Option<Wakeup> {
    use std::os::unix::net::UnixDatagram;
    super::folder::make(folder).ok()?;
    sweep(folder);
    let path = path(folder, id);
    // One of a dead process with our number.
    let _ = std::fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path).ok()?;
    let own = UnixDatagram::unbound().ok()?;
    own.connect(&path).ok()?;
    own.set_nonblocking(true).ok()?;
    Some(Wakeup::Shared { socket, own })
}

#[cfg(unix)]
fn wait_for(socket: &std::os::unix::net::UnixDatagram, at_most: Option<Duration>) {
    let mut word = [0; 8];
    // No time limit at all is written as none, and none of zero is allowed.
    let limit = at_most.map(|nap| nap.max(Duration::from_millis(1)));
    if socket.set_read_timeout(limit).is_err() || socket.recv(&mut word).is_err() {
        return;
    }
    // All that came meanwhile meant the same.
    if socket.set_nonblocking(true).is_ok() {
        while socket.recv(&mut word).is_ok() {}
        let _ = socket.set_nonblocking(false);
    }
}

/// Wakes a member. One that has no socket looks by itself.
pub(super) fn wake(folder: &Path, id: &MemberId) {
    #[cfg(unix)]
    wake_at(&path(folder, id));
    #[cfg(not(unix))]
    let _ = (folder, id);
}

/// Wakes everybody.
pub(super) fn wake_all(folder: &Path) {
    #[cfg(unix)]
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if file.path().extension().is_some_and(|extension| extension == SUFFIX) {
            wake_at(&file.path());
        }
    }
    #[cfg(not(unix))]
    let _ = folder;
}

#[cfg(unix)]
fn wake_at(path: &Path) {
    use std::os::unix::net::UnixDatagram;
    if let Ok(socket) = UnixDatagram::unbound()
        && socket.set_nonblocking(true).is_ok()
    {
        let _ = socket.send_to(&[1], path);
    }
}

/// Removes a member's socket.
pub(super) fn remove(folder: &Path, id: &MemberId) {
    #[cfg(unix)]
    let _ = std::fs::remove_file(path(folder, id));
    #[cfg(not(unix))]
    let _ = (folder, id);
}
