//! Grants: each in one state and over once, in order, recalled only for what is more urgent, and free only when free.
//! The order and the bytes are worked out here from what owners said and really use, not asked of the scheduler.

use plimsoll_core::event::{Event, GrantEdge, GrantEnd, What};
use plimsoll_core::{
    Bytes, DeviceId, GrantError, GrantId, GrantRung, GrantSpec, Moment, Priority, SharePolicy, ShortfallError,
};
use rustc_hash::FxHashMap;

use super::order::Rank;
use crate::sim::world::{Holder, Owner, ROUND, World};

/// What was seen of every grant.
#[derive(Default)]
pub(super) struct GrantWatch {
    seen: FxHashMap<GrantId, Seen>,
    by_hand: Option<GrantId>,
}

/// Where a grant is in its life, by what was told of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Seen {
    Waits,
    Held,
    Recalled { to: Option<u8>, until: Moment },
    Overdue { to: Option<u8> },
    Left,
    Over,
}

impl GrantWatch {
    /// Somebody is about to ask this one by hand to step down.
    pub(super) fn recalls_by_hand(&mut self, grant: GrantId) {
        self.by_hand = Some(grant);
    }

    pub(super) fn hear(&mut self, world: &World, events: &[Event]) -> Result<(), String> {
        for event in events {
            if let What::Grant { grant, edge } = event.what {
                self.hear_edge(world, event.at, grant, edge)?;
            }
        }
        self.by_hand = None;
        Ok(())
    }

    fn hear_edge(&mut self, world: &World, at: Moment, grant: GrantId, edge: GrantEdge) -> Result<(), String> {
        let before = self.seen.get(&grant).copied();
        let next =
            next_state(before, at, edge).ok_or_else(|| format!("grants: {grant} was {before:?}, then {edge:?}"))?;
        self.seen.insert(grant, next);
        match edge {
            GrantEdge::Given { rung, .. } => self.is_first_in_line(world, grant, usize::from(rung)),
            GrantEdge::Recalled { to, .. } if self.by_hand != Some(grant) => self.somebody_needs_it(world, grant, to),
            GrantEdge::Stop { .. } => may_be_stopped(world, grant),
            _ => Ok(()),
        }
    }

    fn waits(&self, grant: GrantId) -> bool {
        self.seen.get(&grant) == Some(&Seen::Waits)
    }

