//! The daemon as it runs: one task owns the broker and everything reaches it through one bounded queue; drivers are read on
//! threads of their own, clients are served by tasks of their own.
//! Never blocks on a client, a driver or a disk that is slow to answer a client: each has a queue with an end.
//! Invariant: whatever a client hears of was written to the journal before.
//!
//! | file | what it owns |
//! |---|---|
//! | `book.rs` | the daemon as a member of the book |
//! | `actor.rs` | the task that owns the broker |
//! | `socket.rs` | the Unix socket: lines in, lines out |
//! | `http.rs` | loopback HTTP: routes and answers |
//! | `patience.rs` | connections whose other side must read |
//! | `guard.rs` | who may ask over HTTP at all |
//! | `stream.rs` | server-sent events |
//! | `metrics.rs` | figures for Prometheus |
//! | `openapi.rs` | the description of the routes |

mod actor;
mod book;
mod guard;
mod http;
mod metrics;
mod openapi;
mod patience;
mod socket;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll::book::Book;
use plimsoll_core::{Moment, Nanos};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;

use crate::broker::{Broker, Settings};
use crate::engines::keeper::{self, EngineOptions, StartError};
use crate::folder::{self, Folder, FolderError};
use crate::process::Process;
use crate::store::{EventFile, Journal};
use crate::truth::Truth;
use crate::truth::reader::{Reader, Reading};
use actor::Actor;
pub use actor::{Ask, Busy, Handle, Letter};

/// Requests that wait for the broker. A client that sends more waits in its socket.
const QUEUE: usize = 1_024;
/// Connections at once on the socket.
pub const CONNECTIONS_MAX: usize = 4_096;
/// How long sources are waited for when the daemon begins.
const FIRST_READING: Duration = Duration::from_secs(5);
/// How far the times that people are shown may be from the clock on the wall.
const WALL_DRIFT_MS: u64 = 1_000;
/// Random bytes of the token.
const TOKEN_BYTES: usize = 32;

/// How to serve.
pub struct ServeOptions {
    /// Where the socket is. Everything else the daemon keeps lies beside it.
    pub socket: PathBuf,
    /// Where HTTP is served, on loopback only; none if it is not.
    pub http: Option<SocketAddr>,
    /// How memory is shared.
    pub settings: Settings,
    /// Who says what devices have.
    pub sources: Vec<Box<dyn Truth>>,
    /// How often they are asked if nobody waits.
    pub period: Duration,
    /// Engines that give memory back, and gates before them.
    pub engines: EngineOptions,
    /// The book in which other programs of the user say what they may promise; none if the daemon promises alone.
    pub book: Option<Book>,
}

impl std::fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeOptions").field("socket", &self.socket).field("http", &self.http).finish_non_exhaustive()
    }
}

/// What is to be told once the daemon serves.
#[derive(Debug)]
pub struct Ready {
    /// Where its socket is.
    pub socket: PathBuf,
    /// Where it serves HTTP.
    pub http: Option<SocketAddr>,
    /// The file with the token for changes over HTTP.
    pub token: PathBuf,
    /// How many devices it shares.
    pub devices: usize,
    /// How many leases it took over.
    pub adopted: usize,
    /// Where gates listen, and before which engine.
    pub gates: Vec<(SocketAddr, String)>,
}

