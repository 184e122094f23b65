//! A bucket that fails, is slow, or goes away: what passes is not noticed, what stays is an error in time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll::array::read::{Store, VerifyOptions};
use plimsoll::array::sink::{Sink, SinkError};
use plimsoll::array::{ArrayError, Begin};
use plimsoll_testkit::bucket::{Asked, Bucket, Misbehaviour};

use crate::bucket;

/// Every third request fails in one way after the other.
fn every_third(asked: &Asked) -> Misbehaviour {
    const WAYS: [Misbehaviour; 6] = [
        Misbehaviour::Status(500, "InternalError"),
        Misbehaviour::CutRequest,
        Misbehaviour::Status(503, "SlowDown"),
        Misbehaviour::CutAnswer,
        Misbehaviour::Slow(Duration::from_millis(300)),
        Misbehaviour::Status(500, "InternalError"),
    ];
    match asked.number % 3 {
        0 => WAYS[asked.number / 3 % WAYS.len()].clone(),
        _ => Misbehaviour::None,
    }
}

#[test]
fn a_bucket_that_fails_every_third_time_gets_every_byte() {
    let server = Bucket::start();
    for (name, spec, steps) in [("small", bucket::small(), 9), ("large", bucket::large(), 7)] {
        server.misbehave(every_third);
        let store = bucket::store_at(name, &bucket::options(&server));
        let bytes = bucket::elements(&spec, steps);
        bucket::write(store.clone(), &spec, &bytes, Begin::New).unwrap();
        let read = Store::open(store.clone()).unwrap();
        assert!(read.verify(&VerifyOptions::default()).unwrap().is_sound(), "read through the same faults");
        server.behave();
        bucket::same(&*store, &spec, &bytes);
        assert!(server.asked().len() > 30);
    }
}

#[test]
fn a_bucket_that_says_503_for_a_while_is_waited_for() {
    let server = Bucket::start();
    let (spec, begun) = (bucket::small(), Instant::now());
    server.misbehave(move |asked| match asked.number > 12 && begun.elapsed() < Duration::from_secs(4) {
        true => Misbehaviour::Status(503, "SlowDown"),
        false => Misbehaviour::None,
    });
    let (store, bytes) = (bucket::store(&server), bucket::elements(&spec, 5));
    bucket::write(store.clone(), &spec, &bytes, Begin::New).unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(4), "it really was away");
    bucket::same(&*store, &spec, &bytes);
}

#[test]
fn a_bucket_that_stays_away_is_an_error_in_time_and_what_was_finished_is_whole() {
    let slow = Misbehaviour::Slow(Duration::from_secs(60));
    let server = Bucket::start();
    for (name, how) in
        [("busy", Misbehaviour::Status(503, "SlowDown")), ("cut", Misbehaviour::CutRequest), ("slow", slow)]
    {
        let (spec, away) = (bucket::small(), how.clone());
        let shards = AtomicUsize::new(0);
        server.misbehave(move |asked| {
            let is_shard = asked.method == "PUT" && asked.target.contains("/c/");
            let number = if is_shard { shards.fetch_add(1, Ordering::Relaxed) } else { 0 };
            if is_shard && number >= 12 { away.clone() } else { Misbehaviour::None }
        });
        let mut options = bucket::options(&server);
        options.request_max = Duration::from_millis(500);
        options.retry_max = Duration::from_secs(2);
        let (store, bytes, begun) = (bucket::store_at(name, &options), bucket::elements(&spec, 9), Instant::now());
        let error = bucket::write(store.clone(), &spec, &bytes, Begin::New).unwrap_err();
        let ArrayError::Sink(error) = error else { panic!("{how:?}: {error}") };
        assert!(matches!(&*error, SinkError::Unreachable { .. }), "{how:?}: {error:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{how:?}: {:?}", begun.elapsed());
        server.behave();
        let store = bucket::store_at(name, &bucket::options(&server));
        let found = Store::open(store.clone()).unwrap().verify(&VerifyOptions::default()).unwrap();
        assert!(found.is_sound(), "{how:?}: {:?}", found.faults);
        bucket::write(store.clone(), &spec, &bytes, Begin::Resume).unwrap();
        bucket::same(&*store, &spec, &bytes);
    }
}

/// The answer that a shard of parts is whole is lost, again and again: it is found out and not taken for a failure.
#[test]
fn a_lost_answer_to_the_last_request_is_no_failure() {
    let server = Bucket::start();
    let completions = AtomicUsize::new(0);
    server.misbehave(move |asked| {
        if asked.method != "POST" || !asked.target.contains("uploadId=") {
            return Misbehaviour::None;
        }
        match completions.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            true => Misbehaviour::CutAnswer,
            // What S3 says to an upload that has become an object; this server says that it is done.
            false => Misbehaviour::Status(404, "NoSuchUpload"),
        }
    });
    let store = bucket::store(&server);
    for round in 0..2_u8 {
        let mut object = store.begin("0/c/0").unwrap();
        object.append(&vec![round; 9 << 20]).unwrap();
        object.finish().unwrap();
        assert_eq!(store.get("0/c/0", (9 << 20) - 1..9 << 20).unwrap(), [round]);
    }
    server.misbehave(|asked| match asked.method == "POST" && asked.target.contains("uploadId=") {
        true => Misbehaviour::Status(404, "NoSuchUpload"),
        false => Misbehaviour::None,
    });
    let mut object = store.begin("0/c/0").unwrap();
    object.append(&vec![9; 9 << 20]).unwrap();
    object.finish().unwrap_err();
    assert_eq!(store.get("0/c/0", 0..1).unwrap(), [1], "an upload that somebody removed is one");
}
