//! Holders and the arbiter together: a recall takes bytes back by dropping the finest levels, and they come back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::fragments::{HoldError, HoldRequest, Holder, Sums};
use plimsoll::{Bytes, Device, GrantRequest, Orchestrator, Priority};
use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice};

use crate::devices::{self, GPU, orchestrator};
use crate::model::{self, Packed, Serving};

const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn promised(orchestrator: &Orchestrator) -> Bytes {
    orchestrator.reports()[1].promised
}

/// Each tensor as it is decoded now: its measured error is the one that its level states.
#[track_caller]
fn is_as_good_as_stated(holder: &Holder, packed: &Packed) -> Vec<usize> {
    let levels = packed.tensors[..3].iter().map(|(name, weights)| {
        let decoded = holder.decode(name).unwrap();
        assert_eq!(Sums::of(weights, &decoded.weights).error(), decoded.error, "{name}");
        decoded.level
    });
    levels.collect()
}

/// Eight bits are as good as this, six are not.
const EIGHT_BITS: f64 = 0.98;

#[test]
fn a_recall_drops_the_finest_levels_and_they_come_back_without_being_fetched() {
    let orchestrator = orchestrator(Bytes::mib(64));
    let packed = model::packed(&orchestrator);
    let serving = Serving::of(&packed);
    let store = model::store(&orchestrator, &packed, Bytes::mib(16));
    let stored = store.open_url(&serving.url).unwrap();
    let line = orchestrator.reports()[1].line;

    let low = HoldRequest::new(GPU).quality(EIGHT_BITS).priority(Priority::Low);
    let first = Holder::hold(&orchestrator, &stored, low).unwrap();
    let first = first.wait().unwrap();
    assert_eq!(is_as_good_as_stated(&first, &packed), [4, 4, 4]);
    let (all, served) = (first.held(), serving.served.load(Ordering::Relaxed));
    assert_eq!((promised(&orchestrator), all), (first.rung_bytes(0), first.rung_bytes(0)));

    // Somebody more urgent needs all but what three bits take: it is given that, and the holder keeps the rest.
    let need = line - first.rung_bytes(3);
    let given = |bytes: Bytes| {
        let request = GrantRequest::new(&[(GPU, bytes)]).priority(Priority::High);
        orchestrator.grant(request).unwrap().wait(PATIENCE).unwrap()
    };
    let urgent = given(need);
    assert!(first.rung() >= 3, "{}", first.rung());
    assert_eq!(first.held(), first.rung_bytes(first.rung()), "what is on the device is what the rung says");
    assert!(promised(&orchestrator) <= line, "and there is room for both");
    // There is not a byte for what is decoded, and what is held is as good as was stated all the same.
    assert_eq!(is_as_good_as_stated(&first, &packed), [1, 1, 1]);

    // It leaves: the levels come back from memory or disk.
    drop(urgent);
    eventually("it rises", || first.rung() == 0);
    assert_eq!(is_as_good_as_stated(&first, &packed), [4, 4, 4]);
    assert_eq!(first.held(), all);
    assert_eq!(serving.served.load(Ordering::Relaxed), served, "nothing was fetched again");
    drop(first);
    assert_eq!(promised(&orchestrator), Bytes::ZERO);
}

