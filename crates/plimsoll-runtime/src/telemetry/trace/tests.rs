//! Traces of events made by hand: the text of a small one, and what holds of any.

use std::collections::BTreeMap;
use std::fs;

use expect_test::expect;
use plimsoll_core::event::{End, FaultKind, GrantEdge, What};
use plimsoll_core::{Ailment, Bytes, DeviceId, GrantId, MemoryMoment, Moment, Nanos, TaskId, WorkloadId};
use proptest::prelude::*;
use serde_json::Value;

use super::*;

const CPU: DeviceId = DeviceId(0);
const CARD: DeviceId = DeviceId(1);

fn event(at_us: u64, what: What) -> Event {
    Event { at: Moment(at_us * 1_000), what }
}

fn started(task: u64, rung: &'static str, device: DeviceId, waited_us: u64) -> What {
    let (waited, bytes, promised) = (Nanos::micros(waited_us), Bytes(64), Bytes(100));
    What::Started { task: TaskId(task), rung, device, waited, bytes, promised, warm: false, hits: 1, misses: 1 }
}

fn ran(task: u64, rung: &'static str, device: DeviceId, [open, bring, run]: [u64; 3]) -> What {
    let [open, bring, run] = [open, bring, run].map(Nanos::micros);
    What::Ran {
        task: TaskId(task),
        workload: WorkloadId(0),
        rung,
        device,
        units: 10,
        bring,
        open,
        run,
        peak: Bytes(60),
    }
}

fn ended(task: u64, end: End) -> What {
    What::Ended { task: TaskId(task), end }
}

/// The text of a trace that heard these events, each batch at once.
fn trace(names: &[&str], batches: &[&[Event]]) -> (String, Summary) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let (mut writer, handle) = TraceWriter::create(&path, names.iter().copied()).expect("created");
    batches.iter().for_each(|events| writer.hear(events));
    let summary = handle.finish().expect("finished");
    (fs::read_to_string(&path).expect("read"), summary)
}

fn entries(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("a trace is a JSON array")
}

