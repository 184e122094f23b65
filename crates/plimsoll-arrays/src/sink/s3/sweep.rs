//! What writers that died left in a bucket: uploads that were begun and never became objects. No listing of objects shows
//! them, and they are paid for until somebody gives them up.
//! Never touches an upload outside the store's folder, and never keeps a writer from writing: a bucket that does not say
//! which uploads there are keeps what is left of them until its own rules remove it.
//! Invariant: only whoever holds the lock sweeps, before it begins an upload of its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use object_store::aws::AmazonS3;
use object_store::client::{HttpClient, HttpConnector as _, HttpRequest, HttpRequestBody, ReqwestConnector};
use object_store::multipart::MultipartStore as _;
use object_store::path::Path;
use object_store::signer::{Method, SignedUrlOptions, Signer as _};
use object_store::{Error, MultipartId};
use serde::Deserialize;
use tokio::time;

use super::client::{Client, again_if_cut, within};
use super::options;

/// Pages of a listing that are read, each of a thousand uploads: what is left is found by the next writer.
const PAGES_MAX: usize = 16;
/// Bytes of a page.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// How often a bucket is asked for a page that says that it cannot now.
const TRIES_MAX: usize = 6;
/// How long is waited before it is asked again, the first time.
const WAIT: Duration = Duration::from_millis(200);
/// Uploads that are given up at once.
const AT_ONCE: usize = 4;
/// How long a signed request is good for.
const SIGNED_FOR: Duration = Duration::from_secs(600);

/// Gives up every unfinished upload of the store. For whoever has just taken the lock.
pub(super) fn sweep(client: &Arc<Client>) {
    let (store, limit) = (Arc::clone(&client.store), client.options.request_max);
    // Whoever is nobody has no uploads of its own.
    let (true, Ok(root)) = (client.signs, client.path("")) else { return };
    // What cannot be swept stays where it is.
    let _ = client.wait("", "swept", async move {
        let listing = Listing { http: connect(limit)?, store: Arc::clone(&store), limit };
        let left = within(2 * limit, async { Ok(listing.below(&root).await) }).await?;
        let give_up = |(path, id): (Path, MultipartId)| {
            let store = Arc::clone(&store);
            async move { within(limit, again_if_cut(|| store.abort_multipart(&path, &id))).await }
        };
        stream::iter(left).map(give_up).buffer_unordered(AT_ONCE).for_each(async |_| {}).await;
        Ok(())
    });
}

fn connect(limit: Duration) -> object_store::Result<HttpClient> {
    // The address was checked when the store was opened: whether it may be without TLS is known.
    ReqwestConnector::default().connect(&options::client(limit).with_allow_http(true))
}

/// Asks which uploads there are: the one request that `object_store` has no call for.
struct Listing {
    http: HttpClient,
    store: Arc<AmazonS3>,
    limit: Duration,
}

impl Listing {
    /// Uploads of objects in a folder. Those that could not be heard of are not among them.
    async fn below(&self, folder: &Path) -> Vec<(Path, MultipartId)> {
        let prefix = format!("{folder}/");
        let (mut left, mut after) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let Ok(page) = self.patient_page(&prefix, after.as_ref()).await else { break };
            left.extend(page.of_folder(&prefix));
            after = page.next();
            if after.is_none() {
                break;
            }
        }
        left
    }

    async fn patient_page(&self, prefix: &str, after: Option<&Mark>) -> object_store::Result<Page> {
        let mut wait = WAIT;
        for _ in 1..TRIES_MAX {
            match within(self.limit, self.page(prefix, after)).await {
                Err(error) if !matches!(error, Error::NotSupported { .. }) => {}
                done => return done,
            }
            time::sleep(wait).await;
            wait *= 2;
        }
        within(self.limit, self.page(prefix, after)).await
    }

    /// One page; `NotSupported` if asking again would not help.
    async fn page(&self, prefix: &str, after: Option<&Mark>) -> object_store::Result<Page> {
        let query = [("uploads", ""), ("prefix", prefix)].into_iter();
        let query = query.chain(after.into_iter().flat_map(Mark::query));
        let options = SignedUrlOptions::default().with_query(query);
        let url = self.store.signed_url_opts(Method::GET, &Path::default(), SIGNED_FOR, &options).await?;
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = url.as_str().parse().map_err(|error| hopeless(format!("{error}")))?;
        let answer = self.http.execute(request).await.map_err(again)?;
        let status = answer.status();
        match status.as_u16() {
            200 => {}
            429 | 500 | 502..=599 => return Err(again(status.to_string())),
            _ => return Err(hopeless(status.to_string())),
        }
        let mut bytes = Vec::new();
        let mut pieces = answer.into_body().bytes_stream();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece.map_err(again)?);
            if bytes.len() > PAGE_BYTES_MAX {
                return Err(hopeless("a page of a listing has no end"));
            }
        }
        Page::parse(&bytes)
    }
}

