//! A disk without space: leases are given and end as before, people are told, and nothing is lost that can still be written.

use std::fs;

use plimsoll_daemon::wire::Event;

use crate::rig::{Process, Rig, until, wants};

/// Where files end: enough for a journal of a few leases, and too little for what happens to hundreds.
const FILES_END: u64 = 48 << 10;

#[test]
fn a_full_disk_is_a_warning_and_what_happened_is_written_when_there_is_space() {
    let rig = Rig::with_daemon(|folder| Process::daemon_with_files_of(folder, FILES_END));
    let mut client = rig.client();
    let of_log = |text: &str| text.contains("the log of events cannot be");
    let warned = |rig: &Rig| rig.state().warnings.iter().any(|warning| of_log(warning));
    let mut rounds = 0;
    while !warned(&rig) {
        rounds += 1;
        assert!(rounds < 1_000, "the log did not come to its end");
        let granted = client.hold(wants("round", 10)).expect("a lease is given all the same");
        client.give_back(granted.lease).expect("and given back");
    }
    let held = client.hold(wants("held", 10)).expect("also when it is full");
    assert!(warned(&rig), "as long as it is so");
    // Of the log: a busy machine may have others.
    let warnings: Vec<Event> = client.events(0).unwrap().into_iter().filter(|event| event.what == "warning").collect();
    assert_eq!(warnings.iter().filter(|event| of_log(&event.text)).count(), 1, "it is told once: {warnings:?}");
    rig.daemon.limit_files(u64::MAX);
    until("the log", || if warned(&rig) { Err("it is warned of".to_owned()) } else { Ok(()) });
    let known: Vec<u64> = client.events(0).unwrap().iter().map(|event| event.id).collect();
    let text = fs::read_to_string(rig.folder.path().join("run/events.jsonl")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    let read = |line: &str| serde_json::from_str::<Event>(line).unwrap_or_else(|error| panic!("{error}: {line}")).id;
    let written: Vec<u64> = lines.map(read).collect();
    assert_eq!(written[..known.len().min(written.len())], known[..], "no line is cut, and none is missing");
    client.give_back(held.lease).unwrap();
}
