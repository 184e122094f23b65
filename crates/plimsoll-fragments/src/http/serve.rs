//! A server of files by ranges. Serves the files that it was given and nothing else, on the address that it was given.
//! Bounded: so many connections, so long for a request's head, so long for a reader that does not read.

use std::convert::Infallible;
use std::fs::File;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::timeout;

use crate::error::FragmentError;
use crate::file::FragmentFile;
use crate::positioned::read_at;

/// Connections at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take to send the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// How long a client may take to read what lies ready for it.
const STALL_MAX: Duration = Duration::from_secs(30);
/// Bytes that lie ready for one client, twice.
const CHUNK: usize = 256 << 10;
/// How often the server looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

struct Served {
    /// As it stands in the path of a request.
    name: String,
    file: Arc<File>,
    length: u64,
    etag: HeaderValue,
}

/// A server of files of fragments.
pub struct Server {
    listener: TcpListener,
    files: Arc<Vec<Served>>,
    served: Arc<AtomicU64>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the files, and listens.
    ///
    /// # Errors
    /// If a file is none of fragments, two have the same name, or the address cannot be had.
    pub fn bind(address: SocketAddr, files: &[impl AsRef<Path>]) -> Result<Self, FragmentError> {
        let mut served: Vec<Served> = Vec::new();
        for path in files {
            let path = path.as_ref();
            let model = Arc::clone(FragmentFile::open(path)?.model());
            let reading = |error| FragmentError::reading(path, error);
            let file = File::open(path).map_err(reading)?;
            let length = file.metadata().map_err(reading)?.len();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if served.iter().any(|other| other.name == name) {
                return Err(FragmentError::malformed(name, "a name of its own", "another file is served under it"));
            }
            let etag = HeaderValue::from_str(&format!("\"{}\"", model.id)).expect("hexadecimal digits");
            served.push(Served { name, file: Arc::new(file), length, etag });
        }
        let refused =
            |error: io::Error| FragmentError::server(&address.to_string(), format!("cannot listen there: {error}"));
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(Self { listener, files: Arc::new(served), served: Arc::default() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Bytes of files that were given out.
    pub fn served(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.served)
    }

    /// Serves until `is_over` says so.
    ///
    /// # Errors
    /// If the system gives no sockets any more.
    pub fn run(self, is_over: impl Fn() -> bool) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let ended = runtime.block_on(self.accept(is_over));
        // Readers of files that hang are left behind.
        runtime.shutdown_timeout(LOOK);
        ended
    }

    async fn accept(self, is_over: impl Fn() -> bool) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        while !is_over() {
            let Ok(place) = timeout(LOOK, Arc::clone(&places).acquire_owned()).await else { continue };
            let stream = match timeout(LOOK, listener.accept()).await {
                Err(_) => continue,
                // One that left again, or too many files open: others may have better luck.
                Ok(Err(_)) => {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                Ok(Ok((stream, _))) => stream,
            };
            let (files, served) = (Arc::clone(&self.files), Arc::clone(&self.served));
            tokio::spawn(async move {
                connection(stream, files, served).await;
                drop(place);
            });
        }
        Ok(())
    }
}

/// One client, until it leaves or does not read any more.
async fn connection(stream: tokio::net::TcpStream, files: Arc<Vec<Served>>, served: Arc<AtomicU64>) {
    let stalled = Arc::new(Notify::new());
    let notify = Arc::clone(&stalled);
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(&request, &files, &served, &notify);
        async move { Ok::<_, Infallible>(response) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(CHUNK)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let mut end = std::pin::pin!(stalled.notified());
    // What went wrong with one client is nobody else's.
    std::future::poll_fn(|context| {
        if end.as_mut().poll(context).is_ready() { Poll::Ready(()) } else { serving.as_mut().poll(context).map(|_| ()) }
    })
    .await;
}

fn respond(
    request: &Request<Incoming>,
    files: &[Served],
    served: &Arc<AtomicU64>,
    stalled: &Arc<Notify>,
) -> Response<FileBody> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    let name = request.uri().path().trim_start_matches('/');
    let Some(file) = files.iter().find(|file| percent_encoded(&file.name) == name || file.name == name) else {
        return empty(StatusCode::NOT_FOUND);
    };
    let if_range = request.headers().get(header::IF_RANGE);
    let range = request.headers().get(header::RANGE).filter(|_| if_range.is_none_or(|etag| *etag == file.etag));
    let (status, range) = match range.map(|range| parse_range(range, file.length)) {
        None | Some(Asked::Whole) => (StatusCode::OK, 0..=file.length - 1),
        Some(Asked::Range(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(Asked::Outside) => {
            let mut response = empty(StatusCode::RANGE_NOT_SATISFIABLE);
            let length = HeaderValue::from_str(&format!("bytes */{}", file.length)).expect("digits");
            response.headers_mut().insert(header::CONTENT_RANGE, length);
            return response;
        }
    };
    let bytes = range.end() - range.start() + 1;
    let body = match *request.method() {
        Method::GET => FileBody::of(file, range.clone(), served, stalled),
        _ => FileBody { chunks: None, left: 0 },
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::ETAG, file.etag.clone());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    if status == StatusCode::PARTIAL_CONTENT {
        let text = format!("bytes {}-{}/{}", range.start(), range.end(), file.length);
        headers.insert(header::CONTENT_RANGE, HeaderValue::from_str(&text).expect("digits"));
    }
    response
}

fn empty(status: StatusCode) -> Response<FileBody> {
    let mut response = Response::new(FileBody { chunks: None, left: 0 });
    *response.status_mut() = status;
    response
}

/// A name as it stands in a path.
fn percent_encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

enum Asked {
    /// Nothing that is understood: the whole file, as the standard has it.
    Whole,
    Range(RangeInclusive<u64>),
    Outside,
}

/// One range; of several, the whole file is given instead.
fn parse_range(range: &HeaderValue, length: u64) -> Asked {
    let parts =
        range.to_str().ok().and_then(|text| text.strip_prefix("bytes=")).and_then(|range| range.split_once('-'));
    let Some((first, last)) = parts else { return Asked::Whole };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match (number(first), number(last), first.trim().is_empty(), last.trim().is_empty()) {
        (Some(first), Some(last), ..) if first <= last => within(first, last, length),
        (Some(first), None, _, true) => within(first, u64::MAX, length),
        (None, Some(0), true, _) => Asked::Outside,
        (None, Some(count), true, _) => within(length.saturating_sub(count), u64::MAX, length),
        _ => Asked::Whole,
    }
}

fn within(first: u64, last: u64, length: u64) -> Asked {
    if first < length { Asked::Range(first..=last.min(length - 1)) } else { Asked::Outside }
}

/// A range of a file, read as it is sent.
struct FileBody {
    chunks: Option<mpsc::Receiver<io::Result<Bytes>>>,
    left: u64,
}

impl FileBody {
    fn of(file: &Served, range: RangeInclusive<u64>, served: &Arc<AtomicU64>, stalled: &Arc<Notify>) -> Self {
        let (sender, chunks) = mpsc::channel(1);
        let (file, served, stalled) = (Arc::clone(&file.file), Arc::clone(served), Arc::clone(stalled));
        let left = range.end() - range.start() + 1;
        tokio::spawn(async move {
            let (mut at, end) = (*range.start(), range.end() + 1);
            while at < end {
                let (file, bytes) = (Arc::clone(&file), CHUNK.min((end - at) as usize));
                let read = tokio::task::spawn_blocking(move || {
                    let mut chunk = vec![0; bytes];
                    read_at(&file, &mut chunk, at).map(|()| Bytes::from(chunk))
                });
                let chunk = read.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
                let is_over = chunk.is_err();
                served.fetch_add(bytes as u64, Ordering::Relaxed);
                match timeout(STALL_MAX, sender.send(chunk)).await {
                    Err(_) => return stalled.notify_one(),
                    Ok(Err(_)) => return,
                    Ok(Ok(())) if is_over => return,
                    Ok(Ok(())) => {}
                }
                at += bytes as u64;
            }
        });
        Self { chunks: Some(chunks), left }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(chunks) = &mut self.chunks else { return Poll::Ready(None) };
        chunks.poll_recv(context).map(|chunk| {
            let chunk = chunk?;
            if let Ok(bytes) = &chunk {
                self.left = self.left.saturating_sub(bytes.len() as u64);
            }
            Some(chunk.map(Frame::data))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