#[test]
fn two_holders_share_a_device_and_the_more_urgent_is_the_better() {
    let orchestrator = orchestrator(Bytes::mib(64));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(16));
    let stored = store.open_file(&packed.path).unwrap();
    let low = HoldRequest::new(GPU).quality(EIGHT_BITS).priority(Priority::Low);
    let low = Holder::hold(&orchestrator, &stored, low).unwrap().wait().unwrap();
    // All but a little more than one model.
    let line = orchestrator.reports()[1].line;
    let spare = Bytes(low.held().0 + low.held().0 / 2);
    let rest = orchestrator.lease(&[(GPU, line - spare)]).unwrap();
    let high = HoldRequest::new(GPU).quality(EIGHT_BITS).priority(Priority::High).quality_min(EIGHT_BITS);
    let high = Holder::hold(&orchestrator, &stored, high).unwrap().wait().unwrap();
    assert_eq!(high.rung(), 0);
    eventually("the other steps down", || low.rung() > 0);
    assert!(promised(&orchestrator) <= line);
    assert_eq!(low.held() + high.held(), low.rung_bytes(low.rung()) + high.rung_bytes(0));
    drop(rest);
    is_as_good_as_stated(&low, &packed);
    assert_eq!(is_as_good_as_stated(&high, &packed), [4, 4, 4]);
    drop(high);
    eventually("and rises again", || low.rung() == 0);
    assert_eq!(is_as_good_as_stated(&low, &packed), [4, 4, 4]);
}

/// Another program's grant has every byte that the levels leave: whoever decodes needs none.
#[test]
fn a_device_that_is_full_to_the_line_is_read_all_the_same() {
    let orchestrator = orchestrator(Bytes::mib(64));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(16));
    let stored = store.open_file(&packed.path).unwrap();
    let holder = Holder::hold(&orchestrator, &stored, HoldRequest::new(GPU)).unwrap().wait().unwrap();
    let line = orchestrator.reports()[1].line;
    for spare in [0, 300 << 10] {
        let rest = line - promised(&orchestrator) - Bytes(spare);
        let rest = orchestrator.lease(&[(GPU, rest)]).unwrap();
        assert_eq!(is_as_good_as_stated(&holder, &packed), [5, 5, 5], "{spare} bytes are free");
        assert!(promised(&orchestrator) <= line);
        drop(rest);
    }
}

/// Quality 1 is the very bytes, on a device too; a recall takes that level first, and it comes back.
#[test]
fn the_very_bytes_come_from_a_device_before_and_after_a_recall() {
    let orchestrator = orchestrator(Bytes::mib(64));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(16));
    let stored = store.open_file(&packed.path).unwrap();
    let holder = Holder::hold(&orchestrator, &stored, HoldRequest::new(GPU)).unwrap().wait().unwrap();
    let is_exact = || {
        for (name, weights) in &packed.tensors[..3] {
            let bytes: Vec<u8> = weights.iter().flat_map(|x| x.to_le_bytes()).collect();
            assert!(holder.restore(name).unwrap() == bytes, "{name}");
        }
        assert_eq!(holder.verify().unwrap(), 0);
    };
    is_exact();
    assert_eq!((holder.held(), promised(&orchestrator)), (holder.rung_bytes(0), holder.rung_bytes(0)));
    let line = orchestrator.reports()[1].line;
    let urgent = GrantRequest::new(&[(GPU, line - holder.rung_bytes(1))]).priority(Priority::Critical);
    let urgent = orchestrator.grant(urgent).unwrap().wait(PATIENCE).unwrap();
    assert_eq!(is_as_good_as_stated(&holder, &packed), [4, 4, 4]);
    assert_eq!(holder.held(), holder.rung_bytes(1));
    drop(urgent);
    eventually("it rises", || holder.rung() == 0);
    is_exact();
}

/// While levels come and go, whoever decodes gets a whole level of each tensor.
#[test]
fn decoding_goes_on_while_levels_come_and_go() {
    let orchestrator = orchestrator(Bytes::mib(64));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(16));
    let stored = store.open_file(&packed.path).unwrap();
    let holder = Holder::hold(&orchestrator, &stored, HoldRequest::new(GPU)).unwrap().wait().unwrap();
    thread::scope(|scope| {
        let decoding = scope.spawn(|| (0..12).for_each(|_| drop(is_as_good_as_stated(&holder, &packed))));
        for rung in [1, 3, 5] {
            let id = holder.grant().unwrap();
            orchestrator.recall(id, Some(rung), Duration::from_secs(20)).unwrap();
            eventually("it steps down", || holder.rung() >= rung || holder.rung() == 0);
            thread::sleep(Duration::from_millis(100));
            assert!(holder.held() <= holder.rung_bytes(0));
        }
        decoding.join().unwrap();
    });
}

