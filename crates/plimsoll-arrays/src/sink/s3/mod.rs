//! A store in a bucket that speaks S3: an object is one request, or parts that become an object when all of them are there.
//! Never leaves half an object under its own name. Invariant: whoever writes holds the object `.writer`, which is made only
//! if it is not there and renewed as long as its writer lives.
//!
//! | file | what it owns |
//! |---|---|
//! | `options.rs` | where the bucket is, and how long things may take |
//! | `client.rs` | requests: time limits, retries, what went wrong |
//! | `upload.rs` | an object that is written piece by piece |
//! | `lock.rs` | the one writer |
//! | `sweep.rs` | uploads that writers left which died |

mod client;
mod lock;
mod options;
mod sweep;
mod upload;

use std::ops::Range;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _, PutPayload};

use self::client::Client;
pub use self::options::S3Options;
use super::{Listed, Object, Sink, SinkError, WriteLock, check_key};

/// The object that the one writer holds.
const LOCK: &str = ".writer";

/// A store in a bucket. Clones are the same store.
#[derive(Clone, Debug)]
pub struct S3 {
    client: Arc<Client>,
}

impl S3 {
    /// The store at an address such as `s3://bucket/folder/out.zarr`. Nothing is asked of the bucket before it is used.
    ///
    /// Credentials, region and endpoint are those of the variables that the tools of AWS read: `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`; an endpoint without TLS needs
    /// `AWS_ALLOW_HTTP=true`.
    ///
    /// # Errors
    /// [`SinkError::Address`] if it is no such address, or a setting is none.
    pub fn open(address: &str, options: &S3Options) -> Result<Self, SinkError> {
        Ok(Self { client: Arc::new(Client::open(address, options)?) })
    }

    /// Where an object lies in the bucket.
    fn path(&self, key: &str) -> Result<Path, SinkError> {
        check_key(key)?;
        self.client.path(key)
    }
}

impl Sink for S3 {
    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), SinkError> {
        let path = self.path(key)?;
        let payload = PutPayload::from(bytes.to_vec());
        self.client.must_be_writer()?;
        self.client.run(key, "written", move |store| {
            let (path, payload) = (path.clone(), payload.clone());
            async move { store.put(&path, payload).await.map(drop) }
        })
    }

    fn begin(&self, key: &str) -> Result<Box<dyn Object>, SinkError> {
        self.client.must_be_writer()?;
        Ok(Box::new(upload::Upload::new(&self.client, key, self.path(key)?)))
    }

    fn get(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, SinkError> {
        let path = self.path(key)?;
        let wanted = range.end.saturating_sub(range.start);
        let got = match wanted {
            0 => Ok(Vec::new()),
            _ => self.client.run(key, "read", {
                let range = range.clone();
                move |store| {
                    let (path, range) = (path.clone(), GetRange::Bounded(range.clone()));
                    let options = GetOptions { range: Some(range), ..GetOptions::default() };
                    async move { store.get_opts(&path, options).await?.bytes().await.map(|bytes| bytes.to_vec()) }
                }
            }),
        };
        match got {
            Ok(bytes) if bytes.len() as u64 == wanted && wanted > 0 => Ok(bytes),
            Err(error @ (SinkError::Missing { .. } | SinkError::NoBucket { .. })) => Err(error),
            // What a server says to a range that reaches beyond the end differs.
            other => match self.size(key)? {
                None => Err(SinkError::Missing { key: key.to_owned() }),
                Some(bytes) if range.end > bytes || range.start > range.end => {
                    Err(SinkError::Short { key: key.to_owned(), bytes, end: range.end })
                }
                Some(_) if wanted > 0 && other.is_ok() => Err(self.client.cut_short(key)),
                Some(_) => other,
            },
        }
    }

    fn size(&self, key: &str) -> Result<Option<u64>, SinkError> {
        let path = self.path(key)?;
        let found = self.client.run(key, "read", move |store| {
            let path = path.clone();
            async move { store.head(&path).await.map(|meta| meta.size) }
        });
        match found {
            Ok(bytes) => Ok(Some(bytes)),
            Err(SinkError::Missing { .. }) => self.client.bucket_must_be_there().map(|()| None),
            Err(error) => Err(error),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, SinkError> {
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut listed = self.client.list(prefix, folder)?;
        listed.retain(|listed| listed.key.starts_with(prefix) && listed.key != LOCK);
        listed.sort_unstable();
        Ok(listed)
    }

    fn delete(&self, key: &str) -> Result<(), SinkError> {
        let path = self.path(key)?;
        self.client.must_be_writer()?;
        let deleted = self.client.run(key, "removed", move |store| {
            let path = path.clone();
            async move { store.delete(&path).await }
        });
        deleted.or_else(|error| if matches!(error, SinkError::Missing { .. }) { Ok(()) } else { Err(error) })
    }

    fn lock(&self) -> Result<Box<dyn WriteLock>, SinkError> {
        let lock = lock::take(&self.client)?;
        sweep::sweep(&self.client);
        Ok(lock)
    }

    fn buffer_bytes(&self, objects: usize) -> u64 {
        upload::buffer_bytes(objects)
    }
}
