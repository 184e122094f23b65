//! Going on where an earlier run ended.

use std::io::{self, Cursor};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll::array::sink::{Memory, Operation};
use plimsoll::array::{ArrayError, ArrayOptions, ArraySpec, ArrayWriter, Begin, Layout, Reduction, write_array};

use crate::cases;

fn resuming() -> ArrayOptions {
    ArrayOptions { begin: Begin::Resume, ..ArrayOptions::default() }
}

fn write(store: &Arc<Memory>, spec: &ArraySpec, bytes: &[u8]) -> Result<u64, ArrayError> {
    let (layout, input) = (Layout::new(spec).unwrap(), Cursor::new(bytes.to_vec()));
    write_array(&cases::orchestrator(2), layout, store.clone(), input, &resuming()).map(|summary| summary.resumed)
}

/// A run that ends at its n-th call to the store, and one that goes on: for every n until none fails.
#[test]
fn a_run_that_was_cut_anywhere_goes_on_to_the_same_store() {
    let halved = Some(["z", "y", "x"].map(|name| name.parse().unwrap()).to_vec());
    for spec in [cases::frames(), ArraySpec { axes: halved, ..cases::frames() }] {
        let bytes = cases::elements(&spec, 21);
        let whole = Arc::new(Memory::default());
        write(&whole, &spec, &bytes).unwrap();
        let mut resumed = Vec::new();
        for nth in 0.. {
            let (store, count) = (Arc::new(Memory::default()), AtomicUsize::new(0));
            store.fail_when(move |operation, _| {
                let writes = [Operation::Put, Operation::Begin, Operation::Append, Operation::Finish];
                let is_it = writes.contains(&operation) && count.fetch_add(1, Ordering::Relaxed) >= nth;
                is_it.then_some(io::ErrorKind::ConnectionReset)
            });
            let cut = write(&store, &spec, &bytes);
            store.heal();
            resumed.push(write(&store, &spec, &bytes).unwrap());
            assert!(*store.objects() == *whole.objects(), "cut at call {nth}");
            if cut.is_ok() {
                break;
            }
        }
        assert!(resumed.iter().any(|steps| *steps > 0) && resumed.contains(&0), "{resumed:?}");
    }
}

#[test]
fn an_array_goes_on_growing_after_it_was_closed() {
    let spec = cases::frames();
    let (bytes, step) = (cases::elements(&spec, 30), 50 * 37 * 2);
    let store = cases::write(&spec, &bytes[..10 * step], 2, step);
    let layout = Layout::new(&spec).unwrap();
    let mut writer = ArrayWriter::new(cases::orchestrator(2), layout, store.clone(), resuming()).unwrap();
    assert_eq!(writer.first(), 8, "the last whole shard");
    writer.append(&bytes[8 * step..]).unwrap();
    assert_eq!(writer.close().unwrap().steps, 30);
    assert!(*store.objects() == *cases::write(&spec, &bytes, 1, step).objects());
}

#[test]
fn another_array_is_not_gone_on_with() {
    let spec = cases::frames();
    let store = cases::write(&spec, &cases::elements(&spec, 10), 2, 1_000);
    let before = store.objects().clone();
    for (other, named) in [
        (ArraySpec { codec: "zstd:5".parse().unwrap(), ..spec.clone() }, "another codecs than"),
        (ArraySpec { chunk: vec![2, 32, 32], ..spec.clone() }, "another codecs than"),
        (ArraySpec { shard: Some(vec![8, 32, 32]), ..spec.clone() }, "another chunk_grid than"),
        (ArraySpec { shape: vec![0, 50, 38], ..spec.clone() }, "another shape than"),
        (ArraySpec { data_type: plimsoll::array::DataType::I16, ..spec.clone() }, "another data_type than"),
        (ArraySpec { fill: "7".parse().unwrap(), ..spec.clone() }, "another fill_value than"),
        (ArraySpec { reduction: Reduction::Max, ..spec.clone() }, "scales"),
        (ArraySpec { levels: plimsoll::array::Levels::Count(2), ..spec.clone() }, "3 levels, not 2"),
    ] {
        let error = write(&store, &other, &[]).unwrap_err();
        assert!(matches!(&error, ArrayError::NotResumable { why } if why.contains(named)), "{named}: {error}");
    }
    assert!(*store.objects() == before);
}

