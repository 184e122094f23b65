//! Owners of grants: they ask, wait, use what they were given, step down in time, late or never, rise, and leave. Some are
//! other programs, and free what they gave back later than they say.
//! Never uses a byte that it was not promised; only a program goes on using what it gave back.

use plimsoll_core::scheduler::GrantNews;
use plimsoll_core::{Bytes, DeviceId, GrantId, GrantOwner, GrantPhase, GrantRung, GrantSpec, Moment, Nanos, Priority};

use super::{Happening, World};
use crate::sim::truth::Allocation;

/// What somebody wants of a grant, and how he behaves.
#[derive(Clone, Debug)]
pub struct Wish {
    /// What is asked for.
    pub spec: GrantSpec,
    /// Takes it at once or not at all, as a lease.
    pub at_once: bool,
    /// When it is asked for.
    pub asks_at: Moment,
    /// When its owner leaves, or no longer wants it.
    pub leaves_at: Moment,
    /// How much of what is promised is used, from 0 to 1.
    pub uses: f64,
    /// How long after it was asked to step down its owner does; never, if `None`.
    pub answers_after: Option<Nanos>,
    /// Whether it goes one rung at a time.
    pub hesitates: bool,
    /// Whether it leaves when it was told that it is too late.
    pub leaves_when_overdue: bool,
    /// How long a program goes on using what it gave back.
    pub frees_after: Nanos,
    /// When somebody asks it by hand to step down, and to which rung.
    pub recalled_at: Option<(Moment, Option<usize>)>,
    /// How many items of a batch it has when it is given, and how long they take.
    pub batch: Option<(u32, Nanos)>,
    /// When it becomes as urgent as this.
    pub changes_to: Option<(Moment, Priority)>,
}

impl Wish {
    /// A well-behaved owner of this, from one moment to the other.
    pub fn new(spec: GrantSpec, asks_at: Moment, leaves_at: Moment) -> Self {
        Self {
            spec,
            at_once: false,
            asks_at,
            leaves_at,
            uses: 1.0,
            answers_after: Some(Nanos::millis(1)),
            hesitates: false,
            leaves_when_overdue: false,
            frees_after: Nanos::ZERO,
            recalled_at: None,
            batch: None,
            changes_to: None,
        }
    }
}

/// Somebody with a grant, or who wants one.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) wish: Wish,
    pub(crate) asked_at: Moment,
    pub(crate) id: Option<GrantId>,
    /// The rung it holds; `None` before and after.
    rung: Option<usize>,
    /// It was asked to step down to this rung, or to leave.
    asked_to: Option<Option<usize>>,
    /// What it uses.
    used: Vec<(DeviceId, Allocation)>,
    /// What it said that it does not use any more, and when it said so.
    leaving: Vec<(DeviceId, Allocation, Moment)>,
}

impl Owner {
    pub(crate) fn is_program(&self) -> bool {
        self.wish.spec.owner.is_outside()
    }

    /// What it really has of a device and was promised, or gave back less than so long ago.
    pub(crate) fn really_has(&self, device: DeviceId, now: Moment, believed_after: Nanos) -> Bytes {
        let used = self.used.iter().filter(|(on, _)| *on == device).map(|(_, used)| used.bytes());
        let leaving = self.leaving.iter().filter(|(on, _, since)| *on == device && now.since(*since) < believed_after);
        used.chain(leaving.map(|(_, left, _)| left.bytes())).sum()
    }
}

impl World {
    /// Somebody wants a grant.
    pub fn wish_for(&mut self, wish: Wish) {
        let at = self.owners.len();
        self.plan(wish.asks_at, Happening::Ask(at));
        self.plan(wish.leaves_at, Happening::Leave(at));
        if let Some((when, _)) = wish.recalled_at {
            self.plan(when, Happening::RecallByHand(at));
        }
        if let Some((when, _)) = wish.changes_to {
            self.plan(when, Happening::ChangePriority(at));
        }
        let asked_at = wish.asks_at;
        let (used, leaving) = (Vec::new(), Vec::new());
        self.owners.push(Owner { wish, asked_at, id: None, rung: None, asked_to: None, used, leaving });
    }

    /// Somebody wants these bytes at once from one moment to the other.
    pub fn lease_at(&mut self, at: Moment, until: Moment, portions: Vec<(DeviceId, Bytes)>) {
        let spec = GrantSpec {
            priority: Priority::Critical,
            patience: Nanos::ZERO,
            ..GrantSpec::new(GrantOwner::Caller, vec![GrantRung::new(&portions)])
        };
        self.wish_for(Wish { at_once: true, ..Wish::new(spec, at, until) });
    }

