//! The bell: how one member wakes another that sleeps, so that nobody has to look at the book over and over.
//! Never waits for whoever is rung. A member without a bell looks once a second while it sleeps.
//! Invariant: a ring from within the process is never lost.

use std::path::Path;
use std::time::Duration;

use super::MemberId;

#[cfg(unix)]
const SUFFIX: &str = "bell";

/// How long a member without a bell sleeps at most.
const DEAF_NAP_MAX: Duration = Duration::from_secs(1);

/// Where a member sleeps.
pub(crate) enum Bell {
    /// Others can ring it.
    #[cfg(unix)]
    Hung {
        socket: std::os::unix::net::UnixDatagram,
        /// Leads to the socket even if its name is gone.
        own: std::os::unix::net::UnixDatagram,
    },
    /// Only this process can.
    Deaf { rung: std::sync::Mutex<bool>, condvar: std::sync::Condvar },
}

impl Bell {
    /// Hangs a bell beside the book, if that can be done.
    pub(super) fn hang(folder: &Path, id: &MemberId) -> Self {
        #[cfg(unix)]
        if let Some(hung) = hang(folder, id) {
            return hung;
        }
        let _ = (folder, id);
        Self::Deaf { rung: Default::default(), condvar: Default::default() }
    }

    /// Rings it from within this process.
    pub(crate) fn ring(&self) {
        match self {
            // A bell that rings already need not ring twice.
            #[cfg(unix)]
            Self::Hung { own, .. } => drop(own.send(&[1])),
            Self::Deaf { rung, condvar } => {
                *rung.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = true;
                condvar.notify_all();
            }
        }
    }

    /// Sleeps until it rings, or this long; `None` is for ever.
    pub(crate) fn wait(&self, at_most: Option<Duration>) {
        match self {
            #[cfg(unix)]
            Self::Hung { socket, .. } => wait_for(socket, at_most),
            Self::Deaf { rung, condvar } => {
                let nap = at_most.unwrap_or(DEAF_NAP_MAX).min(DEAF_NAP_MAX);
                let rung = rung.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let waited = condvar.wait_timeout_while(rung, nap, |rung| !*rung);
                *waited.unwrap_or_else(std::sync::PoisonError::into_inner).0 = false;
            }
        }
    }
}

#[cfg(unix)]
fn path(folder: &Path, id: &MemberId) -> std::path::PathBuf {
    folder.join(format!("{}-{}-{}.{SUFFIX}", id.pid, id.started, id.number))
}

/// Whose bell a file is.
#[cfg(unix)]
fn owner_of(path: &Path) -> Option<MemberId> {
    let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?.strip_suffix('.')?;
    let mut parts = name.splitn(3, '-');
    let mut next = || parts.next()?.parse().ok();
    let (pid, started, number): (u64, u64, u64) = (next()?, next()?, next()?);
    Some(MemberId { pid: u32::try_from(pid).ok()?, started, number })
}

/// Takes down the bells of those who died before they were in the book.
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
fn hang(folder: &Path, id: &MemberId) -> Option<Bell> {
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
    Some(Bell::Hung { socket, own })
}

#[cfg(unix)]
fn wait_for(socket: &std::os::unix::net::UnixDatagram, at_most: Option<Duration>) {
    let mut ring = [0; 8];
    // No time limit at all is written as none, and none of zero is allowed.
    let limit = at_most.map(|nap| nap.max(Duration::from_millis(1)));
    if socket.set_read_timeout(limit).is_err() || socket.recv(&mut ring).is_err() {
        return;
    }
    // All that rang meanwhile meant the same.
    if socket.set_nonblocking(true).is_ok() {
        while socket.recv(&mut ring).is_ok() {}
        let _ = socket.set_nonblocking(false);
    }
}

/// Wakes a member. One that has no bell looks by itself.
pub(super) fn ring(folder: &Path, id: &MemberId) {
    #[cfg(unix)]
    ring_at(&path(folder, id));
    #[cfg(not(unix))]
    let _ = (folder, id);
}

/// Wakes everybody.
pub(super) fn ring_all(folder: &Path) {
    #[cfg(unix)]
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if file.path().extension().is_some_and(|extension| extension == SUFFIX) {
            ring_at(&file.path());
        }
    }
    #[cfg(not(unix))]
    let _ = folder;
}

#[cfg(unix)]
fn ring_at(path: &Path) {
    use std::os::unix::net::UnixDatagram;
    if let Ok(socket) = UnixDatagram::unbound()
        && socket.set_nonblocking(true).is_ok()
    {
        let _ = socket.send_to(&[1], path);
    }
}

/// Removes a member's bell.
pub(super) fn take_down(folder: &Path, id: &MemberId) {
    #[cfg(unix)]
    let _ = std::fs::remove_file(path(folder, id));
    #[cfg(not(unix))]
    let _ = (folder, id);
}