    /// Those that wait, as far as they are known here.
    fn waiting<'a>(&'a self, world: &'a World) -> impl Iterator<Item = (GrantId, &'a Owner)> {
        let known = world.owners().filter_map(|owner| Some((owner.id?, owner)));
        known.filter(|(grant, _)| self.waits(*grant))
    }

    /// Nobody who comes before it beyond doubt waits for a device that it was given.
    fn is_first_in_line(&self, world: &World, grant: GrantId, rung: usize) -> Result<(), String> {
        let Some(owner) = world.owner_of(grant) else { return Ok(()) };
        let given = &owner.wish.spec.ladder[rung];
        let rank = rank_of(grant, owner);
        let shares = |other: &Owner| devices_of(&other.wish.spec).any(|device| given.on(device) > Bytes::ZERO);
        let passed = self.waiting(world).find(|(id, other)| rank_of(*id, other).precedes(rank) && shares(other));
        match passed {
            Some((other, _)) => Err(format!("grants: {grant} was given what {other} waits for, who comes first")),
            None => Ok(()),
        }
    }

    /// A grant or a task was there to need it: one more urgent, or any at all if holders share; or strangers took it. Only for
    /// one far more urgent, or for strangers, does somebody leave.
    fn somebody_needs_it(&self, world: &World, grant: GrantId, to: Option<u8>) -> Result<(), String> {
        let Some(owner) = world.owner_of(grant) else { return Ok(()) };
        let (priority, sharing) = (owner.wish.spec.priority, world.core().config().sharing);
        if owner.wish.spec.pinned {
            return Err(format!("grants: {grant} is pinned and was recalled"));
        }
        let devices: Vec<DeviceId> = devices_of(&owner.wish.spec).collect();
        let ledger = world.core().ledger();
        let is_over = |device: &DeviceId| ledger.lasting(*device) > ledger.line(*device);
        if sharing.yields_to_strangers && devices.iter().any(is_over) {
            return Ok(());
        }
        let levels = match to {
            None => usize::from(sharing.leave_levels),
            Some(_) => usize::from(sharing.policy == SharePolicy::Fixed),
        };
        let is_urgent = |other: Priority| match levels {
            0 => true,
            levels => other.level() >= priority.level() + levels,
        };
        let needs = |other: &Owner| {
            is_urgent(other.wish.spec.priority) && devices_of(&other.wish.spec).any(|device| devices.contains(&device))
        };
        let a_grant = self.waiting(world).any(|(id, other)| id != grant && needs(other));
        let mut tasks = world.tasks().iter().filter(|task| task.id.is_some() && task.end.is_none());
        if a_grant || tasks.any(|task| is_urgent(task.spec.priority)) {
            return Ok(());
        }
        Err(format!("grants: {grant} ({priority:?}) was recalled to {to:?} although nobody who may needs it"))
    }

    /// Every slot has what it could get, and time is about to pass.
    pub(super) fn at_rest(&self, world: &World) -> Result<(), String> {
        for (grant, owner) in self.waiting(world) {
            self.does_not_fit(world, grant, owner)?;
            self.in_time(world, grant, owner)?;
        }
        for device in world.device_ids() {
            self.kept_for_somebody(world, device)?;
            given_back_is_not_promised_again(world, device)?;
        }
        self.told_in_time(world)
    }

    /// A grant that waits where nothing runs or is queued, and for which nobody else waits, does not fit: otherwise
    /// somebody forgot to look.
    fn does_not_fit(&self, world: &World, grant: GrantId, owner: &Owner) -> Result<(), String> {
        let devices: Vec<DeviceId> = devices_of(&owner.wish.spec).collect();
        let is_busy = |device: &DeviceId| {
            world.flights().any(|flight| flight.device == *device) || world.core().queued(*device).next().is_some()
        };
        let is_wanted = |device: &DeviceId| {
            self.waiting(world).any(|(other, by)| other != grant && devices_of(&by.wish.spec).any(|on| on == *device))
        };
        if devices.iter().any(|device| is_busy(device) || is_wanted(device)) {
            return Ok(());
        }
        let ledger = world.core().ledger();
        let fits = |rung: &GrantRung| {
            let room = |device| ledger.line(device) - ledger.outside(device) - kept_on(world, device);
            rung.portions().iter().all(|&(device, bytes)| bytes <= room(device))
        };
        let ladder = &owner.wish.spec.ladder;
        let fitting = match world.core().config().sharing.policy {
            SharePolicy::Fixed => ladder.iter().position(fits),
            // What is recommended depends on what others have; of rungs on the same devices it is the lowest of use at least.
            _ => lowest_of_use(&owner.wish.spec).filter(|rung| fits(&ladder[*rung])),
        };
        match fitting {
            Some(rung) => Err(format!("grants: {grant} waits although its rung {rung} fits and nothing runs")),
            None => Ok(()),
        }
    }

    /// A wait ends with patience and deadline, at most a round of the watchdog late.
    fn in_time(&self, world: &World, grant: GrantId, owner: &Owner) -> Result<(), String> {
        let spec = &owner.wish.spec;
        let until = owner.asked_at + spec.patience;
        let until = spec.deadline.map_or(until, |deadline| deadline.min(until));
        if world.now() > until.max(owner.asked_at) + ROUND {
            return Err(format!("grants: {grant} should have been refused at {until:?}"));
        }
        Ok(())
    }

    /// An owner whose time is over is told, at most a round of the watchdog late.
    fn told_in_time(&self, world: &World) -> Result<(), String> {
        let forgotten = self
            .seen
            .iter()
            .find(|(_, seen)| matches!(seen, Seen::Recalled { until, .. } if world.now() > *until + ROUND));
        match forgotten {
            Some((grant, _)) => Err(format!("grants: nobody told the owner of {grant} that its time is over")),
            None => Ok(()),
        }
    }

    fn kept_for_somebody(&self, world: &World, device: DeviceId) -> Result<(), String> {
        let is_wanted = || self.waiting(world).any(|(_, by)| devices_of(&by.wish.spec).any(|on| on == device));
        let kept = world.core().ledger().kept(device);
        if kept > Bytes::ZERO && !is_wanted() {
            return Err(format!("grants: {kept} of {device} are kept for nobody"));
        }
        Ok(())
    }

    /// Nothing is left to happen: every grant that was asked for is over.
    pub(super) fn all_over(&self) -> Result<(), String> {
        match self.seen.iter().find(|(_, seen)| **seen != Seen::Over) {
            Some((grant, seen)) => Err(format!("grants: {grant} is {seen:?} in the end")),
            None => Ok(()),
        }
    }
}