    pub(in crate::sim) fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.owners.iter()
    }

    pub(in crate::sim) fn owner_of(&self, grant: GrantId) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.id == Some(grant))
    }

    pub(super) fn ask(&mut self, at: usize) -> Result<(), String> {
        let spec = self.owners[at].wish.spec.clone();
        for (device, _) in spec.ladder.iter().flat_map(GrantRung::portions) {
            self.checks.iter_mut().for_each(|checks| checks.expect_refusals(*device));
        }
        self.owners[at].asked_at = self.now;
        if self.owners[at].wish.at_once {
            return self.take_lease(at, &spec);
        }
        self.ask_for_memory();
        match self.scheduler.request(self.now, spec.clone()) {
            Ok(id) => self.owners[at].id = Some(id),
            Err(refusal) => self.checked(|_, world| super::super::checks::grant_refused(world, &spec, refusal))?,
        }
        self.wake_watchdog();
        Ok(())
    }

    fn take_lease(&mut self, at: usize, spec: &GrantSpec) -> Result<(), String> {
        let portions = spec.ladder[0].portions();
        match self.scheduler.lease(self.now, portions) {
            Ok((id, discards)) => {
                self.discard(discards)?;
                self.owners[at].id = Some(id);
                self.use_rung(at, 0);
                Ok(())
            }
            Err(shortfall) => self.checked(|_, world| super::super::checks::lease_refused(world, portions, shortfall)),
        }
    }

    /// Owners hear what they have to.
    pub(super) fn tell_owners(&mut self) -> Result<(), String> {
        if !self.scheduler.has_grant_news() {
            return Ok(());
        }
        self.wake_watchdog();
        for news in self.scheduler.drain_grant_news() {
            match news {
                GrantNews::Granted { grant, rung, discards } => {
                    self.discard(discards)?;
                    let at = self.owner_at(grant)?;
                    self.use_rung(at, rung);
                    if let Some((items, span)) = self.owners[at].wish.batch {
                        self.scheduler.set_batch(self.now, grant, items);
                        self.plan(self.now + span, Happening::BatchDone(at));
                    }
                }
                GrantNews::Recalled { grant, to, discards, .. } => {
                    self.discard(discards)?;
                    let at = self.owner_at(grant)?;
                    self.owners[at].asked_to = Some(to);
                    if let Some(after) = self.owners[at].wish.answers_after {
                        self.plan(self.now + after, Happening::Answer(at));
                    }
                }
                GrantNews::Overdue { grant } => {
                    let at = self.owner_at(grant)?;
                    if self.owners[at].wish.leaves_when_overdue {
                        self.plan(self.now, Happening::Leave(at));
                    }
                }
                GrantNews::Stop { grant, .. } => {
                    let at = self.owner_at(grant)?;
                    self.plan(self.now, Happening::Leave(at));
                }
                GrantNews::MayRise { grant, rung } => {
                    let at = self.owner_at(grant)?;
                    let after = Nanos::micros(self.rng.within(0, 20_000));
                    self.plan(self.now + after, Happening::Rise(at, rung));
                }
                GrantNews::Refused { grant, .. } => {
                    let at = self.owner_at(grant)?;
                    self.owners[at].id = None;
                }
            }
        }
        Ok(())
    }

    fn owner_at(&self, grant: GrantId) -> Result<usize, String> {
        let at = self.owners.iter().position(|owner| owner.id == Some(grant));
        at.ok_or_else(|| format!("grants: there is news of {grant}, which nobody has"))
    }

    /// It is on this rung from now on: takes what it uses there, and gives up the rest.
    fn use_rung(&mut self, at: usize, rung: usize) {
        let owner = &mut self.owners[at];
        owner.rung = Some(rung);
        let before = std::mem::take(&mut owner.used);
        let portions = owner.wish.spec.ladder[rung].portions().to_vec();
        let (is_program, uses) = (owner.is_program(), owner.wish.uses);
        let had: Vec<(DeviceId, Bytes)> = before.iter().map(|(device, used)| (*device, used.bytes())).collect();
        drop(before);
        for &(device, bytes) in &portions {
            let used = self.allocate_for(device, bytes.share(uses), is_program);
            self.owners[at].used.push((device, used));
        }
        if is_program {
            self.linger(at, &had);
        }
    }

    /// A program goes on using what it had more.
    fn linger(&mut self, at: usize, had: &[(DeviceId, Bytes)]) {
        let mut lingers = false;
        for &(device, bytes) in had {
            let used = self.owners[at].used.iter().filter(|(on, _)| *on == device).map(|(_, used)| used.bytes());
            let more = bytes - used.sum();
            if more > Bytes::ZERO {
                let left = self.devices[device.index()].programs.allocate(more);
                self.owners[at].leaving.push((device, left, self.now));
                lingers = true;
            }
        }
        if lingers {
            self.plan(self.now + self.owners[at].wish.frees_after, Happening::Free(at));
        }
    }

    fn allocate_for(&mut self, device: DeviceId, bytes: Bytes, is_program: bool) -> Allocation {
        let state = &self.devices[device.index()];
        let bytes = bytes.min(state.physically_free());
        if is_program { state.programs.allocate(bytes) } else { state.account.allocate(bytes) }
    }

    /// It does what it was asked for, all at once or a rung at a time.
    pub(super) fn answer(&mut self, at: usize) -> Result<(), String> {
        let owner = &self.owners[at];
        let (Some(rung), Some(asked_to)) = (owner.rung, owner.asked_to) else { return Ok(()) };
        let Some(to) = asked_to else { return self.leave(at) };
        if rung >= to {
            return Ok(());
        }
        let next = if owner.wish.hesitates { self.next_rung_in_reach(at, rung, to) } else { to };
        self.step_to(at, next)?;
        if next < to {
            self.plan(self.now + Nanos::millis(1), Happening::Answer(at));
        }
        Ok(())
    }

    /// The next rung below that it is promised all of.
    fn next_rung_in_reach(&self, at: usize, rung: usize, to: usize) -> usize {
        let owner = &self.owners[at];
        let promised =
            owner.id.and_then(|id| self.scheduler.grant(id)).map(|status| status.promised).unwrap_or_default();
        let has = |device: DeviceId| promised.iter().filter(|(on, _)| *on == device).map(|(_, bytes)| *bytes).sum();
        let in_reach = |at: &usize| owner.wish.spec.ladder[*at].portions().iter().all(|&(on, bytes)| bytes <= has(on));
        (rung + 1..to).find(in_reach).unwrap_or(to)
    }

    fn step_to(&mut self, at: usize, rung: usize) -> Result<(), String> {
        let Some(id) = self.owners[at].id else { return Ok(()) };
        self.use_rung(at, rung);
        let stepped = self.scheduler.stepped_to(self.now, id, rung);
        stepped.map_err(|refusal| format!("grants: {id} could not step to rung {rung}: {refusal}"))?;
        let phase = self.scheduler.grant(id).map(|status| status.phase);
        if phase == Some(GrantPhase::Held) {
            self.owners[at].asked_to = None;
        }
        self.wake_watchdog();
        Ok(())
    }

    /// It was told that a better rung fits, and takes it if it still does.
    pub(super) fn rise(&mut self, at: usize, rung: usize) -> Result<(), String> {
        let owner = &self.owners[at];
        let (Some(id), Some(held)) = (owner.id, owner.rung) else { return Ok(()) };
        if held <= rung {
            return Ok(());
        }
        match self.scheduler.begin_step(self.now, id, rung) {
            Ok(discards) => {
                self.discard(discards)?;
                self.step_to(at, rung)
            }
            Err(_) => Ok(()),
        }
    }

    /// Its owner leaves: what it holds is returned, and a wait is over.
    pub(super) fn leave(&mut self, at: usize) -> Result<(), String> {
        let Some(id) = self.owners[at].id.filter(|id| self.scheduler.grant(*id).is_some()) else { return Ok(()) };
        let was_returning = self.scheduler.grant(id).is_some_and(|status| status.phase == GrantPhase::Returning);
        let used = std::mem::take(&mut self.owners[at].used);
        let had: Vec<(DeviceId, Bytes)> = used.iter().map(|(device, used)| (*device, used.bytes())).collect();
        drop(used);
        if self.owners[at].is_program() {
            self.linger(at, &had);
        }
        self.owners[at].rung = None;
        let returned = self.scheduler.return_grant(self.now, id);
        if returned == was_returning || self.scheduler.return_grant(self.now, id) {
            return Err(format!("grants: {id} was returned twice, or not at all"));
        }
        self.wake_watchdog();
        Ok(())
    }

    /// A program really frees what it said it had.
    pub(super) fn free(&mut self, at: usize) {
        let (now, owner) = (self.now, &mut self.owners[at]);
        let after = owner.wish.frees_after;
        owner.leaving.retain(|(_, _, since)| now.since(*since) < after);
    }

    /// The last item of its batch is done.
    pub(super) fn batch_done(&mut self, at: usize) {
        if let Some(id) = self.owners[at].id {
            self.scheduler.set_batch(self.now, id, 0);
            self.wake_watchdog();
        }
    }

    /// It is more urgent, or less, from now on.
    pub(super) fn change_priority(&mut self, at: usize) -> Result<(), String> {
        let owner = &mut self.owners[at];
        let (Some(id), Some((_, priority))) = (owner.id, owner.wish.changes_to) else { return Ok(()) };
        owner.wish.spec.priority = priority;
        self.hear()?;
        self.scheduler.set_priority(self.now, id, priority);
        self.wake_watchdog();
        Ok(())
    }

    pub(super) fn recall_by_hand(&mut self, at: usize) -> Result<(), String> {
        let owner = &self.owners[at];
        let (Some(id), Some((_, to))) = (owner.id, owner.wish.recalled_at) else { return Ok(()) };
        self.hear()?;
        self.checks.iter_mut().for_each(|checks| checks.recalls_by_hand(id));
        let within = Nanos::millis(self.rng.within(1, 500));
        // Whether it can be asked depends on what it holds by now.
        let _ = self.scheduler.recall(self.now, id, to, within);
        self.hear()
    }
}
