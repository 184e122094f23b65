//! The one writer of a bucket's folder: an object that is made only if it is not there, and renewed as long as its writer
//! lives. Whoever finds it watches whether it is renewed: if so the store is taken, if not its writer has died and it is
//! taken over, by a request that succeeds only if nobody else was quicker.
//! Never compares clocks of two machines. Invariant: a writer that could not renew for three quarters of the time after which
//! others may take over writes no more before it knows that nobody has.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion};
use tokio::task::JoinHandle;
use tokio::time;

use super::super::{SinkError, WriteLock};
use super::client::{Client, is_transport, within};
use super::{LOCK, S3Options};

/// How often making the lock is tried: others may come and go meanwhile, and connections break.
const TRIES_MAX: usize = 8;

pub(super) fn take(client: &Arc<Client>) -> Result<Box<dyn WriteLock>, SinkError> {
    let path = client.path(LOCK)?;
    let number = RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()));
    let mut holder = Holder {
        store: Arc::clone(&client.store),
        options: client.options.clone(),
        path: path.clone(),
        name: format!("{number:016x}-{}", std::process::id()),
        renewals: 0,
        version: None,
    };
    let held =
        client.wait(LOCK, "locked", async move { holder.take().await.map(|is_taken| is_taken.then_some(holder)) })?;
    let Some(holder) = held else { return Err(client.locked()) };
    client.is_lost.store(false, Ordering::Release);
    client.renew(Some(Instant::now()));
    let weak = Arc::downgrade(client);
    let tell = move |renewed: Option<Instant>| {
        if let Some(client) = weak.upgrade() {
            match renewed {
                Some(at) => client.renew(Some(at)),
                None => client.is_lost.store(true, Ordering::Release),
            }
        }
    };
    let renewing = client.spawn(async move { holder.keep(tell).await });
    Ok(Box::new(BucketLock { client: Arc::clone(client), path, renewing }))
}

struct Holder {
    store: Arc<AmazonS3>,
    options: S3Options,
    path: Path,
    /// Told apart from every other writer.
    name: String,
    renewals: u64,
    /// Of the lock as we wrote it last.
    version: Option<String>,
}

impl Holder {
    /// Whether the lock is ours now.
    async fn take(&mut self) -> object_store::Result<bool> {
        for _ in 0..TRIES_MAX {
            match self.put(PutMode::Create).await {
                Ok(()) => return Ok(true),
                Err(Error::AlreadyExists { .. }) => match self.watch().await? {
                    Watched::Gone => {}
                    Watched::Ours => return Ok(true),
                    Watched::Alive => return Ok(false),
                    Watched::Dead(version) => return self.take_over(version).await,
                },
                // It may have been made all the same: then it is found to be ours.
                Err(error) if is_transport(&error) => time::sleep(self.options.lock_renewed / 4).await,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    async fn take_over(&mut self, version: Option<String>) -> object_store::Result<bool> {
        let version = UpdateVersion { e_tag: version, version: None };
        match self.put(PutMode::Update(version)).await {
            Ok(()) => Ok(true),
            Err(Error::Precondition { .. } | Error::NotFound { .. }) => Ok(matches!(self.look().await?, Looked::Ours)),
            Err(error) => Err(error),
        }
    }

    /// Looks until the lock is renewed or may be taken over.
    async fn watch(&mut self) -> object_store::Result<Watched> {
        let (begin, mut first) = (Instant::now(), None);
        loop {
            match self.look().await? {
                Looked::Gone => return Ok(Watched::Gone),
                Looked::Ours => return Ok(Watched::Ours),
                Looked::Theirs(version) => {
                    let known = first.get_or_insert_with(|| version.clone());
                    if *known != version {
                        return Ok(Watched::Alive);
                    }
                    if begin.elapsed() >= self.options.lock_dead {
                        return Ok(Watched::Dead(version));
                    }
                }
            }
            time::sleep(self.options.lock_renewed / 4).await;
        }
    }

    async fn look(&mut self) -> object_store::Result<Looked> {
        let limit = self.options.retry_max + self.options.request_max;
        let asked = within(limit, async {
            let got = self.store.get(&self.path).await?;
            let version = got.meta.e_tag.clone();
            Ok((got.bytes().await?, version))
        });
        match asked.await {
            Ok((text, version)) if text.starts_with(self.name.as_bytes()) => {
                self.version = version;
                Ok(Looked::Ours)
            }
            Ok((_, version)) => Ok(Looked::Theirs(version)),
            Err(Error::NotFound { .. }) => Ok(Looked::Gone),
            Err(error) => Err(error),
        }
    }

    async fn put(&mut self, mode: PutMode) -> object_store::Result<()> {
        let text = PutPayload::from(format!("{} {}\n", self.name, self.renewals));
        let limit = self.options.retry_max + self.options.request_max;
        let put = within(limit, self.store.put_opts(&self.path, text, mode.into())).await?;
        self.version = put.e_tag;
        Ok(())
    }

    /// Renews it until it is lost, and tells each time. A bucket that cannot be reached is asked again: if nobody has taken
    /// over meanwhile, the lock is ours as before.
    async fn keep(mut self, tell: impl Fn(Option<Instant>)) {
        loop {
            time::sleep(self.options.lock_renewed).await;
            self.renewals += 1;
            let version = UpdateVersion { e_tag: self.version.clone(), version: None };
            let (begun, limit) = (Instant::now(), self.options.request_max);
            let is_ours = match time::timeout(limit, self.put(PutMode::Update(version))).await {
                Ok(Ok(())) => true,
                Ok(Err(Error::Precondition { .. } | Error::NotFound { .. })) => {
                    // The answer to an earlier renewal may have been lost.
                    match time::timeout(limit, self.look()).await {
                        Ok(Ok(Looked::Ours)) => true,
                        Ok(Ok(_)) => return tell(None),
                        _ => false,
                    }
                }
                _ => false,
            };
            if is_ours {
                tell(Some(begun));
            }
        }
    }
}

enum Looked {
    Gone,
    Ours,
    Theirs(Option<String>),
}

enum Watched {
    Gone,
    Ours,
    Alive,
    Dead(Option<String>),
}

struct BucketLock {
    client: Arc<Client>,
    path: Path,
    renewing: Option<JoinHandle<()>>,
}

impl WriteLock for BucketLock {}

impl Drop for BucketLock {
    fn drop(&mut self) {
        let renewing = self.renewing.take();
        let (store, path) = (Arc::clone(&self.client.store), self.path.clone());
        let is_lost = self.client.is_lost.load(Ordering::Acquire) || self.client.is_late();
        let (is_ours, limit) = (!is_lost, self.client.options.request_max);
        // A renewal under way must not come after the removal.
        let _ = self.client.wait(LOCK, "removed", async move {
            if let Some(renewing) = renewing {
                renewing.abort();
                let _ = renewing.await;
            }
            match is_ours {
                true => within(limit, async { store.delete(&path).await }).await,
                false => Ok(()),
            }
        });
        self.client.renew(None);
    }
}
