//! A language model, an image generator and a sweep on one card, as real processes with changing priorities: never past the
//! line, nobody starves, all leases end, every preemption is verified. `cargo xtask campaign serve` runs it for five minutes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use plimsoll_core::rng::Rng;
use plimsoll_daemon::wire::{LeaseId, Request, Urgency};

use crate::rig::{MIB, Process, Rig, until};

/// What all of the device's programs may use.
const CAPACITY: u64 = 10_000;
/// A round of the campaign.
const ROUND: Duration = Duration::from_millis(15);
/// After so many rounds a busy hour becomes a calm one, and the other way round.
const CALM: u64 = 500;
/// After so many rounds somebody has to step down: whether anybody must before is a matter of timing.
const STEPS_AFTER: u64 = 20_000;
/// So long nobody is asked for anything who has just been given it.
const STAYS: Duration = Duration::from_secs(10);
/// Rounds in CI.
const ROUNDS: u64 = 1_000;

fn rounds() -> u64 {
    std::env::var("PLIMSOLL_CAMPAIGN_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

/// What each living program says that it uses.
fn uses(folder: &Path) -> BTreeMap<String, u64> {
    let files = fs::read_dir(folder.join("uses")).unwrap().map(|entry| entry.unwrap().path());
    let uses = files.filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        let (pid, started) = name.split_once('-')?;
        let process = plimsoll_daemon::process::Process { pid: pid.parse().ok()?, started: started.parse().ok()? };
        let bytes: u64 = fs::read_to_string(&path).ok()?.parse().ok()?;
        process.is_alive().then_some((name, bytes))
    });
    uses.collect()
}

/// What living programs use at one moment, in MiB: nothing has changed while it was read.
fn used(folder: &Path) -> u64 {
    let mut before = uses(folder);
    loop {
        let after = uses(folder);
        if before == after {
            return after.values().sum::<u64>() / MIB;
        }
        before = after;
    }
}

#[test]
fn three_kinds_of_programs_share_a_card() {
    let rig = Rig::new();
    let seed = 15;
    let mut rng = Rng::new(seed);
    let mut there: Vec<(&str, Process)> = Vec::new();
    let mut ended: BTreeMap<&str, usize> = BTreeMap::new();
    let mut most = 0;
    for round in 0..rounds() {
        // In calm hours a long training rises, and may have to step down when the others come.
        let chance = if (round / CALM).is_multiple_of(2) { 0.02 } else { 0.003 };
        for kind in ["llm", "image", "batch", "batch"] {
            let of_kind = there.iter().filter(|(known, _)| *known == kind).count();
            if of_kind < 2 && rng.chance(chance) {
                there.push((kind, Process::start("program", rig.folder.path(), &[kind])));
            }
        }
        if round % 400 == 100 {
            there.push(("rude", Process::start("program", rig.folder.path(), &["rude"])));
        }
        if round % 400 == 300 && there.iter().all(|(kind, _)| *kind != "training") {
            there.push(("training", Process::start("program", rig.folder.path(), &["training"])));
        }
        if rng.chance(0.01) {
            change_a_priority(&rig, &mut rng);
        }
        if rng.chance(0.005) && !there.is_empty() {
            there.remove(rng.below(there.len()));
        }
        there.retain_mut(|(kind, process)| match process.0.try_wait().unwrap() {
            None => true,
            Some(_) => {
                *ended.entry(kind).or_default() += 1;
                false
            }
        });
        let used = used(rig.folder.path());
        most = most.max(used);
        assert!(used <= CAPACITY, "seed {seed}, round {round}: {used} MiB in use");
        std::thread::sleep(ROUND);
    }
    drop(there);
    if rounds() >= STEPS_AFTER {
        somebody_steps_down(&rig);
    }
    until("an empty book", || {
        let state = rig.state();
        match state.devices[0].promised == 0 && state.queue.is_empty() {
            true => Ok(()),
            false => Err(format!("{:?} {:?}", state.holders, state.queue)),
        }
    });
    let events = rig.client().events(0).unwrap();
    let count = |what: &str| events.iter().filter(|event| event.what == what).count();
    println!(
        "{ended:?}, at most {most} MiB in use, {} recalls, {} stepped down, {} stopped",
        count("recalled"),
        count("stepped"),
        count("stopped")
    );
    assert!(["llm", "image", "batch"].iter().all(|kind| ended.get(kind).is_some_and(|ended| *ended > 0)), "{ended:?}");
    assert!(most > CAPACITY / 2, "the card was used: {most} MiB");
    assert!(count("recalled") > 0 && count("granted") > 0);
    assert!(rounds() < STEPS_AFTER || count("stepped") > 0, "nobody stepped down");
    assert_eq!(count("not-freed"), 0, "every return was seen");
    for event in events.iter().filter(|event| event.what == "granted") {
        let over = |later: &&plimsoll_daemon::wire::Event| {
            later.lease == event.lease && matches!(later.what.as_str(), "ended" | "returned")
        };
        assert!(events.iter().any(|later| over(&later)), "lease {:?} never ended", event.lease);
    }
}

/// A training has what work of low priority is recommended, beside somebody who gives nothing back, and somebody more urgent
/// comes.
fn somebody_steps_down(rig: &Rig) {
    let training = Process::start("program", rig.folder.path(), &["training"]);
    until("the training", || match used(rig.folder.path()) {
        2_000 => Ok(()),
        other => Err(format!("{other} MiB in use")),
    });
    let (mut pinned, mut urgent) = (rig.client(), rig.client());
    let stays = serde_json::from_value(serde_json::json!({
        "name": "stays", "kind": "other", "priority": "normal", "pinned": true, "ladder": [{ "bytes": 7_000 * MIB }],
    }));
    pinned.hold(stays.unwrap()).unwrap();
    std::thread::sleep(STAYS);
    let comes = serde_json::from_value(serde_json::json!({
        "name": "comes", "kind": "llm", "priority": "high", "ladder": [{ "bytes": 1_500 * MIB }], "timeout_ms": 60_000,
    }));
    urgent.hold(comes.unwrap()).unwrap();
    assert_eq!(used(rig.folder.path()), 1_000, "the training is on a lower rung");
    drop(training);
}

fn change_a_priority(rig: &Rig, rng: &mut Rng) {
    let mut client = rig.client();
    let held: Vec<LeaseId> = client.state().unwrap().holders.iter().filter_map(|holder| holder.lease).collect();
    let levels = [Urgency::Background, Urgency::Low, Urgency::Normal, Urgency::High];
    if let Some(lease) = held.get(rng.below(held.len().max(1))) {
        // It may have ended in between.
        let _ = client.ask(&Request::SetPriority { lease: *lease, priority: levels[rng.below(4)] });
    }
}
