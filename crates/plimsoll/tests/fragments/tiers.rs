//! The tiers below devices: found in the nearest, damaged in none unnoticed, fetched once.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

use plimsoll::Bytes;
use plimsoll::fragments::{FragmentError, HoldError, HoldRequest, Holder, PullWatch};
use plimsoll::{Buffer, Context, DeviceKind, Fault, Footprint, Ladder, Place, Rung, Session, Task, Workload};
use std::sync::Arc;

use crate::devices::{GPU, orchestrator};
use crate::model::{self, Serving};

/// Changes a byte of the only object below a folder that has this size.
fn corrupt_file(root: &Path, bytes: u64) {
    for folder in fs::read_dir(root.join("objects")).unwrap().map(|folder| folder.unwrap().path()) {
        for path in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
            if fs::metadata(&path).unwrap().len() == bytes {
                let mut content = fs::read(&path).unwrap();
                content[bytes as usize / 2] ^= 1;
                fs::write(&path, content).unwrap();
                return;
            }
        }
    }
    panic!("no object of {bytes} bytes");
}

#[test]
fn a_changed_byte_is_found_in_every_tier() {
    let orchestrator = orchestrator(Bytes::mib(256));
    let packed = model::packed(&orchestrator);
    let serving = Serving::of(&packed);
    let store = model::store(&orchestrator, &packed, Bytes::mib(64));
    let stored = store.open_url(&serving.url).unwrap();
    let fragment = stored.model().index.tensor("gaussian").unwrap().pieces[0][4];
    let right = stored.fragment(&fragment).unwrap();

    // In memory: found, and taken from disk.
    assert!(stored.corrupt_in_memory(&fragment));
    let served = serving.served.load(Ordering::Relaxed);
    assert_eq!(stored.fragment(&fragment).unwrap(), right);
    assert_eq!(serving.served.load(Ordering::Relaxed), served, "the disk has it");

    // On disk: found, and fetched again.
    stored.drop_from_memory(&fragment);
    corrupt_file(store.disk().root(), fragment.bytes);
    assert_eq!(stored.fragment(&fragment).unwrap(), right);
    assert_eq!(serving.served.load(Ordering::Relaxed), served + fragment.bytes);

    // On disk, and nobody to ask: an error.
    let url = serving.url.clone();
    drop(serving);
    stored.drop_from_memory(&fragment);
    corrupt_file(store.disk().root(), fragment.bytes);
    let alone = store.open_url(&url).unwrap();
    assert!(!alone.has_server());
    assert!(matches!(alone.fragment(&fragment), Err(FragmentError::Damaged { .. })));

    // On a device: found when it is read back, and brought again.
    let file = store.open_file(&packed.path).unwrap();
    let holder = Holder::hold(&orchestrator, &file, HoldRequest::new(GPU).tensors(["tails"])).unwrap().wait().unwrap();
    let decoded = holder.decode("tails").unwrap().weights;
    assert_eq!(holder.verify().unwrap(), 0);
    let spoil = orchestrator.register(Spoil);
    let buffer = Arc::clone(&holder.buffers("tails").unwrap()[0][2]);
    orchestrator.run(&spoil, Task::new(buffer).devices([GPU])).unwrap();
    assert_eq!(holder.verify().unwrap(), 1);
    assert_eq!(holder.verify().unwrap(), 0);
    assert_eq!(holder.decode("tails").unwrap().weights, decoded);

    // In the file itself: an error.
    let mut bytes = fs::read(&packed.path).unwrap();
    bytes[fragment.offset as usize + 7] ^= 1;
    let damaged = packed.folder.path().join("damaged.frags");
    fs::write(&damaged, bytes).unwrap();
    let damaged = store.open_file(&damaged).unwrap();
    assert!(matches!(damaged.fragment(&fragment), Err(FragmentError::Damaged { .. })));
}

/// Levels go from memory to a device without being read twice: what is damaged is noticed on the way, and taken from below.
#[test]
fn a_level_that_memory_has_damaged_reaches_no_device() {
    let orchestrator = orchestrator(Bytes::mib(256));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(64));
    let file = store.open_file(&packed.path).unwrap();
    let pieces = file.model().index.tensor("tails").unwrap().pieces[0].clone();
    for fragment in &pieces {
        file.fragment(fragment).unwrap();
        assert!(file.corrupt_in_memory(fragment));
    }
    let read = store.bytes().read;
    let hold = || Holder::hold(&orchestrator, &file, HoldRequest::new(GPU).tensors(["tails"])).unwrap().wait();
    let holder = hold().unwrap();
    let weights: Vec<u8> = packed.tensors[1].1.iter().flat_map(|x| x.to_le_bytes()).collect();
    assert!(holder.restore("tails").unwrap() == weights, "the very bytes");
    assert_eq!(holder.verify().unwrap(), 0);
    let all: u64 = pieces.iter().map(|fragment| fragment.bytes).sum();
    assert_eq!(store.bytes().read - read, all, "each from the tier below, once");
    drop(holder);

    // The file is all that is left, and has it damaged too.
    let mut bytes = fs::read(&packed.path).unwrap();
    bytes[pieces[2].offset as usize + 7] ^= 1;
    fs::write(&packed.path, bytes).unwrap();
    assert!(file.corrupt_in_memory(&pieces[2]));
    let refused = hold().map(drop);
    assert!(matches!(&refused, Err(HoldError::Fragments(_))), "{refused:?}");
    assert_eq!(orchestrator.reports()[1].promised, Bytes::ZERO);
}

/// Writes over the beginning of a buffer, as a broken device would.
struct Spoil;

