//! What is written to a bucket is what is written to memory, whole or not at all.

use std::sync::Arc;

use plimsoll::Orchestrator;
use plimsoll::array::read::{Store, VerifyOptions};
use plimsoll::array::sink::{S3, S3Options, Sink, SinkError, conforms};
use plimsoll::array::{ArrayError, ArrayOptions, ArrayWriter, Begin, Layout};
use plimsoll_testkit::bucket::{Bucket, Misbehaviour};

use crate::bucket;

#[test]
fn a_bucket_conforms() {
    let server = Bucket::start();
    conforms(&*bucket::store(&server));
}

#[test]
fn arrays_in_a_bucket_are_those_in_memory_and_go_on_growing() {
    let server = Bucket::start();
    for (spec, steps) in [(bucket::small(), 9), (bucket::large(), 12)] {
        let (store, bytes) = (bucket::store(&server), bucket::elements(&spec, steps));
        let step = bytes.len() / steps as usize;
        bucket::write(store.clone(), &spec, &bytes[..7 * step], Begin::Replace).unwrap();
        let again = bucket::write(store.clone(), &spec, &bytes, Begin::New).unwrap_err();
        assert!(matches!(again, ArrayError::Exists { .. }), "{again}");
        let resumed = bucket::write(bucket::store(&server), &spec, &bytes, Begin::Resume).unwrap();
        assert!(resumed.resumed > 0 && resumed.steps == steps, "{resumed:?}");
        bucket::same(&*store, &spec, &bytes);
        let read = Store::open(store.clone()).unwrap();
        assert!(read.verify(&VerifyOptions::default()).unwrap().is_sound());
        assert!(read.read_level(0).unwrap() == bytes);
    }
    let parts = server.asked().iter().filter(|asked| asked.target.contains("partNumber=2")).count();
    assert!(parts >= 2, "large shards go up in parts");
}

/// Two runs, one of which is cut at its n-th request that writes.
#[test]
fn a_run_that_was_cut_at_any_write_goes_on_to_the_same_array() {
    let spec = bucket::small();
    let bytes = bucket::elements(&spec, 5);
    let (mut cuts, server) = (0, Bucket::start());
    for nth in [0, 1, 2, 3, 5, 8, 13, 21, 34] {
        let writes = std::sync::atomic::AtomicUsize::new(0);
        server.misbehave(move |asked| {
            let is_write = asked.method == "PUT" && !asked.target.ends_with(".writer");
            let number = if is_write { writes.fetch_add(1, std::sync::atomic::Ordering::Relaxed) } else { 0 };
            match is_write && number >= nth {
                true => Misbehaviour::Status(400, "BadRequest"),
                false => Misbehaviour::None,
            }
        });
        let store = bucket::store_at(&nth.to_string(), &bucket::options(&server));
        let cut = bucket::write(store.clone(), &spec, &bytes, Begin::New);
        cuts += usize::from(cut.is_err());
        server.behave();
        if store.size("zarr.json").unwrap().is_some() {
            let found = Store::open(store.clone()).unwrap().verify(&VerifyOptions::default()).unwrap();
            assert!(found.is_sound(), "{nth}: {:?}", found.faults);
        }
        bucket::write(store.clone(), &spec, &bytes, Begin::Resume).unwrap();
        bucket::same(&*store, &spec, &bytes);
    }
    assert!(cuts >= 8, "{cuts}");
}

#[test]
fn an_object_of_parts_that_is_dropped_leaves_nothing() {
    let server = Bucket::start();
    let store = bucket::store(&server);
    let mut object = store.begin("0/c/0").unwrap();
    object.append(&vec![1; 20 << 20]).unwrap();
    drop(object);
    assert_eq!(store.size("0/c/0").unwrap(), None);
    let aborted = server.asked().iter().any(|asked| asked.method == "DELETE" && asked.target.contains("uploadId"));
    assert!(aborted, "the parts are given back");
}

#[test]
fn a_store_can_be_used_from_a_runtime_of_others() {
    let server = Bucket::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let store = bucket::store(&server);
    let got = runtime.block_on(async {
        let got = tokio::spawn(async move {
            store.put("a", b"b").unwrap();
            store.get("a", 0..1).unwrap()
        });
        got.await.unwrap()
    });
    assert_eq!(got, b"b");
}

#[test]
fn what_is_wrong_with_the_place_is_named() {
    let server = Bucket::start();
    let options = bucket::options(&server);
    let other = S3::open("s3://elsewhere/out.zarr", &options).unwrap();
    for error in [other.size("zarr.json").unwrap_err(), other.put("zarr.json", b"{}").unwrap_err()] {
        assert!(matches!(&error, SinkError::NoBucket { bucket } if bucket == "elsewhere"), "{error}");
    }
    assert!(matches!(other.lock().map(drop).unwrap_err(), SinkError::NoBucket { .. }));
    server.misbehave(|_| Misbehaviour::Status(403, "InvalidAccessKeyId"));
    let error = bucket::store(&server).put("zarr.json", b"{}").unwrap_err();
    assert!(matches!(error, SinkError::Credentials { .. }), "{error}");
    server.misbehave(|_| Misbehaviour::Status(403, "AccessDenied"));
    let error = bucket::store(&server).put("zarr.json", b"{}").unwrap_err();
    assert!(matches!(error, SinkError::Denied { .. }), "{error}");
    let mut wrong: S3Options = options;
    wrong.settings.push(("aws_colour".to_owned(), "blue".to_owned()));
    let error = S3::open("s3://data/a", &wrong).unwrap_err();
    assert!(matches!(error, SinkError::Address { .. }), "{error}");
}

/// What a writer says that it takes counts what the bucket's parts hold.
#[test]
fn the_plan_counts_the_parts() {
    let server = Bucket::start();
    let orchestrator = Arc::new(Orchestrator::builder().cpu(2).build());
    let layout = Layout::new(&bucket::large()).unwrap();
    let store = bucket::store(&server);
    let held = store.buffer_bytes(2);
    let writer = ArrayWriter::new(orchestrator, layout, store, ArrayOptions::default()).unwrap();
    assert_eq!(writer.plan().store.0, held, "one shard of each level is being written");
}
