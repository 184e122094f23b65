//! Where a bucket is, and how long things may take.
//! Never reads a file. Invariant: every wait has a limit.

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use super::super::SinkError;

/// What an address begins with.
const SCHEME: &str = "s3://";

/// How a bucket is spoken to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct S3Options {
    /// How long one request may take, its bytes included.
    pub request_max: Duration,
    /// How long one may be tried again. Then the store counts as not to be reached.
    pub retry_max: Duration,
    /// How often one is tried again: waits between tries are drawn by lot, so that only the time says how long that is.
    pub retries_max: usize,
    /// How often the lock of a writer is renewed.
    pub lock_renewed: Duration,
    /// A lock that was not renewed for so long is that of a writer which has died.
    pub lock_dead: Duration,
    /// Settings by the names of AWS's variables in small letters, such as `aws_endpoint_url`: they go before the variables.
    pub settings: Vec<(String, String)>,
}

impl S3Options {
    /// A writer that could not renew its lock for so long writes no more: before others may take over.
    pub(super) fn lock_own_max(&self) -> Duration {
        self.lock_dead * 3 / 4
    }
}

impl Default for S3Options {
    fn default() -> Self {
        Self {
            request_max: Duration::from_secs(60),
            retry_max: Duration::from_secs(180),
            retries_max: 100,
            lock_renewed: Duration::from_secs(5),
            lock_dead: Duration::from_secs(20),
            settings: Vec::new(),
        }
    }
}

/// The bucket and the folder in it that an address names.
pub(super) fn parse(address: &str) -> Result<(&str, &str), SinkError> {
    let wrong = |why: &str| SinkError::Address { address: address.to_owned(), why: why.to_owned() };
    let rest = address.strip_prefix(SCHEME).ok_or_else(|| wrong("it does not begin with s3://"))?;
    let (bucket, folder) = rest.split_once('/').unwrap_or((rest, ""));
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    if bucket.is_empty() || !bucket.chars().all(is_letter) {
        return Err(wrong("it names no bucket"));
    }
    let folder = folder.trim_end_matches('/');
    if folder.is_empty() {
        // The lock and the metadata would be those of the whole bucket.
        return Err(wrong("it names no folder in the bucket"));
    }
    Ok((bucket, folder))
}

/// The bucket, with these limits; and whether requests to it are signed.
pub(super) fn store(address: &str, bucket: &str, options: &S3Options) -> Result<(AmazonS3, bool), SinkError> {
    let wrong = |why: String| SinkError::Address { address: address.to_owned(), why };
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(10), base: 2.0 };
    let retry = RetryConfig { backoff, max_retries: options.retries_max, retry_timeout: options.retry_max };
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
    for (name, value) in &options.settings {
        let key: AmazonS3ConfigKey = name.parse().map_err(|_| wrong(format!("there is no setting '{name}'")))?;
        builder = builder.with_config(key, value);
    }
    let is_set = |key| builder.get_config_value(&key).is_some_and(|value| value == "true" || value == "1");
    let allows_http = is_set(AmazonS3ConfigKey::Client(object_store::ClientConfigKey::AllowHttp));
    let signs = !is_set(AmazonS3ConfigKey::SkipSignature);
    let builder = builder.with_client_options(client(options.request_max).with_allow_http(allows_http));
    Ok((builder.build().map_err(|error| wrong(error.to_string()))?, signs))
}

/// How requests are sent of which each may take so long.
pub(super) fn client(request_max: Duration) -> ClientOptions {
    ClientOptions::new().with_timeout(request_max).with_connect_timeout(request_max.min(Duration::from_secs(10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_and_a_folder() {
        assert_eq!(parse("s3://data/runs/a.zarr").unwrap(), ("data", "runs/a.zarr"));
        assert_eq!(parse("s3://data/a.zarr/").unwrap(), ("data", "a.zarr"));
        for wrong in
            ["data/a.zarr", "s3://", "s3://data", "s3://data/", "s3:///a.zarr", "s3://da ta/a", "http://data/a"]
        {
            assert!(matches!(parse(wrong), Err(SinkError::Address { .. })), "{wrong}");
        }
    }
}