/// What may pass.
fn again(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: "S3", source: error.into() }
}

/// What will not.
fn hopeless(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::NotSupported { source: error.into() }
}

/// A page of a listing of uploads, as the protocol has it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Page {
    is_truncated: bool,
    next_key_marker: String,
    next_upload_id_marker: String,
    #[serde(rename = "Upload")]
    uploads: Vec<Left>,
}

/// An upload that has not become an object.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Left {
    key: String,
    upload_id: String,
}

/// Where the next page begins.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    key: String,
    upload_id: String,
}

impl Mark {
    fn query(&self) -> [(&str, &str); 2] {
        [("key-marker", &self.key), ("upload-id-marker", &self.upload_id)]
    }
}

impl Page {
    fn parse(bytes: &[u8]) -> object_store::Result<Self> {
        quick_xml::de::from_reader(bytes).map_err(hopeless)
    }

    /// Uploads of the folder, whatever else the answer names: not every server heeds a prefix.
    fn of_folder(&self, prefix: &str) -> Vec<(Path, MultipartId)> {
        let of_folder = self.uploads.iter().filter(|left| left.key.starts_with(prefix));
        of_folder.filter_map(|left| Some((Path::parse(&left.key).ok()?, left.upload_id.clone()))).collect()
    }

    fn next(self) -> Option<Mark> {
        let Self { is_truncated, next_key_marker: key, next_upload_id_marker: upload_id, .. } = self;
        (is_truncated && !key.is_empty()).then_some(Mark { key, upload_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &[u8] = br#"<?xml version="1.0" encoding="UTF-8"?>
<ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Bucket>data</Bucket><KeyMarker></KeyMarker><UploadIdMarker></UploadIdMarker>
  <NextKeyMarker>runs/a.zarr/1/c/0</NextKeyMarker><NextUploadIdMarker>two&amp;</NextUploadIdMarker>
  <MaxUploads>2</MaxUploads><IsTruncated>true</IsTruncated>
  <Upload><Key>runs/a.zarr/0/c/0</Key><UploadId>one</UploadId><Owner><ID>x</ID></Owner></Upload>
  <Upload><Key>runs/a.zarr2/0/c/0</Key><UploadId>other</UploadId></Upload>
  <Upload><Key>runs/a.zarr/1/c/0</Key><UploadId>two&amp;</UploadId><StorageClass>STANDARD</StorageClass></Upload>
</ListMultipartUploadsResult>"#;

    #[test]
    fn a_page_names_the_uploads_of_the_folder_and_where_the_next_begins() {
        let page = Page::parse(PAGE).unwrap();
        let left: Vec<_> =
            page.of_folder("runs/a.zarr/").into_iter().map(|(path, id)| (path.to_string(), id)).collect();
        assert_eq!(left, [("runs/a.zarr/0/c/0".into(), "one".into()), ("runs/a.zarr/1/c/0".into(), "two&".into())]);
        let next = page.next().unwrap();
        assert_eq!(next.query(), [("key-marker", "runs/a.zarr/1/c/0"), ("upload-id-marker", "two&")]);
    }

    #[test]
    fn a_last_page_has_no_next_and_what_is_no_page_is_an_error() {
        let last = b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>";
        let page = Page::parse(last).unwrap();
        assert!(page.of_folder("").is_empty() && page.next().is_none());
        let endless = b"<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></ListMultipartUploadsResult>";
        assert_eq!(Page::parse(endless).unwrap().next(), None, "it does not say where to go on");
        for wrong in [&b""[..], b"{}", b"<ListMultipartUploadsResult><Upload>"] {
            assert!(Page::parse(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
