//! Ends: of the input, of the store, and of the caller's patience.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll::array::read::{Store, VerifyOptions};
use plimsoll::array::sink::{Memory, Operation};
use plimsoll::array::{ArrayError, ArrayOptions, ArraySpec, ArrayWriter, Begin, Layout, write_array};

use crate::cases;

const STEP: usize = 50 * 37 * 2;

fn begin(store: &Arc<Memory>, spec: &ArraySpec, options: ArrayOptions) -> Result<ArrayWriter, ArrayError> {
    ArrayWriter::new(cases::orchestrator(2), Layout::new(spec).unwrap(), store.clone(), options)
}

#[test]
fn an_input_that_ends_within_a_step_keeps_the_steps_before() {
    let (store, spec) = (Arc::new(Memory::default()), cases::frames());
    let mut writer = begin(&store, &spec, ArrayOptions::default()).unwrap();
    let bytes = cases::elements(&spec, 6);
    writer.append(&bytes[..5 * STEP + 7]).unwrap();
    let error = writer.close().unwrap_err();
    assert!(matches!(error, ArrayError::PartOfStep { rest: 7, step } if step == STEP as u64), "{error}");
    assert!(cases::read(&store, 0) == (vec![5, 50, 37], bytes[..5 * STEP].to_vec()));
}

#[test]
fn more_than_an_array_holds_is_refused() {
    let (store, mut spec) = (Arc::new(Memory::default()), cases::frames());
    spec.shape[0] = 3;
    let mut writer = begin(&store, &spec, ArrayOptions::default()).unwrap();
    let bytes = cases::elements(&spec, 4);
    let error = writer.append(&bytes).unwrap_err();
    assert!(matches!(error, ArrayError::TooMany { steps: 3 }), "{error}");
    assert_eq!(writer.close().unwrap().steps, 3, "what it holds is there");
    assert!(cases::read(&store, 0).1 == bytes[..3 * STEP]);
    let (store, input) = (Arc::new(Memory::default()), io::Cursor::new(bytes.clone()));
    let (layout, options) = (Layout::new(&spec).unwrap(), ArrayOptions::default());
    let error = write_array(&cases::orchestrator(2), layout, store.clone(), input, &options).unwrap_err();
    assert!(matches!(error, ArrayError::TooMany { steps: 3 }), "of a reader: {error}");
    assert!(cases::read(&store, 0).1 == bytes[..3 * STEP]);
}

#[test]
fn a_store_that_fails_ends_it_with_the_first_cause_and_published_steps_are_whole() {
    let spec = cases::frames();
    let bytes = cases::elements(&spec, 40);
    for nth in [0, 1, 3, 9, 20] {
        let (store, count) = (Arc::new(Memory::default()), AtomicUsize::new(0));
        store.fail_when(move |operation, _| {
            let is_it = operation == Operation::Append && count.fetch_add(1, Ordering::Relaxed) == nth;
            is_it.then_some(io::ErrorKind::StorageFull)
        });
        let mut writer = begin(&store, &spec, ArrayOptions::default()).unwrap();
        let appended = bytes.chunks(STEP).try_for_each(|step| writer.append(step));
        let error = appended.and_then(|()| writer.close().map(|_| ())).unwrap_err();
        assert!(matches!(error, ArrayError::Sink(_)), "{nth}: {error}");
        store.heal();
        let found = Store::open(store.clone()).unwrap().verify(&VerifyOptions::default()).unwrap();
        assert!(found.is_sound(), "{nth}: {:?}", found.faults);
        let (shape, there) = cases::read(&store, 0);
        assert_eq!(shape[0] % 4, 0, "{nth}: whole shards");
        assert!(there == bytes[..there.len()], "{nth}");
    }
}