/// Its owner said that it may be stopped, and it is not pinned.
fn may_be_stopped(world: &World, grant: GrantId) -> Result<(), String> {
    match world.owner_of(grant).map(|owner| &owner.wish.spec) {
        Some(spec) if !spec.may_be_stopped || spec.pinned => Err(format!("grants: {grant} may not be stopped")),
        _ => Ok(()),
    }
}

/// The rung of the lowest quality that is of use, if all rungs are on the same devices.
fn lowest_of_use(spec: &GrantSpec) -> Option<usize> {
    let devices = |rung: &GrantRung| rung.portions().iter().map(|(device, _)| *device).collect::<Vec<_>>();
    if spec.ladder.iter().any(|rung| devices(rung) != devices(&spec.ladder[0])) {
        return None;
    }
    let minimum = plimsoll_core::sharing::quality_min(spec.kind);
    let useful = spec.ladder.iter().enumerate().filter(|(_, rung)| rung.quality >= minimum);
    useful.min_by_key(|(_, rung)| rung.quality).map(|(at, _)| at)
}

/// What becomes of a grant by an edge; `None` if that edge cannot be.
fn next_state(before: Option<Seen>, at: Moment, edge: GrantEdge) -> Option<Seen> {
    let is_held = matches!(before, Some(Seen::Held | Seen::Recalled { .. } | Seen::Overdue { .. }));
    match edge {
        GrantEdge::Asked { .. } => before.is_none().then_some(Seen::Waits),
        GrantEdge::Given { .. } => (before == Some(Seen::Waits)).then_some(Seen::Held),
        GrantEdge::Recalled { to, until } => is_held.then_some(Seen::Recalled { to, until }),
        GrantEdge::Overdue => match before {
            Some(Seen::Recalled { to, until }) if until <= at => Some(Seen::Overdue { to }),
            _ => None,
        },
        GrantEdge::Stop { until } => match before {
            Some(Seen::Overdue { to: None }) => Some(Seen::Recalled { to: None, until }),
            _ => None,
        },
        GrantEdge::Stepped { rung } => match before {
            // It has not gone as far as it was asked to.
            Some(Seen::Recalled { to, .. } | Seen::Overdue { to }) if to.is_none_or(|to| rung < to) => before,
            _ => is_held.then_some(Seen::Held),
        },
        GrantEdge::MayRise { .. } => before.filter(|seen| *seen == Seen::Held),
        GrantEdge::Left => is_held.then_some(Seen::Left),
        // Of a grant that stepped down, or of one that has left.
        GrantEdge::Unseen { .. } => before.filter(|seen| is_held || *seen == Seen::Left),
        GrantEdge::Ended(GrantEnd::Returned) => (before == Some(Seen::Left)).then_some(Seen::Over),
        GrantEdge::Ended(_) => (before == Some(Seen::Waits)).then_some(Seen::Over),
    }
}

