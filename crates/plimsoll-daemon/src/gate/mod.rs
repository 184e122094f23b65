//! The gate: a port in front of an engine's. Requests that need memory are held until there is room; everything passes as it
//! is, chunk by chunk, both ways, upgraded connections too.
//! Never buffers a body, never changes what an engine says, never retries what an engine may have begun.
//! Invariant: connections, held requests, head sizes and waits have limits; a client that reads slowly, or not at all, keeps
//! nobody else waiting.
//!
//! | file | owns |
//! |---|---|
//! | `room` | what a gate asks before it lets a request through |
//! | `doorway` | the room that the daemon's broker gives |
//! | `forward` | one request on its way to the engine and back |
//! | `says` | what the gate answers itself |
//! | `watched` | a connection on which nothing moves any more |

pub mod doorway;
mod forward;
pub mod room;
mod says;
mod watched;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::forward::{Answer, Upstream};
use self::room::{NoRoom, Pass, Room};
use self::watched::Watched;
use crate::engines::EngineKind;

/// How long the gate waits when the system gives it no more connections.
const OUT_OF_FILES: Duration = Duration::from_millis(50);

/// What a gate does not go beyond.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// Connections at once. The next is told so and closed.
    pub connections: usize,
    /// Requests held at once. The next is told so.
    pub held: usize,
    /// Bytes of a request's head, and of a body that are in memory at once.
    pub head_bytes: usize,
    /// For a client to send the head of its next request.
    pub head_time: Duration,
    /// For a request to be held.
    pub hold: Duration,
    /// For the engine to accept a connection.
    pub connect: Duration,
    /// For the engine to begin its answer. Models think long.
    pub answer: Duration,
    /// For a connection on which nothing moves.
    pub idle: Duration,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self {
            connections: 1_024,
            held: 1_000,
            head_bytes: 64 << 10,
            head_time: Duration::from_secs(75),
            hold: Duration::from_secs(300),
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(3_600),
            idle: Duration::from_secs(3_600),
        }
    }
}

/// What a gate stands before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The engine's name.
    pub engine: String,
    /// Its interface.
    pub kind: EngineKind,
    /// Where it listens.
    pub address: SocketAddr,
}

/// What a gate has done. Counts up, but for `connections` and `held`.
#[derive(Debug, Default)]
pub struct GateCounts {
    /// Connections now.
    pub connections: AtomicU64,
    /// Requests held now.
    pub held: AtomicU64,
    /// Requests that were let through.
    pub passed: AtomicU64,
    /// Requests that were told that there is no room.
    pub refused: AtomicU64,
    /// Requests that the engine did not answer.
    pub failed: AtomicU64,
}

/// A gate.
#[derive(Debug)]
pub struct Gate<R> {
    target: Target,
    limits: GateLimits,
    room: R,
    connections: Arc<Semaphore>,
    holding: Semaphore,
    counts: Arc<GateCounts>,
}

impl<R: Room> Gate<R> {
    /// A gate before an engine.
    #[must_use]
    pub fn new(target: Target, limits: GateLimits, room: R) -> Arc<Self> {
        let connections = Arc::new(Semaphore::new(limits.connections));
        let holding = Semaphore::new(limits.held);
        Arc::new(Self { target, limits, room, connections, holding, counts: Arc::default() })
    }

    /// What it has done.
    #[must_use]
    pub fn counts(&self) -> &Arc<GateCounts> {
        &self.counts
    }

    /// Serves until it is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of files, as a rule: connections that end give some back.
                tokio::time::sleep(OUT_OF_FILES).await;
                continue;
            };
            match Arc::clone(&self.connections).try_acquire_owned() {
                Ok(place) => drop(tokio::spawn(Arc::clone(&self).converse(stream, place))),
                Err(_) => self.turn_away(&stream),
            }
        }
    }

    /// Tells a connection too many so, without waiting for it.
    fn turn_away(&self, stream: &TcpStream) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        let _ = stream.try_write(says::too_many_connections(&self.target, self.limits.connections).as_bytes());
    }

    async fn converse(self: Arc<Self>, stream: TcpStream, _place: OwnedSemaphorePermit) {
        let _ = stream.set_nodelay(true);
        let _counted = Counted::up(&self.counts.connections);
        let (stream, activity) = Watched::new(stream);
        let upstream = Arc::new(Upstream::new(self.target.address, self.limits));
        let gate = Arc::clone(&self);
        let watch = activity.clone();
        let service = service_fn(move |request| {
            let (gate, upstream, activity) = (Arc::clone(&gate), Arc::clone(&upstream), activity.clone());
            async move { Ok::<_, Infallible>(gate.handle(&upstream, &activity, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_time)
            .max_buf_size(self.limits.head_bytes)
            .preserve_header_case(true)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::select! {
            _ = connection => {}
            () = watch.idle_for(self.limits.idle) => {}
        }
    }

    async fn handle(
        &self,
        upstream: &Upstream,
        activity: &watched::Activity,
        request: Request<Incoming>,
    ) -> Response<Answer> {
        let needs_room = self.target.kind.needs_memory(request.method().as_str(), request.uri().path());
        let pass = match needs_room {
            false => None,
            true => match self.hold().await {
                Ok(pass) => Some(pass),
                Err(no_room) => {
                    self.counts.refused.fetch_add(1, Ordering::Relaxed);
                    forward::drain(request.into_body()).await;
                    return says::no_room(&self.target, &no_room);
                }
            },
        };
        activity.moved();
        match upstream.forward(request, pass).await {
            Ok(response) => {
                self.counts.passed.fetch_add(1, Ordering::Relaxed);
                response
            }
            Err(failure) => {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
                says::failed(&self.target, &failure)
            }
        }
    }

    /// Waits for room, in one of a limited number of places. A client that goes away gives its place back.
    async fn hold(&self) -> Result<Pass, NoRoom> {
        let Ok(_place) = self.holding.try_acquire() else {
            return Err(NoRoom::TooManyHeld { held: self.limits.held });
        };
        let _counted = Counted::up(&self.counts.held);
        match tokio::time::timeout(self.limits.hold, self.room.enter(&self.target.engine)).await {
            Ok(entered) => entered,
            Err(_) => Err(NoRoom::TimedOut { after: self.limits.hold, why: self.room.why(&self.target.engine) }),
        }
    }
}

/// Counts something that is there.
struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    fn up(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