#[test]
fn what_is_there_is_left_if_less_comes() {
    let spec = cases::frames();
    let (bytes, step) = (cases::elements(&spec, 10), 50 * 37 * 2);
    let store = cases::write(&spec, &bytes, 2, step);
    let before = store.objects().clone();
    for steps in [8, 9] {
        let error = write(&store, &spec, &bytes[..steps * step]).unwrap_err();
        assert!(matches!(error, ArrayError::Shorter { there: 10, .. }), "{error}");
        assert!(*store.objects() == before, "{steps} steps");
    }
}

#[test]
fn what_a_cut_run_left_behind_the_end_is_removed() {
    let spec = cases::frames();
    let bytes = cases::elements(&spec, 10);
    let store = cases::write(&spec, &bytes, 2, 1_000);
    let whole = store.objects().clone();
    let shard = whole["0/c/0/0/0"].clone();
    store.objects().insert("0/c/7/0/0".to_owned(), shard);
    write(&store, &spec, &bytes).unwrap();
    assert!(*store.objects() == whole);
}

#[test]
fn an_input_that_is_shorter_than_what_is_there_is_an_error() {
    let spec = cases::frames();
    let bytes = cases::elements(&spec, 10);
    let store = cases::write(&spec, &bytes, 2, 1_000);
    let error = write(&store, &spec, &bytes[..100]).unwrap_err();
    assert!(matches!(error, ArrayError::Input(_)), "{error}");
}

/// Whatever is written again: no level names fewer steps than before, at any call to the store.
#[test]
fn no_level_gets_shorter_while_it_is_resumed() {
    let halved = Some(["z", "y", "x"].map(|name| name.parse().unwrap()).to_vec());
    let spec = ArraySpec { axes: halved, ..cases::frames() };
    let bytes = cases::elements(&spec, 60);
    let step = bytes.len() / 60;
    let store = cases::write(&spec, &bytes[..43 * step], 2, step);
    let (seen, lowest) = (store.clone(), Arc::new(std::sync::Mutex::new(vec![u64::MAX; 3])));
    let noted = Arc::clone(&lowest);
    store.fail_when(move |_, _| {
        for (level, least) in noted.lock().unwrap().iter_mut().enumerate() {
            let metadata: serde_json::Value =
                serde_json::from_slice(&seen.objects()[&format!("{level}/zarr.json")]).unwrap();
            *least = (*least).min(metadata["shape"][0].as_u64().unwrap());
        }
        None
    });
    assert!(write(&store, &spec, &bytes).unwrap() < 43);
    assert_eq!(*lowest.lock().unwrap(), [43, 22, 11]);
}

#[test]
fn a_reader_is_written_by_one_writer_at_a_time() {
    let (store, spec) = (Arc::new(Memory::default()), cases::frames());
    let lock = plimsoll::array::sink::Sink::lock(&*store).unwrap();
    let error = write(&store, &spec, &[]).unwrap_err();
    assert!(matches!(error, ArrayError::Sink(_)), "{error}");
    drop(lock);
    let (is_open, seen) = (Arc::new(AtomicUsize::new(0)), store.clone());
    let count = Arc::clone(&is_open);
    store.fail_when(move |operation, _| {
        let is_free = operation == Operation::Put && plimsoll::array::sink::Sink::lock(&*seen).is_ok();
        count.fetch_add(usize::from(is_free), Ordering::Relaxed);
        None
    });
    write(&store, &spec, &cases::elements(&spec, 9)).unwrap();
    assert_eq!(is_open.load(Ordering::Relaxed), 0, "it is held until the last object is written");
}
