//! Parts that a writer left which died: the next one gives them up.

use std::time::{Duration, Instant};

use plimsoll::array::Begin;
use plimsoll::array::sink::Sink;
use plimsoll_testkit::bucket::{Asked, Bucket, Misbehaviour};

use crate::bucket;

/// Begins a shard of parts and dies: nobody gives back what went up.
fn die_in_a_shard(store: &dyn Sink, key: &str) {
    let mut object = store.begin(key).unwrap();
    object.append(&vec![7; 17 << 20]).unwrap();
    std::mem::forget(object);
}

fn asks_for_uploads(asked: &Asked) -> bool {
    asked.method == "GET" && asked.target.contains("uploads=")
}

#[test]
fn parts_of_a_writer_that_died_are_given_up_by_the_next_and_nobody_elses() {
    let server = Bucket::start();
    for (name, key) in [("out", "0/c/0/0"), ("out", "1/c/0/0"), ("out2", "0/c/0/0"), ("other", "0/c/0/0")] {
        die_in_a_shard(&*bucket::store_at(name, &bucket::options(&server)), key);
    }
    assert_eq!(server.uploads().len(), 4, "{:?}", server.uploads());
    let spec = bucket::large();
    let bytes = bucket::elements(&spec, 7);
    bucket::write(bucket::store(&server), &spec, &bytes, Begin::Resume).unwrap();
    bucket::same(&*bucket::store(&server), &spec, &bytes);
    let mut left = server.uploads();
    left.sort_unstable();
    assert_eq!(left, ["runs/other.zarr/0/c/0/0", "runs/out2.zarr/0/c/0/0"]);
}

/// A writer that is cut off cannot give its parts back either.
#[test]
fn a_writer_that_was_cut_off_within_a_shard_is_gone_on_with_and_nothing_is_left() {
    let server = Bucket::start();
    let spec = bucket::large();
    let bytes = bucket::elements(&spec, 12);
    let mut options = bucket::options(&server);
    (options.request_max, options.retry_max) = (Duration::from_secs(1), Duration::from_secs(1));
    server.misbehave(|asked| match asked.target.contains("partNumber=2") || asked.method == "DELETE" {
        true => Misbehaviour::CutRequest,
        false => Misbehaviour::None,
    });
    bucket::write(bucket::store_at("out", &options), &spec, &bytes, Begin::New).unwrap_err();
    server.behave();
    assert!(!server.uploads().is_empty(), "it left parts");
    bucket::write(bucket::store(&server), &spec, &bytes, Begin::Resume).unwrap();
    bucket::same(&*bucket::store(&server), &spec, &bytes);
    assert_eq!(server.uploads(), [""; 0]);
}

#[test]
fn a_bucket_that_is_busy_slow_or_drops_is_swept_all_the_same() {
    let server = Bucket::start();
    let slow = Misbehaviour::Slow(Duration::from_millis(700));
    for how in [Misbehaviour::Status(503, "SlowDown"), Misbehaviour::CutRequest, Misbehaviour::CutAnswer, slow] {
        die_in_a_shard(&*bucket::store(&server), "0/c/0/0");
        let (begun, of_first) = (Instant::now(), how.clone());
        server.misbehave(move |asked| match begun.elapsed() < Duration::from_secs(2) {
            true if asks_for_uploads(asked) || asked.method == "DELETE" => of_first.clone(),
            _ => Misbehaviour::None,
        });
        drop(bucket::store(&server).lock().unwrap());
        server.behave();
        assert_eq!(server.uploads(), [""; 0], "{how:?}");
    }
}

#[test]
fn a_bucket_that_does_not_say_what_was_left_is_written_to_all_the_same() {
    let server = Bucket::start();
    let ways = [(403, "AccessDenied"), (501, "NotImplemented"), (500, "InternalError")];
    for (name, (status, code)) in ["denied", "none", "broken"].into_iter().zip(ways) {
        let how = Misbehaviour::Status(status, code);
        server.misbehave(move |asked| if asks_for_uploads(asked) { how.clone() } else { Misbehaviour::None });
        let (spec, store) = (bucket::small(), bucket::store_at(name, &bucket::options(&server)));
        let bytes = bucket::elements(&spec, 5);
        bucket::write(store.clone(), &spec, &bytes, Begin::New).unwrap();
        bucket::same(&*store, &spec, &bytes);
    }
    let asked = server.asked().iter().filter(|asked| asks_for_uploads(asked)).count();
    assert_eq!(asked, 1 + 1 + 6, "who refuses is not asked again, who is busy a few times");
}
