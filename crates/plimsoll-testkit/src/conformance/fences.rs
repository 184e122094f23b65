//! The suite's part on kick and drain: fences and readbacks.
//! Never looks at a clock: what happens before what is seen from what a device lets through, or does not.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::gauge::Gauge;
use plimsoll_runtime::{Backend, Device, FenceState, KICKS_LIMIT, check};

use super::piece::{LONG, Piece, Weight, collected, drain, kick, record};
use super::{Beside, Subject, words};

/// Tries to see an asynchronous device at work. One of them sees it, unless every one of them is held up just then for as
/// long as a heavy piece takes.
const TRIES: u32 = 20;

/// Asks without waiting.
fn ask(slot: &mut dyn Backend, piece: &Piece) -> FenceState {
    slot.wait(&piece.fence, Duration::ZERO).expect("a question")
}

/// A fence is done after its work, however often and however it is asked; so is one of nothing.
pub fn fences_are_done_after_their_work(subject: &Subject) {
    let mut slot = subject.slot();
    let nothing = slot.kick().expect("a kick of nothing");
    assert_eq!(slot.wait(&nothing, LONG).expect("a wait"), FenceState::Done);
    for limit in [LONG, Duration::from_secs(30), Duration::ZERO] {
        let piece = kick(&mut *slot, 1, Weight::LIGHT);
        while slot.wait(&piece.fence, limit).expect("a wait") == FenceState::UnderWay {
            assert_eq!(limit, Duration::ZERO, "only a question is answered before the work is done");
        }
        assert_eq!(slot.wait(&piece.fence, LONG).expect("a second wait"), FenceState::Done);
        assert_eq!(ask(&mut *slot, &piece), FenceState::Done, "once done, done");
        drain(&mut *slot, piece);
    }
    let buffer = record(&mut *slot, 2, Weight::LIGHT);
    let fence = slot.kick().expect("a kick");
    let again = slot.kick().expect("a kick of nothing after some work");
    assert_eq!(slot.wait(&again, LONG).expect("a wait"), FenceState::Done);
    assert_eq!(slot.wait(&fence, LONG).expect("a wait"), FenceState::Done, "what came before is done too");
    assert!(words(&mut *slot, &buffer) == Weight::LIGHT.output(2), "read after its fence");
    drop((slot, buffer));
    assert_eq!(subject.ours(), Bytes::ZERO);
}

/// A kick returns before its work is done, on a device that works beside us; a wait whose limit passes is no fault.
pub fn a_kick_does_not_wait(subject: &Subject) {
    let mut slot = subject.slot();
    match &subject.beside {
        Beside::AtOnce => {
            let piece = kick(&mut *slot, 1, Weight::LIGHT);
            assert_eq!(ask(&mut *slot, &piece), FenceState::Done);
            drain(&mut *slot, piece);
        }
        Beside::Held(hold) => {
            hold(Some(0));
            let piece = kick(&mut *slot, 1, Weight::LIGHT);
            for limit in [Duration::ZERO, Duration::from_millis(2), Duration::ZERO] {
                assert_eq!(slot.wait(&piece.fence, limit).expect("a wait"), FenceState::UnderWay, "{limit:?}");
            }
            hold(None);
            drain(&mut *slot, piece);
        }
        Beside::Asynchronous(heavy) => {
            let seen = (0..TRIES).any(|seed| {
                let piece = kick(&mut *slot, seed, *heavy);
                let limits = [Duration::ZERO, Duration::from_micros(100)];
                let states = limits.map(|limit| slot.wait(&piece.fence, limit));
                drain(&mut *slot, piece);
                states.map(|state| state.expect("a wait")) == [FenceState::UnderWay; 2]
            });
            assert!(seen, "none of {TRIES} kicks returned before its work was done");
        }
    }
    drop(slot);
    assert_eq!(subject.ours(), Bytes::ZERO);
}

/// A piece is drained, and right, while the next one is under way: neither its fence nor its readback waits for what was
/// kicked later.
pub fn a_piece_is_drained_while_the_next_is_under_way(subject: &Subject) {
    let mut slot = subject.slot();
    // By its fence and its readback; or by its readback alone, which waits as a fence does.
    let drain_first = |slot: &mut dyn Backend, fence: bool| {
        let (first, second) = (kick(slot, 1, subject.heavy()), kick(slot, 2, subject.heavy()));
        if fence {
            drain(slot, first);
        } else {
            assert!(collected(slot, first.readback).expect("a collection") == first.wanted, "the first piece");
        }
        (ask(slot, &second), second)
    };
    for fence in [true, false] {
        match &subject.beside {
            Beside::AtOnce => {
                let (state, second) = drain_first(&mut *slot, fence);
                assert_eq!(state, FenceState::Done);
                drain(&mut *slot, second);
            }
            Beside::Held(hold) => {
                hold(Some(1));
                let (state, second) = drain_first(&mut *slot, fence);
                assert_eq!(state, FenceState::UnderWay);
                hold(None);
                drain(&mut *slot, second);
            }
            Beside::Asynchronous(_) => {
                let seen = (0..TRIES).any(|_| {
                    let (state, second) = drain_first(&mut *slot, fence);
                    drain(&mut *slot, second);
                    state == FenceState::UnderWay
                });
                assert!(seen, "none of {TRIES} pieces was drained before the next was done");
            }
        }
    }
}

