//! Requests to a bucket, from threads that know nothing of futures: each ends within its limits, is tried again where that
//! may help, and says what went wrong in the words of a store.
//! Never holds a lock while it waits. Invariant: whoever waits here is told.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use object_store::aws::AmazonS3;
use object_store::client::HttpError;
use object_store::path::Path;
use object_store::{Error, ObjectStore as _};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time;

use super::super::{LISTED_MAX, Listed, SinkError};
use super::S3Options;
use super::options::{parse, store};

/// How often a request is tried again whose answer was cut off. Others are tried again by `object_store`.
const CUT_MAX: usize = 4;
/// How long is waited before that, the first time.
const CUT_WAIT: Duration = Duration::from_millis(100);

/// How often is looked whether a lock is known to be ours again.
const LATE_WAIT: Duration = Duration::from_millis(50);

/// What a bucket answers to credentials that it does not know.
const UNKNOWN: [&str; 6] = [
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "MissingAuthenticationToken",
    "InvalidClientTokenId",
];

/// A folder of a bucket, and the thread on which requests run.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) store: Arc<AmazonS3>,
    /// Whether requests say who asks.
    pub(super) signs: bool,
    pub(super) options: S3Options,
    address: String,
    bucket: String,
    root: String,
    /// None only while it is dropped.
    runtime: Option<Runtime>,
    /// Parts under way.
    pub(super) uploads: Arc<Semaphore>,
    /// The lock was lost to somebody else.
    pub(super) is_lost: AtomicBool,
    /// When the lock that is held was last known to be ours.
    pub(super) renewed: Mutex<Option<Instant>>,
    has_bucket: OnceLock<()>,
}

impl Client {
    pub(super) fn open(address: &str, options: &S3Options) -> Result<Self, SinkError> {
        let (bucket, root) = parse(address)?;
        let wrong = |why: String| SinkError::Address { address: address.to_owned(), why };
        // Whoever uses another one has chosen it before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (store, signs) = store(address, bucket, options)?;
        Path::parse(root).map_err(|error| wrong(error.to_string()))?;
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("plimsoll-s3").enable_all().build();
        Ok(Self {
            store: Arc::new(store),
            signs,
            options: options.clone(),
            address: address.to_owned(),
            bucket: bucket.to_owned(),
            root: root.to_owned(),
            runtime: Some(runtime.map_err(|error| wrong(format!("no thread could be started: {error}")))?),
            uploads: Arc::new(Semaphore::new(super::upload::UNDER_WAY_MAX)),
            is_lost: AtomicBool::new(false),
            renewed: Mutex::new(None),
            has_bucket: OnceLock::new(),
        })
    }

    pub(super) fn path(&self, key: &str) -> Result<Path, SinkError> {
        let path = if key.is_empty() { self.root.clone() } else { format!("{}/{key}", self.root) };
        Path::parse(path).map_err(|_| SinkError::Key { key: key.to_owned() })
    }

    /// An error if the lock that was taken here is somebody else's by now. Where nobody has been able to tell for a while, it
    /// waits until it is known again, as long as a request may be tried.
    pub(super) fn must_be_writer(&self) -> Result<(), SinkError> {
        let until = Instant::now() + self.options.retry_max + self.options.request_max;
        loop {
            let is_late = self.is_late();
            if !is_late && !self.is_lost.load(Ordering::Acquire) {
                return Ok(());
            }
            if !is_late || self.is_lost.load(Ordering::Acquire) || Instant::now() >= until {
                return Err(SinkError::LockLost { store: self.address.clone() });
            }
            thread::sleep(LATE_WAIT);
        }
    }

    /// Whether the lock that is held was not renewed for so long that others may have taken over.
    pub(super) fn is_late(&self) -> bool {
        let renewed = *self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.is_some_and(|renewed| renewed.elapsed() >= self.options.lock_own_max())
    }

    pub(super) fn renew(&self, at: Option<Instant>) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    pub(super) fn locked(&self) -> SinkError {
        SinkError::Locked { store: self.address.clone() }
    }

    pub(super) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<JoinHandle<T>> {
        self.runtime.as_ref().map(|runtime| runtime.spawn(future))
    }

    /// Does a request and waits for it: from any thread, one of another runtime too.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        key: &str,
        what: &'static str,
        future: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, SinkError> {
        let (tell, told) = mpsc::sync_channel(1);
        let _running = self.spawn(async move {
            let _ = tell.send(future.await);
        });
        match told.recv() {
            Ok(done) => done.map_err(|error| self.named(key, what, error)),
            Err(_) => Err(SinkError::of_io(key, what, io::Error::other("the thread for requests has ended"))),
        }
    }

    /// Does a request that may be done twice, within the limits.
    pub(super) fn run<T, F>(
        &self,
        key: &str,
        what: &'static str,
        request: impl Fn(Arc<AmazonS3>) -> F + Send + Sync + 'static,
    ) -> Result<T, SinkError>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send,
    {
        let (store, limit) = (Arc::clone(&self.store), self.options.retry_max + self.options.request_max);
        self.wait(key, what, async move { within(limit, again_if_cut(|| request(Arc::clone(&store)))).await })
    }

