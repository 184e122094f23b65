//! What must hold on a shared machine, worked out from what programs did and really have.
//! Never asks the scheduler for its reasons; of it only the book of promises is looked at.

use plimsoll_core::sharing::quality_min;
use plimsoll_core::{Bytes, DeviceId, GrantError, GrantKind, GrantSpec, Moment, Nanos, Priority};

use super::machine::Machine;
#[cfg(test)]
use super::programs::KINDS;
use super::programs::{DEVICES, Lease};

/// Grants that there are at once at the most: each program has one, and some that it left are not yet seen to be free.
#[cfg(test)]
pub(super) const GRANTS_MAX: usize = 4 * KINDS.len();
/// Leases in the ledger at once at the most: of each of those, one, and parts that are on their way back.
#[cfg(test)]
pub(super) const LEASES_MAX: usize = 3 * GRANTS_MAX;
/// How much later one that is a level more urgent may come and still go first.
const AGEING_STEP: u64 = 2_000_000_000;

fn devices() -> impl Iterator<Item = DeviceId> {
    (0..DEVICES.len() as u16).map(DeviceId)
}

fn could_use(spec: &GrantSpec, device: DeviceId) -> bool {
    spec.ladder.iter().any(|rung| rung.on(device) > Bytes::ZERO)
}

/// Those who wait, but for one program.
fn waiting(machine: &Machine, but: usize) -> impl Iterator<Item = &Lease> {
    let others = machine.programs.iter().enumerate().filter(move |(program, _)| *program != but);
    others.filter_map(|(_, program)| program.lease.as_ref().filter(|lease| lease.rung.is_none()))
}

/// After every step.
pub(super) fn always(machine: &Machine) -> Result<(), String> {
    machine.scheduler.check_invariants()?;
    for device in devices() {
        let at = device.index();
        let really: Bytes = machine.programs.iter().map(|program| program.really_has(device)).sum();
        if really + machine.strangers[at] > DEVICES[at] && !machine.has_strangers {
            return Err(format!("{device}: {really} are used of {}", DEVICES[at]));
        }
    }
    Ok(())
}

pub(super) fn under_the_line(machine: &Machine) -> Result<(), String> {
    let ledger = machine.scheduler.ledger();
    match devices().find(|device| ledger.promised(*device) > ledger.line(*device)) {
        // Strangers may have taken what was promised before, on a device of which nothing is promised now.
        Some(device) if !machine.has_strangers => Err(format!("{device}: promised past the line")),
        _ => Ok(()),
    }
}

/// A lease was given: it is under the line, its bytes are really there, and nobody who comes first was passed over.
pub(super) fn may_be_given(machine: &Machine, program: usize, rung: usize) -> Result<(), String> {
    let Some(lease) = machine.programs[program].lease.as_ref() else { return Ok(()) };
    let (id, given, ledger) = (lease.id, &lease.spec.ladder[rung], machine.scheduler.ledger());
    for &(device, bytes) in given.portions() {
        if ledger.promised(device) > ledger.line(device) {
            return Err(format!("{id} was given {bytes} of {device} past the line"));
        }
        let free = machine.physically_free(device.index());
        if bytes > free && !machine.has_strangers {
            return Err(format!("{id} was given {bytes} of {device}, where {free} are free: somebody still has them"));
        }
        let first = waiting(machine, program).find(|other| turn(other) < turn(lease) && could_use(&other.spec, device));
        if let Some(first) = first {
            return Err(format!("{id} was given bytes of {device} that {} waits for, who comes first", first.id));
        }
    }
    Ok(())
}

/// When somebody's turn is: smaller goes first.
fn turn(lease: &Lease) -> (u64, u64) {
    let levels_below = (Priority::LEVELS - 1 - lease.spec.priority.level()) as u64;
    let turn = if levels_below == 0 { 0 } else { lease.asked_at.0 + AGEING_STEP * levels_below };
    (turn, lease.id.0)
}