/// Many pieces one behind the other, each prepared before the one before it is drained; of sizes below and above any
/// staging buffer.
pub fn pieces_follow_each_other(subject: &Subject) {
    let mut slot = subject.slot();
    let base = subject.ours();
    let weight = |seed: u32| Weight { words: [1, 333, 70_000, 600_000][seed as usize % 4], ..Weight::LIGHT };
    let mut ahead = kick(&mut *slot, 0, weight(0));
    for seed in 1..40 {
        let next = kick(&mut *slot, seed, weight(seed));
        drain(&mut *slot, std::mem::replace(&mut ahead, next));
    }
    drain(&mut *slot, ahead);
    assert_eq!(subject.ours(), base);
}

/// Any slot of the device waits for a fence and collects, on any thread, as often as it likes.
pub fn fences_are_for_every_slot(subject: &Subject) {
    let mut slot = subject.slot();
    let pieces: Vec<Piece> = (0..4).map(|seed| kick(&mut *slot, seed, Weight::LIGHT)).collect();
    thread::scope(|scope| {
        for piece in pieces {
            let (device, fence) = (&*subject.device, piece.fence.clone());
            scope.spawn(move || {
                let mut other = device.open_backend().expect("a slot");
                drain(&mut *other, piece);
                check::known_answer(&mut *other).expect("right after another slot's fence");
            });
            assert_eq!(slot.wait(&fence, LONG).expect("a wait beside another slot's"), FenceState::Done);
        }
    });
    let last = kick(&mut *slot, 9, Weight::LIGHT);
    drop(slot);
    drain(&mut *subject.slot(), last);
    assert_eq!(subject.ours(), Bytes::ZERO);
}

/// A slot whose kicks nobody drains is refused the next one, loses nothing by it, and goes on once one is drained.
pub fn kicks_not_drained_are_bounded(subject: &Subject) {
    let mut slot = subject.slot();
    let pieces: Vec<Piece> = (0..KICKS_LIMIT as u32).map(|seed| kick(&mut *slot, seed, Weight::LIGHT)).collect();
    let buffer = record(&mut *slot, 77, Weight::LIGHT);
    let readback = slot.stage_read(&buffer, Bytes::ZERO, Weight::LIGHT.bytes()).expect("a readback");
    for _ in 0..2 {
        assert_fault!(slot.kick(), WorkFailed(_), "one kick more than {KICKS_LIMIT}");
    }
    assert_eq!(slot.wait(&pieces[1].fence, LONG).expect("a wait"), FenceState::Done);
    let fence = slot.kick().expect("two are drained, and what was recorded is still there");
    let another = slot.kick().expect("the second");
    assert_fault!(slot.kick(), WorkFailed(_), "as many as before");
    drain(&mut *slot, Piece { fence, readback, wanted: Weight::LIGHT.output(77) });
    drop(another);
    for piece in pieces {
        drain(&mut *slot, piece);
    }
    // Of fences that nobody holds, nobody is waiting for the end.
    for seed in 0..2 * KICKS_LIMIT as u32 {
        drop(kick(&mut *slot, seed, Weight::LIGHT));
    }
    // Reading waits for everything, so it drains.
    let held: Vec<_> = (0..KICKS_LIMIT).map(|_| slot.kick().expect("a kick")).collect();
    words(&mut *slot, &buffer);
    slot.kick().expect("room again");
    drop((held, buffer, slot));
    assert_eq!(subject.ours(), Bytes::ZERO);
}

