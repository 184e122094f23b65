//! The suite's part on `Device::fetch`: bytes out of a device without a slot.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::{Buffer, Device, FenceState, check};

use super::Subject;
use super::piece::{Weight, record};

/// More words than any staging buffer has.
const LARGE: Weight = Weight { words: 1_300_001, ..Weight::LIGHT };

/// Words of a buffer from `first` on, fetched.
fn fetched(subject: &Subject, buffer: &Buffer, first: usize, count: usize) -> Vec<u32> {
    fetch(&*subject.device, buffer, first, count).expect("a fetch")
}

fn fetch(device: &dyn Device, buffer: &Buffer, first: usize, count: usize) -> Result<Vec<u32>, Fault> {
    let mut words = vec![0_u32; count];
    device.fetch(buffer, Bytes(4 * first as u64), bytemuck::cast_slice_mut(&mut words))?;
    Ok(words)
}

/// Whole buffers and parts of them, at any offset and of any length, by several threads at once, while a slot works.
pub fn fetches_bytes_from_any_thread(subject: &Subject) {
    let mut slot = subject.slot();
    let buffer = record(&mut *slot, 5, LARGE);
    slot.finish().expect("work like any other");
    let (wanted, done) = (LARGE.output(5), AtomicBool::new(false));
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(SeqCst) || rounds == 0 {
                check::known_answer(&mut *slot).expect("right while others fetch");
                rounds += 1;
            }
        });
        let fetching = [0, 1].map(|offset| {
            let (buffer, wanted) = (&buffer, &wanted);
            scope.spawn(move || {
                for (first, count) in [(0, LARGE.words), (3, 1), (7, 4097), (LARGE.words - 5, 4), (262_143, 600_003)] {
                    let first = first + offset;
                    let count = count.min(LARGE.words - first);
                    let got = fetch(&*subject.device, buffer, first, count).expect("a fetch");
                    assert!(got == wanted[first..][..count], "{count} words from {first}");
                }
                assert!(fetched(subject, buffer, LARGE.words, 0).is_empty(), "nothing, from the very end");
            })
        });
        let fetched = fetching.map(thread::ScopedJoinHandle::join);
        done.store(true, SeqCst);
        working.join().expect("the slot's work");
        fetched.into_iter().for_each(|fetched| fetched.expect("right bytes"));
    });
    drop(slot);
    assert_eq!(subject.ours(), LARGE.bytes(), "nothing but the buffer");
    assert!(fetched(subject, &buffer, 1, LARGE.words - 1) == wanted[1..], "without any slot");
    assert_eq!(subject.ours(), LARGE.bytes(), "nothing but the buffer");
    drop(buffer);
    assert_eq!(subject.ours(), Bytes::ZERO);
}

/// A fetch comes after all work that was handed over before it, whether finished or kicked, and done or not.
pub fn fetches_after_what_was_handed_over(subject: &Subject) {
    let mut slot = subject.slot();
    for seed in 0..20 {
        let buffer = record(&mut *slot, seed, Weight::LIGHT);
        let _fence = match seed % 2 {
            0 => slot.finish().map(|()| None),
            _ => slot.kick().map(Some),
        };
        assert!(fetched(subject, &buffer, 0, Weight::LIGHT.words) == Weight::LIGHT.output(seed), "piece {seed}");
    }
    // Behind it in the queue, whichever buffer it is about.
    let (early, _late) = (record(&mut *slot, 1, Weight::LIGHT), record(&mut *slot, 2, subject.heavy()));
    let fence = slot.kick().expect("a kick");
    assert!(fetched(subject, &early, 0, Weight::LIGHT.words) == Weight::LIGHT.output(1));
    assert_eq!(slot.wait(&fence, Duration::ZERO).expect("a question"), FenceState::Done, "what was kicked before");
}

/// What makes no sense is the workload's error; a lost device says so, and so does one that came back, of buffers that did
/// not.
pub fn fetches_refuse_what_is_not_there(subject: &Subject) {
    let mut slot = subject.slot();
    let buffer = record(&mut *slot, 1, Weight::LIGHT);
    slot.finish().expect("work like any other");
    let end = Weight::LIGHT.bytes().0;
    for (offset, length) in [(0, end + 4), (end, 4), (2, 4), (0, 3), (!3, 8)] {
        let refused = subject.device.fetch(&buffer, Bytes(offset), &mut vec![0; length as usize]);
        assert_fault!(refused, WorkFailed(_), "fetch {length} at {offset}");
    }
    let foreign = CpuDevice::open().open_backend().expect("a slot").allocate(Bytes(64)).expect("memory");
    assert_fault!(subject.device.fetch(&foreign, Bytes::ZERO, &mut [0; 4]), WorkFailed(_), "a foreign buffer");
    assert!(fetched(subject, &buffer, 0, Weight::LIGHT.words) == Weight::LIGHT.output(1), "right after misuse");
    if let Some(lose) = &subject.lose {
        lose();
        assert_fault!(fetch(&*subject.device, &buffer, 0, 1), DeviceLost { .. }, "a fetch after a loss");
        subject.device.reopen().expect("the device comes back");
        assert_fault!(fetch(&*subject.device, &buffer, 0, 1), DeviceLost { .. }, "a buffer of an earlier life");
    }
    drop((slot, buffer));
    let mut fresh = subject.slot();
    let buffer = record(&mut *fresh, 2, Weight::LIGHT);
    fresh.finish().expect("work like any other");
    assert!(fetched(subject, &buffer, 0, Weight::LIGHT.words) == Weight::LIGHT.output(2), "right after coming back");
    drop((fresh, buffer));
    assert_eq!(subject.ours(), Bytes::ZERO);
}
