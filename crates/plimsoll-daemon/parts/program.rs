//! A program that shares a card: it asks, works, does as it is asked (or not), and ends.

use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_daemon::client::Client;
use plimsoll_daemon::wire::{Kind, LeaseId, LeaseRequest, Recall, Request, Rung, Say, Urgency};

use crate::uses::Uses;

const MIB: u64 = 1 << 20;

/// What the programs are: their rungs in MiB, how long they work, and whether they do as they are asked.
fn request(kind: &str) -> (LeaseRequest, Duration, bool) {
    let (kind, priority, rungs, work, obeys): (_, _, &[u64], _, _) = match kind {
        "llm" => (Kind::Llm, Urgency::High, &[6_000, 4_000, 3_000], 2_500, true),
        "image" => (Kind::Image, Urgency::Normal, &[5_000, 3_000], 1_200, true),
        // Long enough to rise and then to be asked: nobody is within ten seconds of either.
        "training" => (Kind::Batch, Urgency::Low, &[4_000, 2_000, 1_000], 45_000, true),
        "rude" => (Kind::Other, Urgency::Background, &[3_000], 30_000, false),
        _ => (Kind::Batch, Urgency::Low, &[3_500, 2_000, 1_000], 1_800, true),
    };
    let rung = |(at, mib): (usize, &u64)| Rung { bytes: mib * MIB, quality: 1.0 - 0.25 * at as f64, switch_ms: 0 };
    let ladder: Vec<Rung> = rungs.iter().enumerate().map(rung).collect();
    let asked = serde_json::json!({
        "name": format!("{kind:?}"), "kind": kind, "priority": priority, "ladder": ladder,
        "timeout_ms": 120_000, "may_be_stopped": !obeys,
    });
    (serde_json::from_value(asked).unwrap(), Duration::from_millis(work), obeys)
}

/// One program: asks, works, does as it is asked, and ends.
pub(crate) fn play(folder: &Path, kind: &str) {
    let (request, work, obeys) = request(kind);
    let ladder = request.ladder.clone();
    let mut client = Client::connect(&folder.join("run/serve.sock")).expect("it serves");
    let granted = client.hold(request).expect("it is given in the end");
    let uses = Uses::of_this(folder);
    let use_of = |bytes: u64| uses.set(bytes);
    use_of(granted.bytes);
    let end = Instant::now() + work;
    while Instant::now() < end {
        match client.hear(Some(Duration::from_millis(20))).expect("the daemon serves") {
            Some(Say::Recall(Recall { rung: Some(rung), .. })) if obeys => {
                std::thread::sleep(Duration::from_millis(30));
                use_of(ladder[rung].bytes);
                client.ask(&Request::Stepped { lease: granted.lease, rung }).expect("it may step down");
            }
            Some(Say::Recall(Recall { rung: None, .. })) if obeys => break,
            Some(Say::MayRise { rung, .. }) => rise(&mut client, granted.lease, rung, || use_of(ladder[rung].bytes)),
            Some(Say::Ended { .. }) => break,
            _ => {}
        }
    }
    uses.none();
    let _ = client.give_back(granted.lease);
}

fn rise(client: &mut Client, lease: LeaseId, rung: usize, grow: impl FnOnce()) {
    if client.ask(&Request::Rise { lease, rung }).is_ok() {
        grow();
        client.ask(&Request::Stepped { lease, rung }).expect("it was reserved");
    }
}