#[test]
fn who_has_to_leave_leaves_and_says_so() {
    let orchestrator = orchestrator(Bytes::mib(64));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(16));
    let stored = store.open_file(&packed.path).unwrap();
    let holder = Holder::hold(&orchestrator, &stored, HoldRequest::new(GPU)).unwrap().wait().unwrap();
    orchestrator.recall(holder.grant().unwrap(), None, Duration::from_secs(20)).unwrap();
    eventually("it leaves", || holder.grant().is_none());
    assert!(matches!(holder.decode("tails"), Err(HoldError::Left)));
    assert_eq!((holder.held(), promised(&orchestrator)), (Bytes::ZERO, Bytes::ZERO));
    assert!(Holder::hold(&orchestrator, &stored, HoldRequest::new(GPU).tensors(["nothing"])).is_err());
}

/// A level does not get there while the next one is on its way: the holder ends with the error, and when it says so nothing
/// lies on the device, nothing is promised, and nothing comes later.
#[test]
fn an_upload_that_fails_ends_the_holder_and_leaves_nothing() {
    let device = Arc::new(VirtualDevice::gpu("flaky").memory(Bytes::mib(64)).slots(1).build());
    let orchestrator = devices::with_cpu(Arc::clone(&device) as Arc<dyn Device>);
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(16));
    let stored = store.open_file(&packed.path).unwrap();
    let hold = || Holder::hold(&orchestrator, &stored, HoldRequest::new(GPU).quality(EIGHT_BITS)).unwrap().wait();
    // The slot opens, and everything lies in memory.
    drop(hold().unwrap());
    let levels = 3 * 5;
    for nth in 1..=levels {
        let before = device.calls().allocations;
        device.add_fault(ScriptedFault::OutOfMemory { allocation: before + nth });
        let failed = hold().map(drop);
        let left = (device.memory().ours, promised(&orchestrator));
        assert!(matches!(failed, Err(HoldError::Task(_))), "level {nth}: {failed:?}");
        assert_eq!(left, (Bytes::ZERO, Bytes::ZERO), "level {nth}");
        let next_was_sent = u64::from(nth < levels);
        assert!(
            device.calls().allocations - before >= nth + next_was_sent,
            "level {nth}: none was on its way behind it"
        );
    }
    let holder = hold().unwrap();
    assert_eq!(is_as_good_as_stated(&holder, &packed), [4, 4, 4]);
    assert_eq!((device.memory().ours, promised(&orchestrator)), (holder.held(), holder.rung_bytes(0)));
}

/// Nobody waits for ever, and whoever gives up leaves nothing behind.
#[test]
fn a_wait_for_room_ends_and_can_be_given_up() {
    let orchestrator = orchestrator(Bytes::mib(64));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(16));
    let stored = store.open_file(&packed.path).unwrap();
    let line = orchestrator.reports()[1].line;
    let full = orchestrator.lease(&[(GPU, line)]).unwrap();
    let request = || HoldRequest::new(GPU).patience(Duration::from_millis(300));
    let refused = Holder::hold(&orchestrator, &stored, request()).unwrap().wait();
    assert!(matches!(refused, Err(HoldError::Refused(_))), "{refused:?}");
    let given_up = Holder::hold(&orchestrator, &stored, HoldRequest::new(GPU)).unwrap();
    assert_eq!(given_up.progress(), (0, 0));
    drop(given_up);
    drop(full);
    let holding = Holder::hold(&orchestrator, &stored, request()).unwrap();
    let holder = pollster::block_on(holding).unwrap();
    assert_eq!(promised(&orchestrator), holder.held());
    let _orchestrator = Arc::clone(&orchestrator);
}
