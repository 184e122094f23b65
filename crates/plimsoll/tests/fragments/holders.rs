//! Holders and the arbiter together: a recall takes bytes back by dropping the finest levels, and they come back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::fragments::{HoldError, HoldRequest, Holder, Sums};
use plimsoll::{Bytes, GrantRequest, Orchestrator, Priority};

use crate::devices::{GPU, orchestrator};
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

/// What decoding one tensor takes on a device beside its levels, and a little more.
const FOR_DECODING: Bytes = Bytes::mib(1);

#[test]
fn a_recall_drops_the_finest_levels_and_they_come_back_without_being_fetched() {
    let orchestrator = orchestrator(Bytes::mib(64));
    let packed = model::packed(&orchestrator);
    let serving = Serving::of(&packed);
    let store = model::store(&orchestrator, &packed, Bytes::mib(16));
    let stored = store.open_url(&serving.url).unwrap();
    let line = orchestrator.reports()[1].line;

    let low = HoldRequest::new(GPU).priority(Priority::Low);
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
    let (urgent, rest) = (given(need - FOR_DECODING), given(FOR_DECODING));
    assert!(first.rung() >= 3, "{}", first.rung());
    assert_eq!(first.held(), first.rung_bytes(first.rung()), "what is on the device is what the rung says");
    assert!(promised(&orchestrator) <= line, "and there is room for both");
    // Decoding needs room of its own; what is held by then is as good as was stated.
    drop(rest);
    is_as_good_as_stated(&first, &packed);

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
    let low =
        Holder::hold(&orchestrator, &stored, HoldRequest::new(GPU).priority(Priority::Low)).unwrap().wait().unwrap();
    // All but a little more than one model.
    let line = orchestrator.reports()[1].line;
    let spare = Bytes(low.held().0 + low.held().0 / 2);
    let rest = orchestrator.lease(&[(GPU, line - spare)]).unwrap();
    let high = HoldRequest::new(GPU).priority(Priority::High).quality_min(0.99);
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
        for rung in [1, 3, 4] {
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