/// Why the daemon cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Its folder will not do.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Something cannot be opened.
    #[error("cannot {what}: {source}")]
    Io {
        /// What.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// HTTP is for this machine alone.
    #[error("{0} is not an address of this machine alone; serve HTTP on 127.0.0.1 or [::1]")]
    NotLoopback(SocketAddr),
    /// Engines or gates are not as they should be.
    #[error(transparent)]
    Engines(#[from] StartError),
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServeError {
    let what = what.into();
    |source| ServeError::Io { what, source }
}

/// Serves until the process is asked to end.
///
/// # Errors
/// Why it cannot.
pub fn serve(options: ServeOptions, on_ready: impl FnOnce(&Ready)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed("start"))?;
    runtime.block_on(run(options, on_ready))
}

async fn run(options: ServeOptions, on_ready: impl FnOnce(&Ready)) -> Result<(), ServeError> {
    if let Some(address) = options.http.filter(|address| !address.ip().is_loopback()) {
        return Err(ServeError::NotLoopback(address));
    }
    more_files();
    let place = options.socket.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = Folder::take(place)?;
    let token = folder::random_hex(TOKEN_BYTES).map_err(failed("make a token"))?;
    folder::write_whole(&folder.file("token"), token.as_bytes()).map_err(failed("write the token"))?;
    let (journal, stored, next) =
        Journal::open(&folder.file("leases.jsonl")).map_err(failed("open the journal of leases"))?;
    let (events, kept) = EventFile::open(&folder.file("events.jsonl")).map_err(failed("open the log of events"))?;
    let (readers, readings) = Reader::start(options.sources).map_err(failed("start a thread that reads drivers"))?;

    let clock = Clock::start();
    let settings = Settings { wall_start_ms: clock.wall_start_ms, ..options.settings };
    let mut broker = Broker::new(clock.now(), settings, next, events.written() + 1);
    broker.remember(kept);
    let alive = |lease: &crate::broker::StoredLease| lease.process.is_none_or(Process::is_alive);
    let (stored, dead): (Vec<_>, Vec<_>) = stored.into_iter().partition(alive);
    let mut actor = Actor::new(broker, clock, readers, journal, events, options.period);
    let readings = actor.first_readings(readings, stored, dead).await;

    let socket = listen(&options.socket)?;
    let http = match options.http {
        Some(address) => Some(TcpListener::bind(address).await.map_err(failed(format!("serve HTTP on {address}")))?),
        None => None,
    };
    let (asks, asked) = mpsc::channel(QUEUE);
    let handle = Handle::new(asks);
    let keepers = keeper::start(&handle, options.engines, Some(folder.file("engines.json"))).await?;
    if let Some(book) = &options.book {
        actor.join_book(book::start(handle.clone(), book).map_err(failed("start a thread for the book"))?);
    }
    let ready = Ready {
        socket: options.socket.clone(),
        gates: keepers.gates.iter().map(|(address, engine, _)| (*address, engine.clone())).collect(),
        http: http.as_ref().and_then(|listener| listener.local_addr().ok()),
        token: folder.file("token"),
        devices: actor.devices(),
        adopted: actor.leases(),
    };
    tokio::spawn(socket::accept(socket, handle.clone()));
    if let (Some(listener), Some(address)) = (http, ready.http) {
        tokio::spawn(http::accept(listener, http::Site::new(handle, token, address)));
    }
    on_ready(&ready);
    actor.run(asked, readings, until_asked_to_end()).await;
    let _ = std::fs::remove_file(&options.socket);
    Ok(())
}

fn listen(path: &Path) -> Result<UnixListener, ServeError> {
    // The folder is ours alone: whatever has this name was left by a daemon that is gone.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).map_err(failed(format!("open the socket {}", path.display())))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .map_err(failed(format!("close the socket {} to others", path.display())))?;
    Ok(listener)
}

/// A thousand clients need a file each, and more than many shells allow unasked.
fn more_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = 2 * CONNECTIONS_MAX as u64;
    limit.current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)).max(limit.current.unwrap_or(0)));
    let _ = setrlimit(Resource::Nofile, limit);
}

async fn until_asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int), Ok(mut hup)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = hup.recv() => {}
    }
}

/// The daemon's clock.
#[derive(Copy, Clone, Debug)]
struct Clock {
    start: Instant,
    wall_start_ms: u64,
}

impl Clock {
    fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), wall_start_ms: since_1970.as_millis() as u64 }
    }

    fn now(&self) -> Moment {
        Moment(self.start.elapsed().as_nanos() as u64)
    }

    /// The clock on the wall, if it has been set since, or the machine has slept: what it said when this one began.
    fn set_anew(&mut self) -> Option<u64> {
        let began = SystemTime::now().checked_sub(self.start.elapsed());
        let began = began.and_then(|began| began.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let began_ms = began.as_millis() as u64;
        // Clocks are set by a little all the time.
        let is_far = began_ms.abs_diff(self.wall_start_ms) > WALL_DRIFT_MS;
        is_far.then(|| {
            self.wall_start_ms = began_ms;
            began_ms
        })
    }

    fn until(&self, at: Moment) -> Duration {
        let Nanos(left) = at.since(self.now());
        Duration::from_nanos(left)
    }
}

type Readings = mpsc::Receiver<Reading>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_on_the_wall_that_was_set_is_followed_once() {
        let mut clock = Clock::start();
        assert_eq!(clock.set_anew(), None);
        let right = clock.wall_start_ms;
        for wrong in [right - 3_600_000, right + 3_600_000] {
            clock.wall_start_ms = wrong;
            let set = clock.set_anew().expect("an hour is not a little");
            assert!(set.abs_diff(right) <= WALL_DRIFT_MS, "{set} for {right}");
            assert_eq!(clock.set_anew(), None);
        }
    }
}