#[test]
fn a_task_that_steps_down_reads_like_this() {
    let task = TaskId(1);
    let fault = FaultKind::OutOfMemory(MemoryMoment::Run);
    let first = [
        event(0, What::LineMoved { device: CARD, line: Bytes(200), promised: Bytes(0) }),
        event(1, What::Submitted { task, workload: WorkloadId(0), units: 10 }),
        event(1, What::Placed { task, rung: "full", device: CARD, finish: Moment(9_000) }),
    ];
    let second = [event(2, started(1, "full", CARD, 1))];
    let third = [
        event(5, What::AttemptFailed { task, rung: "full", device: CARD, fault }),
        event(5, What::Placed { task, rung: "strip", device: CARD, finish: Moment(9_500) }),
        event(5, started(1, "strip", CARD, 4)),
    ];
    let fourth = [event(12, ran(1, "strip", CARD, [1, 2, 3])), event(12, ended(1, End::Done))];
    let (text, summary) = trace(&["cpu", "a \"card\""], &[&first, &second, &third, &fourth]);
    expect![[r#"
        [
        {"name":"process_name","ph":"M","pid":1,"args":{"name":"plimsoll"}},
        {"name":"thread_name","ph":"M","pid":1,"tid":100,"args":{"name":"0: cpu, decisions"}},
        {"name":"thread_sort_index","ph":"M","pid":1,"tid":100,"args":{"sort_index":100}},
        {"name":"thread_name","ph":"M","pid":1,"tid":1189,"args":{"name":"1: a \"card\", decisions"}},
        {"name":"thread_sort_index","ph":"M","pid":1,"tid":1189,"args":{"sort_index":1189}},
        {"name":"line moved","cat":"decision","ph":"i","ts":0.0,"pid":1,"tid":1189,"s":"t","args":{"promised":0,"line":200}},
        {"name":"placed","cat":"decision","ph":"i","ts":1.0,"pid":1,"tid":1189,"s":"t","args":{"task":"task 1.0","rung":"full","expected_us":8.0}},
        {"name":"queue depth, 1: a \"card\"","ph":"C","ts":1.0,"pid":1,"args":{"tasks":1}},
        {"name":"memory, 1: a \"card\"","ph":"C","ts":1.0,"pid":1,"args":{"promised":0,"line":200}},
        {"name":"thread_name","ph":"M","pid":1,"tid":2214,"args":{"name":"1: a \"card\", waiting 1"}},
        {"name":"thread_sort_index","ph":"M","pid":1,"tid":2214,"args":{"sort_index":2214}},
        {"name":"wait","cat":"wait","ph":"X","ts":1.0,"dur":1.0,"pid":1,"tid":2214,"args":{"task":"task 1.0"}},
        {"name":"queue depth, 1: a \"card\"","ph":"C","ts":2.0,"pid":1,"args":{"tasks":0}},
        {"name":"memory, 1: a \"card\"","ph":"C","ts":2.0,"pid":1,"args":{"promised":100,"line":200}},
        {"name":"attempt failed","cat":"decision","ph":"i","ts":5.0,"pid":1,"tid":1189,"s":"t","args":{"task":"task 1.0","rung":"full","fault":{"out_of_memory":"run"}}},
        {"name":"thread_name","ph":"M","pid":1,"tid":1190,"args":{"name":"1: a \"card\", slot 1"}},
        {"name":"thread_sort_index","ph":"M","pid":1,"tid":1190,"args":{"sort_index":1190}},
        {"name":"full","cat":"failed","ph":"X","ts":2.0,"dur":3.0,"pid":1,"tid":1190,"args":{"task":"task 1.0","rung":"full","fault":{"out_of_memory":"run"}}},
        {"name":"placed","cat":"decision","ph":"i","ts":5.0,"pid":1,"tid":1189,"s":"t","args":{"task":"task 1.0","rung":"strip","expected_us":4.5}},
        {"name":"thread_name","ph":"M","pid":1,"tid":2215,"args":{"name":"1: a \"card\", waiting 2"}},
        {"name":"thread_sort_index","ph":"M","pid":1,"tid":2215,"args":{"sort_index":2215}},
        {"name":"wait","cat":"wait","ph":"X","ts":1.0,"dur":4.0,"pid":1,"tid":2215,"args":{"task":"task 1.0"}},
        {"name":"memory, 1: a \"card\"","ph":"C","ts":5.0,"pid":1,"args":{"promised":100,"line":200}},
        {"name":"open","cat":"open","ph":"X","ts":5.0,"dur":1.0,"pid":1,"tid":1190,"args":{"task":"task 1.0"}},
        {"name":"bring","cat":"bring","ph":"X","ts":6.0,"dur":2.0,"pid":1,"tid":1190,"args":{"task":"task 1.0"}},
        {"name":"strip","cat":"run","ph":"X","ts":8.0,"dur":3.0,"pid":1,"tid":1190,"args":{"task":"task 1.0","units":10,"peak":60,"waited_us":4.0,"bytes":64,"warm":false,"hits":1,"misses":1}}
        ]
    "#]].assert_eq(&text);
    assert_eq!((summary.runs, summary.left_out, summary.bytes), (1, 0, text.len() as u64));
    assert_eq!(summary.entries as usize, entries(&text).len());
}

#[test]
fn what_has_not_ended_is_cut_off_where_the_trace_ends() {
    let events =
        [event(1, started(1, "cpu", CPU, 0)), event(2, started(2, "cpu", CPU, 0)), event(9, ended(2, End::Cancelled))];
    let (text, _) = trace(&[], &[&events]);
    let cuts: Vec<Value> = entries(&text).into_iter().filter(|entry| entry["cat"] == "cut").collect();
    let seen: Vec<_> = cuts.iter().map(|cut| (cut["ts"].as_f64(), cut["dur"].as_f64(), &cut["args"]["end"])).collect();
    assert_eq!(
        seen,
        [(Some(2.0), Some(7.0), &Value::from("cancelled")), (Some(1.0), Some(8.0), &Value::Null)],
        "first the cancelled one, then the one under way at the end"
    );
}

#[test]
fn a_trace_that_nobody_finished_is_whole_once_both_halves_are_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let (mut writer, handle) = TraceWriter::create(&path, ["cpu"]).expect("created");
    drop(handle);
    writer.hear(&[event(3, ran(1, "cpu", CPU, [0, 0, 2]))]);
    assert!(!path.exists(), "it is not whole yet");
    drop(writer);
    let text = fs::read_to_string(&path).expect("it is there");
    assert_eq!(entries(&text).iter().filter(|entry| entry["cat"] == "run").count(), 1);
}

#[test]
fn what_is_heard_after_the_end_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let (mut writer, handle) = TraceWriter::create(&path, ["cpu"]).expect("created");
    writer.hear(&[event(1, started(1, "cpu", CPU, 0))]);
    handle.finish().expect("finished");
    let before = fs::read_to_string(&path).expect("read");
    writer.hear(&[event(3, ran(1, "cpu", CPU, [0, 0, 2]))]);
    drop(writer);
    assert_eq!(fs::read_to_string(&path).expect("read"), before);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_does_not_disturb_and_is_told_at_the_end() {
    let (mut writer, handle) = TraceWriter::create("/dev/full", ["cpu"]).expect("created");
    (0..10_000).for_each(|at| writer.hear(&[event(at, ran(at, "cpu", CPU, [0, 0, 1]))]));
    assert!(matches!(handle.finish(), Err(TraceError::Full { .. })));
}

#[test]
fn a_device_that_no_scheduler_can_hold_is_left_out() {
    let (text, summary) = trace(&[], &[&[event(1, started(1, "cpu", DeviceId(u16::MAX), 1))]]);
    assert_eq!((entries(&text).len(), summary.left_out), (1, 1));
}

fn any_what() -> impl Strategy<Value = What> {
    let task = || (0..6_u64).prop_map(TaskId);
    let device = || prop_oneof![8 => (0..3_u16).prop_map(DeviceId), 1 => any::<u16>().prop_map(DeviceId)];
    let rung = || prop_oneof![Just("full"), Just("a \"strip\"\n")];
    let span = || prop_oneof![8 => (0..60_000_u64).prop_map(Nanos), 1 => Just(Nanos::MAX)];
    let ends = prop_oneof![Just(End::Done), Just(End::Failed), Just(End::Cancelled), Just(End::DeadlinePassed)];
    let faults = prop_oneof![Just(FaultKind::Panicked), Just(FaultKind::OutOfMemory(MemoryMoment::Open))];
    prop_oneof![
        1 => task().prop_map(|task| What::Submitted { task, workload: WorkloadId(0), units: u64::MAX }),
        3 => (task(), rung(), device(), span()).prop_map(|(task, rung, device, finish)| {
            What::Placed { task, rung, device, finish: Moment(finish.0) }
        }),
        1 => (task(), device(), device()).prop_map(|(task, from, to)| What::Moved { task, from, to }),
        5 => (task(), rung(), device(), span(), any::<u16>()).prop_map(|(task, rung, device, waited, hits)| {
            let (bytes, promised) = (Bytes::MAX, Bytes(5));
            What::Started { task, rung, device, waited, bytes, promised, warm: true, hits, misses: 0 }
        }),
        5 => (task(), rung(), device(), span(), span(), span()).prop_map(|(task, rung, device, bring, open, run)| {
            What::Ran { task, workload: WorkloadId(0), rung, device, units: 3, bring, open, run, peak: Bytes(9) }
        }),
        2 => (task(), rung(), device(), faults).prop_map(|(task, rung, device, fault)| {
            What::AttemptFailed { task, rung, device, fault }
        }),
        3 => (task(), ends).prop_map(|(task, end)| What::Ended { task, end }),
        1 => device().prop_map(|device| What::Evicted { device, sessions: 1, references: 0 }),
        1 => device().prop_map(|device| What::Quarantined { device, ailment: Ailment::Stalled }),
        1 => device().prop_map(|device| What::Returned { device }),
        1 => device().prop_map(|device| What::Gone { device }),
        1 => device().prop_map(|device| What::WidthChanged { device, slots: 3 }),
        1 => device().prop_map(|device| What::LineMoved { device, line: Bytes(7), promised: Bytes(3) }),
        1 => any::<u64>().prop_map(|grant| What::Grant { grant: GrantId(grant), edge: GrantEdge::Overdue }),
    ]
}

/// Begin and end in nanoseconds of every span, by track.
fn spans_by_track(entries: &[Value]) -> BTreeMap<u64, Vec<(u64, u64)>> {
    let nanos = |value: &Value| (value.as_f64().expect("a number") * 1e3).round() as u64;
    let mut tracks: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry["ph"] == "X") {
        let begin = nanos(&entry["ts"]);
        let spans = tracks.entry(entry["tid"].as_u64().expect("a track")).or_default();
        spans.push((begin, begin + nanos(&entry["dur"])));
    }
    tracks
}

