//! Grants: who waits, who is given what, who has to step down, and when bytes are free.

mod batches;
mod escalation;
mod lasting;
mod outside;
mod programs;
mod recalls;
mod rising;
mod sharing;
mod strangers;
mod taken_in;
mod waiting;
mod why;

use super::*;
use crate::scheduler::GrantNews;
use crate::{GrantId, GrantOwner, GrantPhase, GrantRung, GrantSpec, Priority, Sharing};

/// Three GPUs of 1000 bytes with two slots each; the line is the capacity.
fn three_gpus() -> Scheduler<Nothing> {
    three_gpus_sharing(Sharing::default())
}

fn three_gpus_sharing(sharing: Sharing) -> Scheduler<Nothing> {
    let mut scheduler = Scheduler::new(Config { lookahead: 0, sharing, ..Config::default() }, Moment::START);
    for _ in 0..3 {
        let device = scheduler.add_device(exact(DeviceKind::Gpu, 2, 1_000));
        scheduler.device_opened(Moment::START, device);
    }
    scheduler
}

const A: DeviceId = DeviceId(0);
const B: DeviceId = DeviceId(1);
const C: DeviceId = DeviceId(2);

fn rung(portions: &[(DeviceId, u64)]) -> GrantRung {
    let portions: Vec<_> = portions.iter().map(|&(device, bytes)| (device, Bytes(bytes))).collect();
    GrantRung::new(&portions)
}

/// A grant of somebody in this process with rungs of so many bytes on the first device.
fn on_a(rungs: &[u64]) -> GrantSpec {
    GrantSpec::new(GrantOwner::Caller, rungs.iter().map(|&bytes| rung(&[(A, bytes)])).collect())
}

fn with(priority: Priority, spec: GrantSpec) -> GrantSpec {
    GrantSpec { priority, ..spec }
}

fn ask(scheduler: &mut Scheduler<Nothing>, at: u64, spec: GrantSpec) -> GrantId {
    scheduler.request(Moment(at), spec).expect("it may wait")
}

/// What owners heard since the last call, in words.
fn heard(scheduler: &mut Scheduler<Nothing>) -> Vec<String> {
    scheduler.check_invariants().expect("the books agree");
    let words = |news| match news {
        GrantNews::Granted { grant, rung, .. } => format!("{grant} holds rung {rung}"),
        GrantNews::Recalled { grant, to: Some(rung), .. } => format!("{grant} should step down to {rung}"),
        GrantNews::Recalled { grant, to: None, .. } => format!("{grant} should leave"),
        GrantNews::Stop { grant, .. } => format!("{grant} is to be stopped"),
        GrantNews::Overdue { grant } => format!("{grant} is overdue"),
        GrantNews::MayRise { grant, rung } => format!("{grant} may rise to {rung}"),
        GrantNews::Refused { grant, refusal } => format!("{grant} is refused: {refusal}"),
    };
    scheduler.drain_grant_news().into_iter().map(words).collect()
}

fn phase(scheduler: &Scheduler<Nothing>, id: GrantId) -> Option<GrantPhase> {
    scheduler.grant(id).map(|status| status.phase)
}

fn promised(scheduler: &Scheduler<Nothing>) -> [u64; 3] {
    [A, B, C].map(|device| scheduler.ledger().promised(device).0)
}

/// A task for the first device that holds so many bytes while it runs.
fn task_on_a(scheduler: &mut Scheduler<Nothing>, bytes: u64) -> TaskSpec {
    let devices = crate::DeviceSet::only(A);
    TaskSpec { devices, ..spec(scheduler, on_gpu(bytes)) }
}
