//! An object that is written piece by piece: small ones are one request, larger ones parts that go up beside each other and
//! become an object by the last request.
//! Never shows a part. Invariant: what was begun and not finished is given back.

use std::sync::Arc;

use object_store::multipart::{MultipartStore as _, PartId};
use object_store::path::Path;
use object_store::{Error, MultipartId, ObjectMeta, ObjectStoreExt as _, PutPayload};
use tokio::task::JoinHandle;

use super::super::{Object, SinkError};
use super::client::{Client, again_if_cut, within};

/// Bytes of a part: all but the last are as large, which some buckets ask for.
pub(super) const PART_BYTES: usize = 8 << 20;
/// Parts of an object at most: what S3 takes.
const PARTS_MAX: usize = 10_000;
/// Parts of all objects that go up at once.
pub(super) const UNDER_WAY_MAX: usize = 4;

/// Bytes held for so many objects that are being written.
pub(super) fn buffer_bytes(objects: usize) -> u64 {
    // One is being filled for each, and one more may wait for its turn.
    ((objects + UNDER_WAY_MAX + 1) * PART_BYTES) as u64
}

pub(super) struct Upload {
    client: Arc<Client>,
    key: String,
    path: Path,
    filling: Vec<u8>,
    bytes: u64,
    /// Once it is too large for one request.
    parts: Option<Parts>,
}

struct Parts {
    id: MultipartId,
    /// What was at its place.
    before: Option<ObjectMeta>,
    under_way: Vec<JoinHandle<object_store::Result<PartId>>>,
}

impl Upload {
    pub(super) fn new(client: &Arc<Client>, key: &str, path: Path) -> Self {
        let (client, key) = (Arc::clone(client), key.to_owned());
        Self { client, key, path, filling: Vec::new(), bytes: 0, parts: None }
    }

    /// Sends what is filled as the next part, once fewer are under way.
    fn send(&mut self) -> Result<(), SinkError> {
        self.client.must_be_writer()?;
        let filled = PutPayload::from(std::mem::take(&mut self.filling));
        if self.parts.is_none() {
            self.parts = Some(self.create()?);
        }
        let uploads = Arc::clone(&self.client.uploads);
        let limit = self.limit();
        let permit = self.client.wait(&self.key, "written", async move {
            let closed = |error| Error::Generic { store: "S3", source: Box::new(error) };
            within(limit, async { uploads.acquire_owned().await.map_err(closed) }).await
        })?;
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let (store, path, id) = (Arc::clone(&self.client.store), self.path.clone(), parts.id.clone());
        let number = parts.under_way.len();
        let sending = self.client.spawn(async move {
            let put = || store.put_part(&path, &id, number, filled.clone());
            let put = within(limit, again_if_cut(put)).await;
            drop(permit);
            put
        });
        parts.under_way.extend(sending);
        Ok(())
    }

    fn limit(&self) -> std::time::Duration {
        self.client.options.retry_max + self.client.options.request_max
    }

    fn create(&self) -> Result<Parts, SinkError> {
        let path = self.path.clone();
        let (id, before) = self.client.run(&self.key, "written", move |store| {
            let path = path.clone();
            async move {
                let before = found(store.head(&path).await)?;
                Ok((store.create_multipart(&path).await?, before))
            }
        })?;
        Ok(Parts { id, before, under_way: Vec::new() })
    }

    fn put(&mut self) -> Result<(), SinkError> {
        let (path, payload) = (self.path.clone(), PutPayload::from(std::mem::take(&mut self.filling)));
        self.client.run(&self.key, "finished", move |store| {
            let (path, payload) = (path.clone(), payload.clone());
            async move { store.put(&path, payload).await.map(drop) }
        })
    }