impl Workload for Spoil {
    type Input = Arc<Buffer>;
    type Reference = ();
    type Prepared = ();
    type Output = ();

    fn name(&self) -> &str {
        "spoil"
    }

    fn ladder(&self, _: &Arc<Buffer>) -> Ladder {
        Ladder::from(vec![Rung::new("gpu", Place::On(DeviceKind::Gpu), Footprint::default())])
    }

    fn open(&self, _: &Rung, _: &Arc<Buffer>, _: &mut dyn plimsoll::Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(Spoil))
    }
}

impl Session<Self> for Spoil {
    fn run(&mut self, buffer: &Arc<Buffer>, context: &mut Context<'_, Self>) -> Result<(), Fault> {
        context.backend.write(buffer, Bytes(buffer.bytes().0 - 4), &[1, 2, 3, 4])
    }
}

#[test]
fn many_who_ask_are_one_fetch_and_memory_keeps_its_bound() {
    let orchestrator = orchestrator(Bytes::mib(256));
    let packed = model::packed(&orchestrator);
    let serving = Serving::of(&packed);
    let memory = Bytes(60_000);
    let store = model::store(&orchestrator, &packed, memory);
    let stored = store.open_url(&serving.url).unwrap();
    let wanted = stored.model().index.fragments_for(1.0);
    let all: u64 = wanted.iter().map(|fragment| fragment.bytes).sum();
    let before = serving.served.load(Ordering::Relaxed);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for fragment in &wanted {
                    assert_eq!(stored.fragment(fragment).unwrap().len() as u64, fragment.bytes);
                    assert!(store.bytes().in_memory <= memory.0);
                }
            });
        }
    });
    assert_eq!(serving.served.load(Ordering::Relaxed) - before, all, "six ask, each byte comes once");
    assert_eq!(stored.pull(1.0, &PullWatch::default()).unwrap().fetched, 0);
}

/// Whoever asks for what somebody is just reading waits for him.
#[test]
fn many_who_ask_read_the_disk_once() {
    let orchestrator = orchestrator(Bytes::mib(256));
    let packed = model::packed(&orchestrator);
    for round in 0..20 {
        let store = model::store(&orchestrator, &packed, Bytes::mib(16));
        let stored = store.open_file(&packed.path).unwrap();
        let wanted = stored.model().index.fragments_for(1.0);
        let all: u64 = wanted.iter().map(|fragment| fragment.bytes).sum();
        let at_once = std::sync::Barrier::new(6);
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    at_once.wait();
                    wanted.iter().for_each(|fragment| drop(stored.fragment(fragment).unwrap()));
                });
            }
        });
        assert_eq!(store.bytes().read, all, "in round {round}");
    }
}

/// Another process made room on disk while it lay in memory: what leaves memory goes down a tier, and is not fetched again.
#[test]
fn what_leaves_memory_goes_to_disk_and_is_not_dropped() {
    let orchestrator = orchestrator(Bytes::mib(256));
    let packed = model::packed(&orchestrator);
    let serving = Serving::of(&packed);
    let store = model::store(&orchestrator, &packed, Bytes(120_000));
    let stored = store.open_url(&serving.url).unwrap();
    stored.pull(1.0, &PullWatch::default()).unwrap();
    let served = serving.served.load(Ordering::Relaxed);
    let planes = |name: &str| stored.model().index.tensor(name).unwrap().pieces[0][..5].to_vec();
    let (once, often) = (planes("outliers"), planes("gaussian"));
    for fragment in &once {
        stored.fragment(fragment).unwrap();
        let name = fragment.digest.to_string();
        fs::remove_file(store.disk().root().join("objects").join(&name[..2]).join(&name[2..])).unwrap();
    }
    assert!(once.iter().all(|fragment| stored.is_in_memory(fragment)));
    for _ in 0..5 {
        often.iter().for_each(|fragment| drop(stored.fragment(fragment).unwrap()));
    }
    let left: Vec<_> = once.iter().filter(|fragment| !stored.is_in_memory(fragment)).collect();
    assert!(!left.is_empty(), "there is no room for both");
    assert!(left.iter().all(|fragment| store.disk().has((*fragment).into())));
    once.iter().for_each(|fragment| drop(stored.fragment(fragment).unwrap()));
    assert_eq!(serving.served.load(Ordering::Relaxed), served, "one tier always had it");
}

#[test]
fn pins_hints_and_prefetch() {
    let orchestrator = orchestrator(Bytes::mib(256));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes(150_000));
    let stored = store.open_file(&packed.path).unwrap();
    stored.pin(&["outliers"], 0.9).unwrap();
    stored.prefetch(&["outliers"], 0.9).unwrap().join().unwrap().unwrap();
    let index = &stored.model().index;
    let tensor = index.tensor("outliers").unwrap();
    let pinned = &tensor.pieces[0][..=tensor.level_for(0.9)];
    assert!(pinned.iter().all(|fragment| stored.is_in_memory(fragment)));
    // Others are used far more often, and there is no room for all of them.
    let go_through = || {
        for fragment in
            (0..5).flat_map(|_| ["gaussian", "tails"]).flat_map(|name| &index.tensor(name).unwrap().pieces[0][..5])
        {
            stored.fragment(fragment).unwrap();
        }
    };
    go_through();
    assert!(pinned.iter().all(|fragment| stored.is_in_memory(fragment)), "whatever went through");
    assert!(store.bytes().in_memory <= 150_000);
    stored.unpin().unwrap();
    go_through();
    assert!(!pinned.iter().all(|fragment| stored.is_in_memory(fragment)), "nothing keeps it any more");
    assert!(stored.pin(&["nothing"], 1.0).is_err() && stored.hint(&["nothing"], 1.0).is_err());
}