#[test]
fn a_slow_store_keeps_nobody_longer_than_allowed() {
    let (store, spec) = (Arc::new(Memory::default()), cases::frames());
    let spec = ArraySpec { shape: vec![0, 1024, 1024], chunk: vec![1, 256, 256], shard: None, ..spec };
    store.fail_when(|operation, key| {
        if operation == Operation::Put && key.contains("/c/") {
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    });
    let patience = Duration::from_millis(1);
    let options = ArrayOptions { append_wait_max: patience, ..ArrayOptions::default() };
    let mut writer = begin(&store, &spec, options).unwrap();
    let (frame, mut sent) = (vec![7; 2 << 20], 0);
    let error = loop {
        match writer.append(&frame) {
            Ok(()) => sent += frame.len(),
            Err(error) => break error,
        }
        assert!(sent < 4 << 30, "back-pressure never came");
    };
    let ArrayError::Busy { waited, taken } = error else { panic!("{error}") };
    assert_eq!(waited, patience);
    sent += taken;
    assert!(writer.try_append(&frame).unwrap() < frame.len(), "a full writer takes no whole frame");
    drop(writer);
    let published = cases::read(&store, 0).0[0];
    assert!(published * (2 << 20) <= sent as u64);
}

/// Steps of a terabyte: nothing is allocated for them, nothing is begun, and the store is anybody's.
#[test]
fn what_no_memory_of_this_machine_holds_is_refused_before_anything_is_touched() {
    let store = Arc::new(Memory::default());
    let spec = ArraySpec {
        shape: vec![0, 1 << 20, 1 << 19],
        chunk: vec![1, 1 << 10, 1 << 10],
        shard: None,
        ..cases::frames()
    };
    let spec = ArraySpec { levels: plimsoll::array::Levels::Count(1), ..spec };
    for _ in 0..2 {
        let error = begin(&store, &spec, ArrayOptions::default()).unwrap_err();
        assert!(matches!(error, ArrayError::NeverFits { least, line } if least > line), "{error}");
    }
    assert!(store.objects().is_empty());
}

#[test]
fn a_second_writer_is_refused() {
    let (store, spec) = (Arc::new(Memory::default()), cases::frames());
    let first = begin(&store, &spec, ArrayOptions::default()).unwrap();
    let options = ArrayOptions { begin: Begin::Resume, ..ArrayOptions::default() };
    let error = begin(&store, &spec, options.clone()).unwrap_err();
    assert!(matches!(error, ArrayError::Sink(_)), "{error}");
    drop(first);
    drop(begin(&store, &spec, options).unwrap());
}

/// Whoever appends holds the store from the first object to the last, also while it closes.
#[test]
fn nobody_else_may_write_before_the_last_object_is_there() {
    let (store, spec) = (Arc::new(Memory::default()), cases::frames());
    let (free, seen) = (Arc::new(AtomicUsize::new(0)), store.clone());
    let count = Arc::clone(&free);
    store.fail_when(move |operation, _| {
        let writes = matches!(operation, Operation::Put | Operation::Begin | Operation::Finish);
        // A lock that is taken here is given back at once.
        let is_free = writes && plimsoll::array::sink::Sink::lock(&*seen).is_ok();
        count.fetch_add(usize::from(is_free), Ordering::Relaxed);
        None
    });
    let mut writer = begin(&store, &spec, ArrayOptions::default()).unwrap();
    writer.append(&cases::elements(&spec, 9)).unwrap();
    writer.close().unwrap();
    assert_eq!(free.load(Ordering::Relaxed), 0);
}

/// A group is read by whoever finds it: every level that it names is there before it is.
#[test]
fn a_group_appears_after_its_levels() {
    let (store, spec) = (Arc::new(Memory::default()), cases::frames());
    let (early, seen) = (Arc::new(AtomicUsize::new(0)), store.clone());
    let count = Arc::clone(&early);
    store.fail_when(move |operation, key| {
        let levels = || (0..3).all(|level| seen.objects().contains_key(&format!("{level}/zarr.json")));
        let is_early = operation == Operation::Put && key == "zarr.json" && !levels();
        count.fetch_add(usize::from(is_early), Ordering::Relaxed);
        None
    });
    begin(&store, &spec, ArrayOptions::default()).unwrap().close().unwrap();
    assert_eq!(early.load(Ordering::Relaxed), 0);
    assert!(store.objects().contains_key("zarr.json"));
}

/// What is left of a store that was being removed is still one that may be removed.
#[test]
fn a_replacement_that_was_cut_anywhere_is_made_again() {
    let spec = cases::frames();
    let bytes = cases::elements(&spec, 9);
    let whole = cases::write(&spec, &bytes, 1, STEP);
    let options = ArrayOptions { begin: Begin::Replace, ..ArrayOptions::default() };
    for nth in 0.. {
        let (store, count) = (cases::write(&spec, &bytes[..5 * STEP], 1, STEP), AtomicUsize::new(0));
        store.fail_when(move |operation, _| {
            let is_it = operation == Operation::Delete && count.fetch_add(1, Ordering::Relaxed) >= nth;
            is_it.then_some(io::ErrorKind::ConnectionReset)
        });
        let cut = begin(&store, &spec, options.clone()).map(drop);
        store.heal();
        let mut writer = begin(&store, &spec, options.clone()).unwrap_or_else(|error| panic!("cut at {nth}: {error}"));
        writer.append(&bytes).unwrap();
        writer.close().unwrap();
        assert!(*store.objects() == *whole.objects(), "cut at {nth}");
        if cut.is_ok() {
            return;
        }
    }
}

#[test]
fn what_is_there_is_not_written_over_unasked() {
    let spec = cases::frames();
    let store = cases::write(&spec, &cases::elements(&spec, 4), 1, STEP);
    let error = begin(&store, &spec, ArrayOptions::default()).unwrap_err();
    assert!(matches!(error, ArrayError::Exists { .. }), "{error}");
    let foreign = Arc::new(Memory::default());
    foreign.objects().insert("thesis.tex".to_owned(), vec![1]);
    let options = ArrayOptions { begin: Begin::Replace, ..ArrayOptions::default() };
    for options in [options.clone(), ArrayOptions { begin: Begin::Resume, ..options.clone() }, ArrayOptions::default()]
    {
        let error = begin(&foreign, &spec, options).unwrap_err();
        assert!(matches!(error, ArrayError::NotOurs { .. }), "{error}");
    }
    assert_eq!(foreign.objects().len(), 1);
    begin(&store, &spec, options).unwrap().close().unwrap();
    assert_eq!(cases::read(&store, 0).0[0], 0);
}