    /// Every object below a folder of the store.
    pub(super) fn list(&self, prefix: &str, folder: &str) -> Result<Vec<Listed>, SinkError> {
        let below = self.path(folder)?;
        let (store, root) = (Arc::clone(&self.store), format!("{}/", self.root));
        let limit = self.options.retry_max + self.options.request_max;
        let listed = self.wait(prefix, "listed", async move {
            again_if_cut(|| async {
                let (mut listed, mut found) = (Vec::new(), store.list(Some(&below)));
                while let Some(meta) = within(limit, async { found.next().await.transpose() }).await? {
                    let key = meta.location.as_ref().strip_prefix(&root).unwrap_or_default().to_owned();
                    listed.push(Listed { key, bytes: meta.size });
                    if listed.len() > LISTED_MAX {
                        break;
                    }
                }
                Ok(listed)
            })
            .await
        })?;
        match listed.len() > LISTED_MAX {
            true => Err(SinkError::TooMany { prefix: prefix.to_owned(), most: LISTED_MAX }),
            false => Ok(listed),
        }
    }

    /// What is not there may be the bucket itself: it is asked for once.
    pub(super) fn bucket_must_be_there(&self) -> Result<(), SinkError> {
        if self.has_bucket.get().is_some() {
            return Ok(());
        }
        let below = self.path("")?;
        self.run("", "listed", move |store| {
            let below = below.clone();
            async move { store.list(Some(&below)).next().await.transpose().map(drop) }
        })?;
        let _ = self.has_bucket.set(());
        Ok(())
    }

    /// The error for fewer bytes than were asked for.
    pub(super) fn cut_short(&self, key: &str) -> SinkError {
        SinkError::of_io(key, "read", io::ErrorKind::UnexpectedEof.into())
    }

    /// In the words of a store.
    pub(super) fn named(&self, key: &str, what: &'static str, error: Error) -> SinkError {
        let (store, text) = (self.address.clone(), told(&error));
        let source = || io::Error::other(text.clone());
        let (key, is_unknown) = (key.to_owned(), UNKNOWN.iter().any(|code| text.contains(code)));
        let has_no_credentials = matches!(error, Error::Unauthenticated { .. }) || text.contains("169.254.");
        if text.contains("NoSuchBucket") {
            return SinkError::NoBucket { bucket: self.bucket.clone() };
        }
        if is_unknown || has_no_credentials {
            return SinkError::Credentials { store, source: source() };
        }
        match error {
            Error::NotFound { .. } => SinkError::Missing { key },
            Error::PermissionDenied { .. } => SinkError::Denied { key, what, source: source() },
            _ if is_transport(&error) || text.contains(TOO_LONG) || has_given_up(&text) => {
                SinkError::Unreachable { store, key, what, source: source() }
            }
            _ => SinkError::Failed { key, what, source: source() },
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Waits for nobody: a task of another runtime may be what drops it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

const TOO_LONG: &str = "it took longer than it may";

/// Ends a request that takes longer than all its tries together may.
pub(super) async fn within<T>(
    limit: Duration,
    request: impl Future<Output = object_store::Result<T>>,
) -> object_store::Result<T> {
    let late = |_| Error::Generic { store: "S3", source: format!("{TOO_LONG}, {limit:?}").into() };
    time::timeout(limit, request).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

/// Tries a request again whose connection broke at a point at which `object_store` does not do so itself.
pub(super) async fn again_if_cut<T, F: Future<Output = object_store::Result<T>>>(
    request: impl Fn() -> F,
) -> object_store::Result<T> {
    let mut wait = CUT_WAIT;
    for _ in 0..CUT_MAX {
        match request().await {
            Err(error) if is_transport(&error) => {}
            done => return done,
        }
        time::sleep(wait).await;
        wait *= 2;
    }
    request().await
}

/// Whether it was the connection, and not an answer.
pub(super) fn is_transport(error: &Error) -> bool {
    let mut cause = error.source();
    while let Some(now) = cause {
        if now.is::<HttpError>() {
            return true;
        }
        cause = now.source();
    }
    false
}

/// Whether the bucket said for as long as was allowed that it cannot now.
fn has_given_up(text: &str) -> bool {
    text.contains("status code: 5") || text.contains("status code: 429") || text.contains("error response")
}

/// What went wrong, with its causes where they say more.
fn told(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(now) = cause {
        let more = now.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = now.source();
    }
    // Answers are XML over several lines.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use object_store::client::HttpErrorKind;

    use super::*;

    fn hasty() -> Client {
        let (request_max, retry_max) = (Duration::from_millis(20), Duration::from_millis(20));
        let options = S3Options { request_max, retry_max, ..S3Options::default() };
        Client::open("s3://data/run.zarr", &options).unwrap()
    }

    /// Whatever the client below does about time: nobody waits for a request that has no end.
    #[test]
    fn a_request_that_never_ends_is_ended() {
        let begun = Instant::now();
        let ended =
            hasty().run("0/c/0", "written", |_| std::future::pending::<object_store::Result<()>>()).unwrap_err();
        assert!(matches!(&ended, SinkError::Unreachable { key, .. } if key == "0/c/0"), "{ended}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_request_that_is_always_cut_off_is_tried_so_often_and_no_more() {
        let tries = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&tries);
        let options = S3Options::default();
        let client = Client::open("s3://data/run.zarr", &options).unwrap();
        let ended = client.run("0/c/0", "written", move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            let cut = HttpError::new(HttpErrorKind::Interrupted, io::Error::from(io::ErrorKind::ConnectionReset));
            async move { Err::<(), _>(Error::Generic { store: "S3", source: Box::new(cut) }) }
        });
        assert!(matches!(ended, Err(SinkError::Unreachable { .. })), "{ended:?}");
        assert_eq!(tries.load(Ordering::Relaxed), CUT_MAX + 1);
    }
}
