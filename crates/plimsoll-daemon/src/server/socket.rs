//! The Unix socket: one JSON object a line, both ways.
//! Never reads a line beyond a limit, waits for the rest of one without an end, or serves another user. Never takes another
//! request from a client that does not read its answers: those of a thousand leases are long.
//! Invariant: when a connection ends, for whatever reason, the broker hears of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

use super::CONNECTIONS_MAX;
use super::actor::{Ask, Busy, Handle, Letter};
use crate::broker::ClientId;
use crate::process::Process;
use crate::wire::{Request, Say};

/// Bytes of a line.
const LINE_MAX: usize = 64 << 10;
/// Lines that wait for a client to read them.
const MAILBOX: usize = 256;
/// Requests of one connection that are under way: asked, and their answers not yet written.
const UNDER_WAY_MAX: usize = 4;
/// How long the first line, and the rest of any line, may take.
const LINE_WITHIN: Duration = Duration::from_secs(10);
/// How long a client may take to read what it is told.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// Lines of a connection that are no requests before it is ended.
const WRONG_MAX: usize = 16;
/// How long the system is given when it has no more files.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves connections for ever.
pub(super) async fn accept(listener: UnixListener, handle: Handle) {
    let open = Arc::new(AtomicUsize::new(0));
    let mut next = 0;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let of_this_user = stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw());
        if !of_this_user {
            continue;
        }
        if open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
            refuse(&stream);
            continue;
        }
        next += 1;
        let place = Place::take(&open);
        tokio::spawn(serve(stream, ClientId(next), handle.clone(), place));
    }
}

fn refuse(stream: &UnixStream) {
    let message = format!("there are {CONNECTIONS_MAX} connections already; close some, then ask again");
    let line = serde_json::to_string(&Say::Error { message }).unwrap_or_default() + "\n";
    let _ = stream.try_write(line.as_bytes());
}

/// One of the connections that there may be.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve(stream: UnixStream, client: ClientId, handle: Handle, place: Place) {
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid()).and_then(|pid| u32::try_from(pid).ok());
    let peer = peer.and_then(Process::find);
    let (read, write) = stream.into_split();
    let (mailbox, letters) = mpsc::channel(MAILBOX);
    if handle.send(Ask::Connected { client, mailbox }).await.is_err() {
        return;
    }
    let mut writer = tokio::spawn(write_all(write, letters));
    tokio::select! {
        _ = read_all(read, client, peer, &handle) => {}
        // Nobody reads on the other side, or the broker has given it up.
        _ = &mut writer => {}
    }
    let _ = handle.send(Ask::Gone { client }).await;
    // What was said before the end may still be read.
    let _ = timeout(READ_WITHIN, &mut writer).await;
    writer.abort();
    drop(place);
}

async fn write_all(mut write: OwnedWriteHalf, mut letters: mpsc::Receiver<Letter>) {
    while let Some(letter) = letters.recv().await {
        match timeout(READ_WITHIN, write.write_all(letter.lines.as_bytes())).await {
            Ok(Ok(())) => {}
            _ => return,
        }
    }
}

/// Reads requests until the connection ends, or breaks a rule.
async fn read_all(read: OwnedReadHalf, client: ClientId, peer: Option<Process>, handle: &Handle) -> Result<(), Busy> {
    let mut lines = Lines { read: BufReader::with_capacity(4 << 10, read), line: Vec::new() };
    let (mut wrong, mut is_known) = (0, false);
    let under_way = Arc::new(Semaphore::new(UNDER_WAY_MAX));
    loop {
        let place = Arc::clone(&under_way).acquire_owned().await.map_err(|_| Busy)?;
        let within = (!is_known).then_some(LINE_WITHIN);
        let line = match lines.next(within).await {
            Line::Whole(line) => line,
            Line::End => return Ok(()),
            Line::Broken(message) => return handle.send(Ask::Wrong { client, message, place }).await,
        };
        let request = match serde_json::from_slice::<Request>(line) {
            Ok(request) => request,
            Err(error) => {
                wrong += 1;
                let message = format!("that is no request: {error}");
                handle.send(Ask::Wrong { client, message, place }).await?;
                if wrong >= WRONG_MAX {
                    return Ok(());
                }
                continue;
            }
        };
        match (&request, is_known) {
            (Request::Hello { .. }, _) => is_known = true,
            (_, true) => {}
            (_, false) => {
                let message = "say hello first: {\"do\":\"hello\",\"protocol\":1}".to_owned();
                return handle.send(Ask::Wrong { client, message, place }).await;
            }
        }
        match process_of(&request, peer) {
            Ok(process) => handle.send(Ask::Line { client, process, request, place }).await?,
            Err(message) => handle.send(Ask::Wrong { client, message, place }).await?,
        }
    }
}

/// The process that a request is about: the one it names, if it is of this user, or the client's own.
pub(super) fn process_of(request: &Request, peer: Option<Process>) -> Result<Option<Process>, String> {
    let named = match request {
        Request::Lease(lease) => lease.pid,
        Request::Attach { pid, .. } => Some(*pid),
        _ => return Ok(peer),
    };
    match named {
        None => Ok(peer),
        Some(pid) => match Process::find(pid).filter(|process| process.is_of_this_user()) {
            Some(process) => Ok(Some(process)),
            None => Err(format!("process {pid} does not run, or belongs to another user")),
        },
    }
}

struct Lines {
    read: BufReader<OwnedReadHalf>,
    line: Vec<u8>,
}

enum Line<'a> {
    Whole(&'a [u8]),
    End,
    Broken(String),
}

impl Lines {
    /// The next line. Between lines a client may take all the time it wants, unless `within` says otherwise.
    async fn next(&mut self, within: Option<Duration>) -> Line<'_> {
        self.line.clear();
        let mut until = within.map(|within| Instant::now() + within);
        loop {
            let filled = match until {
                Some(until) => match timeout_at(until, self.read.fill_buf()).await {
                    Ok(filled) => filled,
                    Err(_) => return Line::Broken(format!("a line takes at most {} s", LINE_WITHIN.as_secs())),
                },
                None => self.read.fill_buf().await,
            };
            let Ok(bytes) = filled else { return Line::End };
            if bytes.is_empty() {
                return Line::End;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = end.map_or(bytes.len(), |end| end + 1);
            if self.line.len() + part > LINE_MAX {
                return Line::Broken(format!("a line has at most {LINE_MAX} bytes"));
            }
            self.line.extend_from_slice(&bytes[..part]);
            self.read.consume(part);
            if end.is_some() {
                return Line::Whole(self.line.trim_ascii());
            }
            // All of it together: one byte now and then would hold a place for days.
            until.get_or_insert_with(|| Instant::now() + LINE_WITHIN);
        }
    }
}