/// A readback holds its bytes until it is collected or dropped, is of the moment at which it was recorded, and is collected
/// only once it was handed over, as a whole, by its own device.
pub fn readbacks_are_exact(subject: &Subject) {
    let mut slot = subject.slot();
    let buffer = slot.allocate(Bytes(4096)).expect("memory");
    let base = subject.ours();
    let scope = Arc::new(Gauge::default());
    let before = slot.charge_to(Arc::clone(&scope));
    slot.write(&buffer, Bytes::ZERO, &[1; 4096]).expect("a write");
    let early = slot.stage_read(&buffer, Bytes(8), Bytes(20)).expect("a readback");
    slot.write(&buffer, Bytes::ZERO, &[2; 4096]).expect("a write");
    let late = slot.stage_read(&buffer, Bytes(4092), Bytes(4)).expect("a readback");
    assert_eq!((scope.now(), subject.ours(), early.bytes()), (Bytes(24), base + Bytes(24), Bytes(20)));
    slot.finish().expect("work like any other");
    slot.write(&buffer, Bytes::ZERO, &[3; 4096]).expect("a write");
    assert_eq!(collected(&mut *slot, early).expect("a collection"), [0x0101_0101; 5]);
    assert_eq!(collected(&mut *slot, late).expect("a collection"), [0x0202_0202]);
    assert_eq!((scope.now(), subject.ours()), (Bytes::ZERO, base));
    for (offset, bytes) in [(0, 0), (0, 3), (2, 4), (4096, 4), (0, 4100), (!3, 8), (8, !7)] {
        let refused = slot.stage_read(&buffer, Bytes(offset), Bytes(bytes));
        assert_fault!(refused, WorkFailed(_), "a readback of {bytes} at {offset}");
    }
    let mut staged = || slot.stage_read(&buffer, Bytes::ZERO, Bytes(16)).expect("a readback");
    let (recorded, abandoned) = (staged(), staged());
    assert_fault!(slot.collect(recorded, &mut [0; 16]), WorkFailed(_), "a readback that was not handed over");
    slot.abandon();
    drop(slot.allocate(Bytes(16)).expect("other work: it is poisoned"));
    slot.finish().expect("it has nothing to do with what was abandoned");
    assert_fault!(slot.collect(abandoned, &mut [0; 16]), WorkFailed(_), "a readback that was abandoned");
    assert_eq!((scope.now(), subject.ours()), (Bytes::ZERO, base));
    let fresh = slot.allocate(Bytes(16)).expect("memory");
    let short = slot.stage_read(&fresh, Bytes::ZERO, Bytes(16)).expect("a readback");
    let dropped = slot.stage_read(&fresh, Bytes::ZERO, Bytes(16)).expect("a readback");
    drop((slot.kick().expect("a kick"), dropped));
    assert_fault!(slot.collect(short, &mut [0; 12]), WorkFailed(_), "a readback into too few bytes");
    drop((fresh, slot.charge_to(before)));
    assert_eq!((scope.now(), subject.ours()), (Bytes::ZERO, base));
}

/// A fence or a readback of another device is the workload's error, and harms nothing. What it stands for at home may well
/// be done.
pub fn foreign_fences_are_the_works_fault(subject: &Subject) {
    let mut slot = subject.slot();
    let other = CpuDevice::open();
    let mut other = other.open_backend().expect("a slot of the CPU");
    let piece = kick(&mut *other, 1, Weight::LIGHT);
    for limit in [Duration::ZERO, LONG] {
        assert_fault!(slot.wait(&piece.fence, limit), WorkFailed(_), "a foreign fence");
    }
    assert_fault!(collected(&mut *slot, piece.readback), WorkFailed(_), "a foreign readback");
    let own = kick(&mut *slot, 1, Weight::LIGHT);
    assert_fault!(other.wait(&own.fence, LONG), WorkFailed(_), "our fence elsewhere");
    drain(&mut *slot, own);
    check::known_answer(&mut *slot).expect("right after misuse");
}

/// A device that is lost between kick and wait says so to everybody who waits, and keeps none of them waiting. Its fences
/// and readbacks are gone with it. On one that cannot be lost they last.
pub fn a_loss_between_kick_and_wait_is_told(subject: &Subject) {
    let mut slot = subject.slot();
    let done = kick(&mut *slot, 1, Weight::LIGHT);
    assert_eq!(slot.wait(&done.fence, LONG).expect("a wait"), FenceState::Done);
    let Some(lose) = &subject.lose else {
        subject.device.reopen().expect("the device comes back");
        return drain(&mut *subject.slot(), done);
    };
    if let Beside::Held(hold) = &subject.beside {
        hold(Some(0));
    }
    let piece = kick(&mut *slot, 2, subject.heavy());
    thread::scope(|scope| {
        let (device, fence) = (&*subject.device, piece.fence.clone());
        let mut other = device.open_backend().expect("a slot");
        let waiting = scope.spawn(move || other.wait(&fence, LONG));
        lose();
        match (waiting.join().expect("no panic"), &subject.beside) {
            (Err(Fault::DeviceLost { .. }), _) | (Ok(FenceState::Done), Beside::Asynchronous(_)) => {}
            (other, _) => panic!("who waits when the device is lost hears {other:?}"),
        }
    });
    for fence in [&done.fence, &piece.fence] {
        for limit in [Duration::ZERO, LONG] {
            assert_fault!(slot.wait(fence, limit), DeviceLost { .. }, "a wait after a loss");
        }
    }
    assert_fault!(slot.kick(), DeviceLost { .. }, "a kick after a loss");
    assert_fault!(collected(&mut *slot, done.readback), DeviceLost { .. }, "a collection after a loss");
    subject.device.reopen().expect("the device comes back");
    let mut fresh = subject.slot();
    assert_fault!(fresh.wait(&done.fence, LONG), DeviceLost { .. }, "a fence of an earlier life");
    assert_fault!(collected(&mut *fresh, piece.readback), DeviceLost { .. }, "a readback of an earlier life");
    if let Beside::Held(hold) = &subject.beside {
        hold(None);
    }
    let piece = kick(&mut *fresh, 3, Weight::LIGHT);
    assert_fault!(slot.wait(&piece.fence, LONG), DeviceLost { .. }, "a slot of an earlier life");
    drain(&mut *fresh, piece);
    drop((slot, fresh));
    assert_eq!(subject.ours(), Bytes::ZERO);
}
