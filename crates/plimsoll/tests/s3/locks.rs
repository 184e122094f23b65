//! One writer at a time, also after a writer has died, and when it cannot be heard.

use std::time::{Duration, Instant};

use plimsoll::array::sink::{Sink, SinkError};
use plimsoll::array::{ArrayError, Begin};
use plimsoll_testkit::bucket::{Bucket, Misbehaviour};

use crate::bucket;

#[test]
fn a_second_writer_is_refused_while_the_first_lives() {
    let server = Bucket::start();
    let lock = bucket::store(&server).lock().unwrap();
    let spec = bucket::small();
    let error = bucket::write(bucket::store(&server), &spec, &[], Begin::Resume).unwrap_err();
    let ArrayError::Sink(error) = error else { panic!("{error}") };
    assert!(matches!(&*error, SinkError::Locked { .. }), "{error}");
    assert!(bucket::store(&server).list("").unwrap().is_empty(), "the lock is no object");
    drop(lock);
    bucket::write(bucket::store(&server), &spec, &[], Begin::Resume).unwrap();
}

/// How many of six that ask for the lock at once get it, each holding it for longer than others watch it.
fn writers_at_once(server: &Bucket) -> usize {
    let tries = || {
        let store = bucket::store(server);
        move || match store.lock() {
            Ok(lock) => {
                std::thread::sleep(Duration::from_secs(12));
                drop(lock);
                true
            }
            Err(SinkError::Locked { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    };
    let all: Vec<_> = (0..6).map(|_| std::thread::spawn(tries())).collect();
    all.into_iter().map(|one| one.join().unwrap()).filter(|is_writer| *is_writer).count()
}

#[test]
fn of_several_that_come_at_once_one_is_the_writer() {
    assert_eq!(writers_at_once(&Bucket::start()), 1);
}

/// They watch the same lock, and find it dead at the same time.
#[test]
fn of_several_that_find_a_dead_writer_one_takes_over() {
    let server = Bucket::start();
    bucket::store(&server).put(".writer", b"of somebody who is gone").unwrap();
    assert_eq!(writers_at_once(&server), 1);
}

#[test]
fn the_lock_of_a_writer_that_died_is_taken_over_after_a_while() {
    let server = Bucket::start();
    // What a killed writer leaves: nobody renews it.
    bucket::store(&server).put(".writer", b"of somebody who is gone").unwrap();
    let begun = Instant::now();
    let lock = bucket::store(&server).lock().unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(7), "it was watched first");
    drop(lock);
    assert_eq!(bucket::store(&server).size(".writer").unwrap(), None);
}

#[test]
fn a_writer_that_cannot_be_heard_writes_no_more_until_it_knows_that_nobody_took_over() {
    let server = Bucket::start();
    let mut options = bucket::options(&server);
    (options.request_max, options.retry_max) = (Duration::from_secs(1), Duration::from_secs(1));
    let store = bucket::store_at("out", &options);
    let lock = store.lock().unwrap();
    server.misbehave(|asked| match asked.target.ends_with(".writer") && asked.method != "GET" {
        true => Misbehaviour::CutRequest,
        false => Misbehaviour::None,
    });
    std::thread::sleep(Duration::from_millis(6_500));
    let error = store.put("0/c/0", b"late").unwrap_err();
    assert!(matches!(error, SinkError::LockLost { .. }), "{error}");
    server.behave();
    std::thread::sleep(Duration::from_secs(3));
    store.put("0/c/0", b"ours as before").unwrap();
    drop(lock);
}

/// The lock was made, but its maker never heard of it: it is its own all the same.
#[test]
fn a_lost_answer_does_not_lock_its_own_writer_out() {
    let server = Bucket::start();
    server.misbehave(|asked| match asked.method == "PUT" && asked.number == 0 {
        true => Misbehaviour::CutAnswer,
        false => Misbehaviour::None,
    });
    drop(bucket::store(&server).lock().unwrap());
    assert!(server.asked().len() >= 3);
}