    /// Makes the parts an object. The upload is gone once that has happened: if the answer to it was lost, this is told from
    /// an upload that somebody else removed by what is at its place.
    fn complete(&mut self, parts: Parts) -> Result<(), SinkError> {
        let Parts { id, before, under_way } = parts;
        let (store, path, bytes, limit) = (Arc::clone(&self.client.store), self.path.clone(), self.bytes, self.limit());
        let cleared = (Arc::clone(&store), path.clone(), id.clone());
        let done = self.client.wait(&self.key, "finished", async move {
            let ids = all(under_way).await?;
            let complete = || store.complete_multipart(&path, &id, ids.clone());
            match within(limit, again_if_cut(complete)).await {
                Ok(_) => Ok(()),
                Err(error @ Error::NotFound { .. }) => match found(store.head(&path).await)? {
                    Some(now) if now.size == bytes && is_another(before.as_ref(), &now) => Ok(()),
                    _ => Err(error),
                },
                Err(error) => Err(error),
            }
        });
        if done.is_err() {
            self.give_back(cleared);
        }
        done
    }

    /// Nobody is told if this fails: the next writer sweeps what is left.
    fn give_back(&self, (store, path, id): (Arc<object_store::aws::AmazonS3>, Path, MultipartId)) {
        let limit = self.client.options.request_max;
        let _ = self.client.wait("", "removed", async move { within(limit, store.abort_multipart(&path, &id)).await });
    }
}

/// Waits for every part, also behind one that failed.
async fn all(under_way: Vec<JoinHandle<object_store::Result<PartId>>>) -> object_store::Result<Vec<PartId>> {
    let mut ids = Vec::with_capacity(under_way.len());
    for part in under_way {
        let ended = part.await.map_err(|error| Error::Generic { store: "S3", source: Box::new(error) });
        ids.push(ended.and_then(|part| part));
    }
    ids.into_iter().collect()
}

fn found(asked: object_store::Result<ObjectMeta>) -> object_store::Result<Option<ObjectMeta>> {
    match asked {
        Ok(meta) => Ok(Some(meta)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_another(before: Option<&ObjectMeta>, now: &ObjectMeta) -> bool {
    before.is_none_or(|before| (&before.e_tag, before.last_modified) != (&now.e_tag, now.last_modified))
}

impl Object for Upload {
    fn append(&mut self, mut bytes: &[u8]) -> Result<(), SinkError> {
        while !bytes.is_empty() {
            if self.filling.len() == PART_BYTES {
                self.send()?;
            }
            if self.filling.capacity() == 0 {
                let is_first = self.parts.is_none();
                self.filling.reserve_exact(if is_first { bytes.len().min(PART_BYTES) } else { PART_BYTES });
            }
            let (now, later) = bytes.split_at(bytes.len().min(PART_BYTES - self.filling.len()));
            self.filling.extend_from_slice(now);
            self.bytes += now.len() as u64;
            bytes = later;
            if self.bytes > (PARTS_MAX * PART_BYTES) as u64 {
                let most = (PARTS_MAX * PART_BYTES) as u64;
                return Err(SinkError::TooLarge { key: self.key.clone(), most });
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), SinkError> {
        self.client.must_be_writer()?;
        if self.parts.is_none() {
            return self.put();
        }
        if !self.filling.is_empty() {
            self.send()?;
        }
        match self.parts.take() {
            Some(parts) => self.complete(parts),
            None => Ok(()),
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(Parts { id, under_way, .. }) = self.parts.take() {
            under_way.iter().for_each(JoinHandle::abort);
            self.give_back((Arc::clone(&self.client.store), self.path.clone(), id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::S3Options;
    use super::*;

    /// 80 GB are not sent for this: it is as if they had been.
    #[test]
    fn an_object_of_more_parts_than_are_taken_is_refused() {
        let client = Arc::new(Client::open("s3://data/run.zarr", &S3Options::default()).unwrap());
        let mut upload = Upload::new(&client, "0/c/0", client.path("0/c/0").unwrap());
        upload.bytes = (PARTS_MAX * PART_BYTES) as u64 - 1;
        upload.append(b"1").unwrap();
        let refused = upload.append(b"2").unwrap_err();
        assert!(matches!(&refused, SinkError::TooLarge { key, .. } if key == "0/c/0"), "{refused}");
    }
}