/// Somebody was asked to step down or to leave. Never while it is pinned; by whom, and how far, is limited.
pub(super) fn may_be_recalled(machine: &mut Machine, program: usize, to: Option<usize>) -> Result<(), String> {
    let Some(lease) = machine.programs[program].lease.as_ref() else { return Ok(()) };
    let (sharing, now, id) = (machine.sharing(), machine.now, lease.id);
    if lease.spec.pinned {
        return Err(format!("{id} is pinned and was recalled"));
    }
    // It may be on its way to a rung elsewhere, and be promised that beside its own.
    let held = machine.scheduler.grant(id).map(|status| status.promised).unwrap_or_default();
    let ledger = machine.scheduler.ledger();
    if held.iter().any(|(device, _)| ledger.outside(*device) > ledger.line(*device)) {
        machine.passed.yielded += 1;
        return Ok(());
    }
    let needs = |other: &&Lease| held.iter().any(|(device, _)| could_use(&other.spec, *device));
    let levels = |other: &Lease| other.spec.priority.level() as i64 - lease.spec.priority.level() as i64;
    let far_above = |other: &Lease| levels(other) >= i64::from(sharing.leave_levels);
    let those = || waiting(machine, program).filter(needs);
    if those().next().is_none() {
        return Err(format!("{id} was recalled for nobody"));
    }
    let leaves = to.is_none_or(|to| lease.spec.ladder[to].quality < quality_min(lease.spec.kind));
    if leaves && !those().any(far_above) {
        return Err(format!("{id} was made to leave by nobody {} levels above", sharing.leave_levels));
    }
    if now.since(lease.rung_since) < sharing.residency_min && !those().any(far_above) {
        return Err(format!("{id} was recalled {:?} after it came to its rung", now.since(lease.rung_since)));
    }
    // Its owner has just heard that it is given, and could not yet say that there is a batch.
    let has_said_so = now > lease.rung_since || lease.recalled.is_some();
    let is_within_batch = lease.spec.kind == GrantKind::Batch && lease.items_left > 0 && has_said_so;
    let has_waited = |other: &Lease| far_above(other) && now.since(other.asked_at) >= sharing.batch_wait_max;
    if is_within_batch && !those().any(has_waited) {
        return Err(format!("{id} was recalled with {} items left", lease.items_left));
    }
    machine.passed.batches_broken += u64::from(is_within_batch);
    Ok(())
}

/// Somebody is stopped: it said that it may be, and has not left in time.
pub(super) fn may_be_stopped(machine: &Machine, program: usize) -> Result<(), String> {
    let Some(lease) = machine.programs[program].lease.as_ref() else { return Ok(()) };
    let is_late = lease.recalled == Some((None, true));
    if lease.spec.may_be_stopped && is_late && !lease.spec.pinned && !lease.is_being_stopped {
        return Ok(());
    }
    Err(format!("{} is to be stopped: {:?}", lease.id, lease.recalled))
}

/// Somebody may rise: it has been on its rung for a while, and nobody waits for what it would take.
pub(super) fn may_rise(machine: &Machine, program: usize, rung: usize) -> Result<(), String> {
    let Some(lease) = machine.programs[program].lease.as_ref() else { return Ok(()) };
    let held = machine.now.since(lease.rung_since);
    if held < machine.sharing().residency_min {
        return Err(format!("{} may rise {held:?} after it came to its rung", lease.id));
    }
    let takes = |device: DeviceId| {
        let has = lease.rung.map_or(Bytes::ZERO, |rung| lease.spec.ladder[rung].on(device));
        lease.spec.ladder[rung].on(device) > has
    };
    let passed = waiting(machine, program).find(|other| devices().any(|on| takes(on) && could_use(&other.spec, on)));
    match passed {
        Some(other) => Err(format!("{} may rise into what {} waits for", lease.id, other.id)),
        None => Ok(()),
    }
}

/// Only who does not wait, or asks for more than there is, is refused at once.
pub(super) fn refused_at_once(spec: &GrantSpec, refusal: GrantError) -> Result<(), String> {
    let never =
        |rung: &plimsoll_core::GrantRung| rung.portions().iter().any(|(on, bytes)| *bytes > DEVICES[on.index()]);
    let is_right = match refusal {
        GrantError::NotInTime(_) => spec.patience == Nanos::ZERO,
        GrantError::NeverFits(_) => spec.ladder.iter().all(never),
        _ => false,
    };
    if is_right { Ok(()) } else { Err(format!("{spec:?} was refused: {refusal}")) }
}

/// Who is refused has waited as long as it said, and no longer.
pub(super) fn refused_in_time(machine: &Machine, program: usize) -> Result<(), String> {
    let Some(lease) = machine.programs[program].lease.as_ref() else { return Ok(()) };
    let waited = machine.now.since(lease.asked_at);
    if lease.rung.is_none() && waited == lease.spec.patience {
        return Ok(());
    }
    Err(format!("{} was refused after {waited:?}", lease.id))
}

/// Everybody has gone.
pub(super) fn nothing_is_left(machine: &Machine) -> Result<(), String> {
    let (ledger, grants) = (machine.scheduler.ledger(), machine.scheduler.grants().count());
    let promised: Bytes = devices().map(|device| ledger.promised(device)).sum();
    if grants > 0 || ledger.leases() > 0 || promised > Bytes::ZERO {
        return Err(format!("{grants} grants, {} leases and {promised} are left", ledger.leases()));
    }
    match machine.scheduler.next_tick() {
        Some(due) if due > Moment::START => Err(format!("something is due at {due:?}")),
        _ => machine.scheduler.check_at_rest(),
    }
}
