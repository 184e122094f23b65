//! A store in the bucket of a server, and arrays to write there.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use plimsoll::Orchestrator;
use plimsoll::array::sink::{Memory, S3, S3Options, Sink};
use plimsoll::array::{
    ArrayError, ArrayOptions, ArraySpec, ArraySummary, Begin, DataType, Layout, Levels, write_array,
};
use plimsoll_testkit::bucket::{BUCKET, Bucket};

/// Patient enough for a busy machine, and not for long.
pub(crate) fn options(bucket: &Bucket) -> S3Options {
    let mut options = S3Options::default();
    options.request_max = Duration::from_secs(10);
    options.retry_max = Duration::from_secs(20);
    options.lock_renewed = Duration::from_millis(200);
    options.lock_dead = Duration::from_secs(8);
    options.settings = bucket.variables().into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
    options
}

pub(crate) fn store_at(name: &str, options: &S3Options) -> Arc<S3> {
    Arc::new(S3::open(&format!("s3://{BUCKET}/runs/{name}.zarr"), options).unwrap())
}

pub(crate) fn store(bucket: &Bucket) -> Arc<S3> {
    store_at("out", &options(bucket))
}

/// Frames in shards of several parts each.
pub(crate) fn large() -> ArraySpec {
    ArraySpec {
        shard: Some(vec![5, 1024, 1024]),
        codec: "none".parse().unwrap(),
        levels: Levels::Count(2),
        ..ArraySpec::new(vec![0, 1024, 1024], DataType::U16, vec![1, 512, 512])
    }
}

/// Frames in many small objects.
pub(crate) fn small() -> ArraySpec {
    ArraySpec {
        shard: Some(vec![2, 32, 32]),
        codec: "zstd:1".parse().unwrap(),
        levels: Levels::Count(2),
        ..ArraySpec::new(vec![0, 50, 37], DataType::U16, vec![2, 16, 16])
    }
}

pub(crate) fn elements(spec: &ArraySpec, steps: u64) -> Vec<u8> {
    let bytes = steps * spec.shape[1..].iter().product::<u64>() * spec.data_type.bytes() as u64;
    (0..bytes).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

pub(crate) fn write(
    sink: Arc<dyn Sink>,
    spec: &ArraySpec,
    bytes: &[u8],
    begin: Begin,
) -> Result<ArraySummary, ArrayError> {
    let orchestrator = Orchestrator::builder().cpu(2).build();
    let options = ArrayOptions { begin, ..ArrayOptions::default() };
    write_array(&orchestrator, Layout::new(spec).unwrap(), sink, Cursor::new(bytes.to_vec()), &options)
}

/// An error unless both stores hold the same.
pub(crate) fn same(store: &dyn Sink, spec: &ArraySpec, bytes: &[u8]) {
    let expected = Arc::new(Memory::default());
    write(expected.clone(), spec, bytes, Begin::New).unwrap();
    let listed = store.list("").unwrap();
    let expected = expected.objects();
    assert_eq!(listed.iter().map(|listed| &listed.key).collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for listed in listed {
        let there = store.get(&listed.key, 0..listed.bytes).unwrap();
        assert!(there == expected[&listed.key], "{}", listed.key);
    }
}