/// Bytes of values and held sessions that lie on a device: they are not given up for a grant.
fn kept_on(world: &World, device: DeviceId) -> Bytes {
    let values = world.values_there().filter(|(_, value)| value.device == device).map(|(_, value)| value.bytes.bytes());
    let session = |holder: &Holder| {
        let (on, rung) = holder.open?;
        let spec = &world.tasks()[*holder.jobs.last()?].spec;
        (on == device && !holder.is_closed).then(|| spec.ladder.rungs()[rung].footprint.session)
    };
    values.chain(world.holders().filter_map(session)).sum()
}

fn rank_of(grant: GrantId, owner: &Owner) -> Rank {
    let spec = &owner.wish.spec;
    Rank::new(owner.asked_at, spec.priority, spec.deadline.is_some(), Some(grant.0))
}

fn devices_of(spec: &GrantSpec) -> impl Iterator<Item = DeviceId> + '_ {
    spec.ladder.iter().flat_map(GrantRung::portions).map(|(device, _)| *device)
}

/// What programs really have is promised to them, or was given back so long ago that the driver is believed. Where other
/// programs come and go, or more is used than there is, the driver's figure cannot tell whose bytes it counts.
fn given_back_is_not_promised_again(world: &World, device: DeviceId) -> Result<(), String> {
    let state = &world.devices()[device.index()];
    if state.has_strangers || state.was_overfull.get() {
        return Ok(());
    }
    let (now, believed_after) = (world.now(), world.core().config().return_wait_max);
    let programs = world.owners().filter(|owner| owner.is_program());
    let really: Bytes = programs.map(|owner| owner.really_has(device, now, believed_after)).sum();
    let promised = world.core().ledger().programs(device);
    if really > promised {
        return Err(format!("grants: programs have {really} of {device}, but only {promised} are promised to them"));
    }
    Ok(())
}

/// A grant was refused when it was asked for: never only if every rung is larger than its device.
pub(in crate::sim) fn grant_refused(world: &World, spec: &GrantSpec, refusal: GrantError) -> Result<(), String> {
    let ceiling = |device: DeviceId| world.devices()[device.index()].gpu.ceiling();
    let never = |rung: &GrantRung| rung.portions().iter().any(|&(device, bytes)| bytes > ceiling(device));
    let is_right = match refusal {
        GrantError::NeverFits(_) => spec.ladder.iter().all(never),
        GrantError::NotInTime(_) => {
            let due = spec.deadline.is_some_and(|deadline| deadline <= world.now());
            due || spec.patience == plimsoll_core::Nanos::ZERO
        }
        GrantError::ShuttingDown => world.is_closed(),
        _ => false,
    };
    if is_right { Ok(()) } else { Err(format!("grants: {spec:?} was refused: {refusal}")) }
}

/// A lease was refused: never only if it is larger than the device, not now only if it is larger than what is free, or if
/// somebody who is as urgent came before.
pub(in crate::sim) fn lease_refused(
    world: &World,
    portions: &[(DeviceId, Bytes)],
    shortfall: ShortfallError,
) -> Result<(), String> {
    let wanted_on =
        |device: DeviceId| portions.iter().filter(|(on, _)| *on == device).map(|(_, bytes)| *bytes).sum::<Bytes>();
    let as_urgent = |owner: &Owner| owner.wish.spec.priority == Priority::Critical && owner.id.is_some();
    let is_right = match shortfall {
        ShortfallError::NeverFits { device, .. } => wanted_on(device) > world.devices()[device.index()].gpu.ceiling(),
        ShortfallError::NotNow { device, .. } | ShortfallError::Granted { device, .. } => {
            wanted_on(device) > world.core().ledger().unpromised(device) || world.owners().any(as_urgent)
        }
    };
    if is_right || world.is_closed() { Ok(()) } else { Err(format!("lease: {portions:?} was refused: {shortfall}")) }
}
