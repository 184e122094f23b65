//! Where an array is, as it is typed: a folder, or s3://bucket/folder.

use std::path::Path;
use std::sync::Arc;

use plimsoll::array::sink::{Filesystem, Sink};

use crate::output;
use crate::stop::Stop;

/// What the address of a bucket begins with.
const BUCKET: &str = "s3://";

/// The store at a place.
pub(super) fn store(path: &Path) -> Result<Arc<dyn Sink>, Stop> {
    match path.to_str().filter(|text| text.contains("://")) {
        None => Ok(Arc::new(Filesystem::new(path))),
        Some(address) if address.starts_with(BUCKET) => bucket(address),
        Some(address) => {
            let address = output::clean(address);
            Err(Stop::usage(format_args!("{address}: an array is in a folder, or in a bucket: s3://bucket/folder")))
        }
    }
}

#[cfg(feature = "s3")]
fn bucket(address: &str) -> Result<Arc<dyn Sink>, Stop> {
    use plimsoll::array::sink::{S3, S3Options};

    let store = S3::open(address, &S3Options::default()).map_err(Stop::usage)?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "s3"))]
fn bucket(address: &str) -> Result<Arc<dyn Sink>, Stop> {
    let without = format!("{}: this program was built without buckets", output::clean(address));
    Err(Stop::failed(without).with_next("cargo install --path crates/plimsoll-cli --features s3"))
}