proptest! {
    #[test]
    fn whatever_comes_in_whatever_order_the_trace_is_whole_and_its_lanes_never_overlap(
        events in prop::collection::vec((0..200_000_u64, any_what()), 0..80),
        in_order in any::<bool>(),
    ) {
        let mut events: Vec<Event> = events.into_iter().map(|(at, what)| Event { at: Moment(at), what }).collect();
        if in_order {
            events.sort_by_key(|event| event.at);
        }
        let batches: Vec<&[Event]> = events.chunks(3).collect();
        let (text, summary) = trace(&["cpu"], &batches);
        let entries = entries(&text);
        prop_assert_eq!(entries.len() as u64, summary.entries);
        let runs = entries.iter().filter(|entry| entry["cat"] == "run").count();
        prop_assert_eq!(runs as u64, summary.runs);
        for (track, mut spans) in spans_by_track(&entries) {
            spans.sort_unstable();
            prop_assert!(spans.is_sorted_by(|before, after| before.1 <= after.0), "track {}: {:?}", track, spans);
        }
    }

    #[test]
    fn moments_at_the_end_of_time_are_still_json(
        events in prop::collection::vec((any::<u64>(), any_what()), 0..40),
    ) {
        let events: Vec<Event> = events.into_iter().map(|(at, what)| Event { at: Moment(at), what }).collect();
        let (text, summary) = trace(&[], &[&events]);
        prop_assert_eq!(entries(&text).len() as u64, summary.entries);
    }
}
