//! Choose: for each rung × device, when would the task be finished? Every refusal keeps its reason.
//! Never changes anything: choosing twice gives the same answer (`memo` only saves asking). Committing is `place` and
//! `take`.

use serde::Serialize;
use smallvec::SmallVec;

use super::quality::keep_best_quality;
use super::state::TaskState;
use super::submit::CostCell;
use super::{Host, Scheduler};
use crate::balancer::{Offer, Offers, Strategy};
use crate::error::Refusal;
use crate::health::{Ailment, Health};
use crate::ledger::ShortfallError;
use crate::residency::{PreparedKey, Presence};
use crate::sessions::SessionKey;
use crate::task::TaskSpec;
use crate::{Bytes, DeviceId, Moment, Nanos, Quality, Rung, TaskId};

/// What a task is guessed to take when nothing was measured anywhere: long enough that a queue of them is spread, short
/// enough that the first real figure soon corrects it.
pub(super) const UNKNOWN_RUN: Nanos = Nanos::millis(1);
/// How much slower than the slowest known device a device counts while its first measurement is still under way.
const UNPROVEN_FACTOR: u64 = 4;

/// What a task is expected to cost on a rung and device.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// Until a slot is free and the memory is there.
    pub wait: Nanos,
    /// To prepare references that are not there yet.
    pub bring: Nanos,
    /// To open a session, if none is warm.
    pub open: Nanos,
    /// To run.
    pub run: Nanos,
    /// Bytes held at the most.
    pub bytes: Bytes,
    /// Whether `run` was measured on this machine; a guess otherwise.
    pub measured: bool,
}

impl Estimate {
    /// From now until done.
    pub fn finish(&self) -> Nanos {
        self.wait + self.occupies()
    }

    /// How long it keeps a slot.
    pub fn occupies(&self) -> Nanos {
        self.bring + self.open + self.run
    }
}

/// A rung on a device, and why it was chosen or not.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The rung's name.
    pub rung: &'static str,
    /// The device.
    pub device: DeviceId,
    /// What it would cost; `None` if it was refused before that was asked.
    pub estimate: Option<Estimate>,
    /// Why it was not chosen; `None` for the choice.
    pub refusal: Option<Refusal>,
}

/// What was chosen.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) rung: usize,
    pub(super) device: DeviceId,
    pub(super) estimate: Estimate,
}

impl Choice {
    /// Least first: the one that finishes first. Among equals one that was never measured, so that it gets its figures;
    /// then, as they come, the better rung and the device opened first.
    pub(super) fn order(&self) -> (Nanos, bool) {
        (self.estimate.finish(), self.estimate.measured)
    }
}

/// What was chosen, and among what: `place` counts it for the strategies that share tasks out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chosen {
    pub(super) choice: Choice,
    /// None where no strategy was asked.
    pub(super) offers: Offers,
}

impl From<Choice> for Chosen {
    fn from(choice: Choice) -> Self {
        Self { choice, offers: Offers::new() }
    }
}

/// A rung on a device that could take the task.
#[derive(Copy, Clone, Debug)]
pub(super) struct Possible {
    pub(super) choice: Choice,
    /// Attempts there that are still unmeasured.
    exploring: u32,
    /// Its memory is there, or will be once runs here have ended: others do not keep it from us.
    pub(super) fits: bool,
    /// Its memory is there now.
    pub(super) fits_now: bool,
}

/// What a rung would cost on a device.
pub(super) struct Assessed {
    pub(super) estimate: Estimate,
    pub(super) exploring: u32,
    pub(super) fits: bool,
    pub(super) fits_now: bool,
}

impl Assessed {
    fn on(self, rung: usize, device: DeviceId) -> Possible {
        let Self { estimate, exploring, fits, fits_now } = self;
        Possible { choice: Choice { rung, device, estimate }, exploring, fits, fits_now }
    }
}

pub(super) type Possibles = SmallVec<[Possible; 8]>;

impl<H: Host> Scheduler<H> {
    /// Every rung on every device for a task as it stands now, with the reason for each refusal.
    pub fn why(&mut self, now: Moment, spec: &TaskSpec) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        if !self.workloads.contains(spec.workload) {
            return candidates;
        }
        // What was saved of a rung is fetched when it is first asked for.
        self.workloads.ensure_cells(spec.workload, &spec.ladder, self.devices.len());
        let possible = self.possibilities(now, spec, None, |rung, device, refusal| {
            candidates.push(Candidate { rung, device, estimate: None, refusal: Some(refusal) });
        });
        let chosen = self.pick(spec, &possible).map(|chosen| chosen.choice);
        self.compare(spec, &possible, chosen, &mut candidates);
        candidates
    }

    /// The same for a task that starts: what it starts as is the choice, whatever else would be chosen now.
    pub(super) fn why_started(&self, now: Moment, task: TaskId, chosen: Choice) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let Some(state) = self.tasks.get(task) else { return candidates };
        let mut possible = self.possibilities(now, &state.spec, Some(state), |rung, device, refusal| {
            candidates.push(Candidate { rung, device, estimate: None, refusal: Some(refusal) });
        });
        let name = state.spec.ladder.rungs()[chosen.rung].name;
        let is_chosen = |rung: &str, device: DeviceId| (rung, device) == (name, chosen.device);
        possible.retain(|each| (each.choice.rung, each.choice.device) != (chosen.rung, chosen.device));
        candidates.retain(|candidate| !is_chosen(candidate.rung, candidate.device));
        possible.push(Possible { choice: chosen, exploring: 0, fits: true, fits_now: true });
        self.compare(&state.spec, &possible, Some(chosen), &mut candidates);
        candidates
    }

    /// Adds what is possible, each with why it is not the choice. The choice comes first.
    fn compare(&self, spec: &TaskSpec, possible: &Possibles, chosen: Option<Choice>, candidates: &mut Vec<Candidate>) {
        for Possible { choice, .. } in possible {
            let home = spec.sequence.and_then(|sequence| self.sequences.home(sequence));
            let refusal = chosen.filter(|best| best != choice).map(|best| {
                let later = choice.estimate.finish() - best.estimate.finish();
                match self.config.strategy {
                    _ if home == Some(best.device) && home != Some(choice.device) => Refusal::SequenceElsewhere,
                    Strategy::EarliestFinish => Refusal::FinishesLater { by: later },
                    _ => Refusal::OtherDevicePicked,
                }
            });
            let rung = spec.ladder.rungs()[choice.rung].name;
            candidates.push(Candidate { rung, device: choice.device, estimate: Some(choice.estimate), refusal });
        }
        candidates.sort_by_key(|candidate| candidate.refusal.is_some());
    }

    /// The choice for a task, or nothing if every candidate is refused.
    pub(super) fn choose(&mut self, now: Moment, task: TaskId) -> Option<Chosen> {
        let state = self.tasks.get(task)?;
        let is_free = state.planned.is_none() && state.spec.sequence.is_none();
        let by_finish_alone = self.config.strategy == Strategy::EarliestFinish && is_free;
        if by_finish_alone && let Some(choice) = self.recall_choice(now, task) {
            return Some(choice.into());
        }
        let state = self.tasks.get(task)?;
        let possible = self.possibilities(now, &state.spec, Some(state), |_, _, _| {});
        if by_finish_alone {
            self.remember_candidates(task, &possible);
        }
        let state = self.tasks.get(task)?;
        match self.as_planned(now, state, &possible) {
            Some(planned) => Some(planned.into()),
            None => self.pick(&state.spec, &possible),
        }
    }

    /// What the strategy makes of these. A task of a sequence goes where its sequence is at home; it counts there.
    fn pick(&self, spec: &TaskSpec, possible: &Possibles) -> Option<Chosen> {
        let at_home = self.at_home(spec, possible);
        match self.config.strategy {
            Strategy::EarliestFinish => earliest(at_home.as_ref().unwrap_or(possible)).map(Chosen::from),
            strategy => {
                let offers = self.offers(spec, possible);
                let choice = match at_home {
                    Some(at_home) => at_home.first()?.choice,
                    None => choice_of(possible, &offers[self.balancer.pick(strategy, &offers)?])?,
                };
                Some(Chosen { choice, offers })
            }
        }
    }

    /// What is possible where the task's sequence is at home; `None` if it is at home nowhere, or home cannot take it.
    fn at_home(&self, spec: &TaskSpec, possible: &Possibles) -> Option<Possibles> {
        let home = self.sequences.home(spec.sequence?)?;
        let at_home: Possibles = possible.iter().filter(|possible| possible.choice.device == home).copied().collect();
        (!at_home.is_empty()).then_some(at_home)
    }

    /// Every refusal of a task, for its error.
    pub(super) fn refusals(&self, now: Moment, task: TaskId) -> Vec<(&'static str, DeviceId, Refusal)> {
        let Some(state) = self.tasks.get(task) else { return Vec::new() };
        let mut refusals = Vec::new();
        self.possibilities(now, &state.spec, Some(state), |rung, device, refusal| {
            refusals.push((rung, device, refusal));
        });
        refusals
    }

    /// Every rung of a task that one device could take, but for fallbacks that were never measured or are not needed.
    pub(super) fn choices_on(&self, now: Moment, task: TaskId, device: DeviceId) -> SmallVec<[Choice; 4]> {
        let Some(state) = self.tasks.get(task) else { return SmallVec::new() };
        let mut possible = Possibles::new();
        for (at, rung) in state.spec.ladder.rungs().iter().enumerate() {
            let cell = self.workloads.cell(state.spec.workload, rung.name, device);
            let Ok(assessed) = self.assess(now, &state.spec, Some(state), at, device, cell) else { continue };
            if assessed.estimate.measured || possible.is_empty() {
                possible.push(assessed.on(at, device));
            }
        }
        drop_fallbacks(&state.spec, &mut possible, |_, _, _| {});
        possible.iter().map(|possible| possible.choice).collect()
    }

    pub(super) fn possibilities(
        &self,
        now: Moment,
        spec: &TaskSpec,
        state: Option<&TaskState<H::Job>>,
        mut refuse: impl FnMut(&'static str, DeviceId, Refusal),
    ) -> Possibles {
        let mut possible = Possibles::new();
        let mut closed: SmallVec<[(usize, DeviceId, Refusal); 4]> = SmallVec::new();
        let mut may_pass = false;
        for (at, rung) in spec.ladder.rungs().iter().enumerate() {
            let cells = self.workloads.row(spec.workload, rung.name);
            for device in self.device_ids() {
                match self.assess(now, spec, state, at, device, cells.get(device.index())) {
                    Ok(assessed) => possible.push(assessed.on(at, device)),
                    Err(refusal @ Refusal::FailedBefore { .. }) => closed.push((at, device, refusal)),
                    Err(refusal) => {
                        may_pass |= refusal.may_pass();
                        refuse(rung.name, device, refusal);
                    }
                }
            }
        }
        if possible.is_empty() && !closed.is_empty() && (!may_pass || self.has_waited_enough(now, state)) {
            possible = self.reopen_last_rung(now, spec, &mut closed);
        }
        closed.into_iter().for_each(|(at, device, refusal)| refuse(spec.ladder.rungs()[at].name, device, refusal));
        drop_fallbacks(spec, &mut possible, &mut refuse);
        guess_unmeasured(&mut possible);
        keep_best_quality(now, spec, &mut possible, refuse);
        possible
    }

    /// Nothing else is left to a task: what was learnt of an out-of-memory is a guess about it, and a guess never ends
    /// one. Of the rungs that are closed to it the lowest opens again; what cannot be done there for another reason
    /// stays closed.
    fn reopen_last_rung(
        &self,
        now: Moment,
        spec: &TaskSpec,
        closed: &mut SmallVec<[(usize, DeviceId, Refusal); 4]>,
    ) -> Possibles {
        let mut possible = Possibles::new();
        for lowest in (0..spec.ladder.rungs().len()).rev() {
            closed.retain(|(rung, device, _)| {
                let (rung, device) = (*rung, *device);
                let cell = self.workloads.cell(spec.workload, spec.ladder.rungs()[rung].name, device);
                let opened = if rung == lowest { self.estimate(now, spec, rung, device, cell).ok() } else { None };
                let stays_closed = opened.is_none();
                possible.extend(opened.map(|assessed| assessed.on(rung, device)));
                stays_closed
            });
            if !possible.is_empty() {
                break;
            }
        }
        possible
    }

    /// Whether a task has waited for a device as long as it may.
    fn has_waited_enough(&self, now: Moment, state: Option<&TaskState<H::Job>>) -> bool {
        let since = state.and_then(|state| state.stranded_since);
        since.is_some_and(|since| now.since(since) >= self.config.device_wait_max)
    }

    /// What the `at`-th rung would cost on a device; or why not.
    #[inline]
    pub(super) fn assess(
        &self,
        now: Moment,
        spec: &TaskSpec,
        state: Option<&TaskState<H::Job>>,
        at: usize,
        device: DeviceId,
        cell: Option<&CostCell>,
    ) -> Result<Assessed, Refusal> {
        let rung = &spec.ladder.rungs()[at];
        self.may_run(spec, at, rung, device)?;
        if let Some(state) = state.filter(|state| !state.attempts.is_empty()) {
            self.is_untried(now, state, rung, device, cell)?;
        }
        if let Some(cell) = cell.filter(|cell| cell.cost.has_failed()) {
            self.is_open(now, spec, rung, device, cell)?;
        }
        self.estimate(now, spec, at, device, cell)
    }

    /// Whether this task may use a rung of a device after what came of its attempts. Memory that did not come in time is
    /// not waited for again, but used if it has come since.
    #[cold]
    fn is_untried(
        &self,
        now: Moment,
        state: &TaskState<H::Job>,
        rung: &Rung,
        device: DeviceId,
        cell: Option<&CostCell>,
    ) -> Result<(), Refusal> {
        let is_short = || {
            let bytes = self.bytes_of(&state.spec, rung, device, cell);
            let waits = self.memory_wait(now, &state.spec, rung, device, bytes).is_ok_and(|wait| wait.is_some());
            waits || self.ledger.is_capped(device) && self.shortfall(device, &state.spec, rung).is_some()
        };
        let failed = state.failed_on(rung.name, device);
        if failed || (state.waited_in_vain(rung.name, device) && is_short()) {
            return Err(Refusal::TriedAlready);
        }
        Ok(())
    }

    /// Whether what was learnt of failures lets a rung be tried on a device.
    #[cold]
    fn is_open(
        &self,
        now: Moment,
        spec: &TaskSpec,
        rung: &Rung,
        device: DeviceId,
        cell: &CostCell,
    ) -> Result<(), Refusal> {
        if cell.cost.is_unsupported() {
            return Err(Refusal::Unsupported);
        }
        let bytes = self.bytes_of(spec, rung, device, Some(cell));
        match cell.cost.refuses(spec.units, bytes, self.left_by_others(device), now) {
            Some(failed) => Err(Refusal::FailedBefore { units: failed.units }),
            None => Ok(()),
        }
    }

    /// The same, whatever was learnt of failures.
    #[inline]
    fn estimate(
        &self,
        now: Moment,
        spec: &TaskSpec,
        at: usize,
        device: DeviceId,
        cell: Option<&CostCell>,
    ) -> Result<Assessed, Refusal> {
        let rung = &spec.ladder.rungs()[at];
        let bytes = self.bytes_of(spec, rung, device, cell);
        let mut estimate = Estimate { bytes, ..self.cost(spec, rung, device, cell) };
        estimate.wait = self.device(device).wait(now, spec.priority);
        let memory = self.memory_wait(now, spec, rung, device, bytes)?;
        estimate.wait = estimate.wait.max(memory.unwrap_or_default());
        Ok(Assessed {
            estimate,
            exploring: cell.map_or(0, |cell| cell.exploring),
            fits_now: memory.is_none(),
            // What is warm already need not fit again.
            fits: memory.is_none() || !self.is_held_by_others(device, self.beside_own_session(spec, rung, bytes)),
        })
    }

    pub(super) fn may_run(&self, spec: &TaskSpec, at: usize, rung: &Rung, device: DeviceId) -> Result<(), Refusal> {
        let state = self.device(device);
        if !rung.place.allows(state.spec.kind) {
            return Err(Refusal::WrongKind);
        }
        if !spec.devices.contains(device) {
            return Err(Refusal::NotAllowed);
        }
        if spec.rung.map_or(spec.strict && at != self.strict_rung(spec), |asked| asked != rung.name) {
            return Err(Refusal::OtherRungAsked);
        }
        if rung.quality < spec.quality_min {
            return Err(Refusal::QualityTooLow { gives: rung.quality, asked: spec.quality_min });
        }
        if spec.holds {
            self.may_hold(spec, at, device)?;
        }
        match state.health.ailment() {
            None if state.hangs() => Err(Refusal::Unwell(Ailment::Stalled)),
            None => Ok(()),
            Some(ailment) if state.health.may_return() => Err(Refusal::Unwell(ailment)),
            Some(ailment) => Err(Refusal::Gone(ailment)),
        }
    }

    /// The best rung that the caller's wishes and the kinds of devices in this machine allow. A device that may come
    /// back counts; one that never worked does not.
    fn strict_rung(&self, spec: &TaskSpec) -> usize {
        let never_worked = Health::Gone { ailment: Ailment::Unproven };
        let runs_on = |rung: &Rung, device: DeviceId| {
            let state = self.device(device);
            spec.devices.contains(device) && rung.place.allows(state.spec.kind) && state.health != never_worked
        };
        let is_allowed =
            |rung: &Rung| rung.quality >= spec.quality_min && self.device_ids().any(|device| runs_on(rung, device));
        spec.ladder.rungs().iter().position(is_allowed).unwrap_or(0)
    }

    /// Bring, open and run; `run` stays zero where nothing was measured.
    fn cost(&self, spec: &TaskSpec, rung: &Rung, device: DeviceId, cell: Option<&CostCell>) -> Estimate {
        let state = self.device(device);
        let mut estimate = Estimate::default();
        if !spec.takes.is_empty() {
            estimate.bring = self.distance(spec, device).bring;
        }
        let Some(cell) = cell else { return estimate };
        if let Some(run) = cell.cost.run(spec.units) {
            estimate.run = run.time;
            estimate.measured = true;
        }
        if !state.is_open(&session_key(spec, rung)) {
            estimate.open = cell.cost.open().unwrap_or_default();
        }
        for reference in &spec.references {
            let key = prepared_key(spec, rung, reference.content);
            if state.cache.presence(&key) == Presence::Absent && !state.cache.is_expected(&key) {
                estimate.bring += cell.cost.reference(spec.units).map_or(Nanos::ZERO, |each| each.time);
            }
        }
        estimate
    }

    /// The rung's footprint, corrected by what was measured if that was ever more.
    fn bytes_of(&self, spec: &TaskSpec, rung: &Rung, device: DeviceId, cell: Option<&CostCell>) -> Bytes {
        let excess = |cell: &CostCell| cell.excess(rung.total(spec.references.len()));
        self.declared(device, spec, rung) + cell.map_or(Bytes::ZERO, excess)
    }

    /// How long the memory for a rung is waited for; `None` if it is there. What never fits is refused.
    fn memory_wait(
        &self,
        now: Moment,
        spec: &TaskSpec,
        rung: &Rung,
        device: DeviceId,
        wanted: Bytes,
    ) -> Result<Option<Nanos>, Refusal> {
        if wanted == Bytes::ZERO {
            return Ok(None);
        }
        let ceiling = self.ledger.ceiling(device);
        if wanted > ceiling {
            return Err(Refusal::DoesNotFit(ShortfallError::NeverFits { device, wanted, line: ceiling }));
        }
        if wanted <= self.ledger.free(device) {
            return Ok(None);
        }
        let Some(missing) = self.shortfall(device, spec, rung) else { return Ok(None) };
        // It is asked for as soon as its turn comes. Nobody steps down meanwhile: others are asked to make room.
        if self.could_be_allotted(device, missing) {
            return Ok(None);
        }
        let patience = self.config.memory_wait_max;
        if self.is_held_by_others(device, self.beside_own_session(spec, rung, wanted)) {
            return Ok(Some(patience));
        }
        Ok(Some(self.device(device).wait_for_memory(now).unwrap_or(patience)))
    }

    /// Whether so many bytes would not fit even if every run here ended and everything idle went: other programs, grants
    /// or held sessions have them, and nobody here can tell for how long.
    pub(super) fn is_held_by_others(&self, device: DeviceId, wanted: Bytes) -> bool {
        wanted > self.ledger.measured(device) - self.ledger.lasting(device)
    }

    /// What a task wants beside the session that its sequence holds: that is no other's.
    #[inline]
    pub(super) fn beside_own_session(&self, spec: &TaskSpec, rung: &Rung, wanted: Bytes) -> Bytes {
        let is_held = spec.holds && self.is_held_open(spec);
        if is_held { wanted - rung.footprint.session } else { wanted }
    }

    /// The planned device, as long as the plan holds and the device can take the task.
    fn as_planned(&self, now: Moment, state: &TaskState<H::Job>, possible: &Possibles) -> Option<Choice> {
        let planned = state.planned.filter(|planned| now <= planned.valid_until)?;
        let here = possible.iter().filter(|possible| possible.choice.device == planned.device);
        here.map(|possible| possible.choice).min_by_key(|choice| choice.estimate.finish())
    }

    /// Every device with its own best possible rung, as long as that gives the same answer as the best of all: a strategy
    /// shares tasks out among devices, and never trades quality for a share.
    fn offers(&self, spec: &TaskSpec, possible: &Possibles) -> Offers {
        let quality = |rung: usize| spec.ladder.rungs()[rung].quality;
        // A device that would have to wait for other programs is offered only if every one would.
        let some_fit = possible.iter().any(|possible| possible.fits);
        let possible = possible.iter().filter(|possible| possible.fits || !some_fit);
        let Some(best) = possible.clone().map(|possible| possible.choice.rung).min() else { return Offers::new() };
        let mut offers = Offers::new();
        // Possibilities come rung by rung, so the first on a device is its best.
        for Possible { choice, .. } in possible {
            let is_offered = offers.iter().any(|offer: &Offer| offer.device == choice.device);
            if !is_offered && quality(choice.rung) == quality(best) {
                offers.push(self.offer(spec, choice));
            }
        }
        offers.sort_unstable_by_key(|offer| offer.device);
        offers
    }

    fn offer(&self, spec: &TaskSpec, choice: &Choice) -> Offer {
        let state = self.device(choice.device);
        let rung = &spec.ladder.rungs()[choice.rung];
        let cell = self.workloads.cell(spec.workload, rung.name, choice.device);
        Offer {
            device: choice.device,
            rung: choice.rung,
            slots: state.width.slots(),
            depth: state.depth(),
            weight: state.spec.weight,
            units_per_second: cell.and_then(|cell| cell.throughput(spec.units)),
        }
    }
}

fn choice_of(possible: &Possibles, offer: &Offer) -> Option<Choice> {
    let is_offer = |choice: &Choice| (choice.device, choice.rung) == (offer.device, offer.rung);
    possible.iter().map(|possible| possible.choice).find(is_offer)
}

fn earliest(possible: &Possibles) -> Option<Choice> {
    possible.iter().map(|possible| &possible.choice).min_by_key(|choice| choice.order()).copied()
}

/// Drops each rung below another that fits on the same device now: a workload lists it for when the better one does not.
/// Figures are no argument. Those of a busy machine may say that the lower rung is quicker, and would go on saying so,
/// because the better one is then never measured again.
fn drop_fallbacks(spec: &TaskSpec, possible: &mut Possibles, mut refuse: impl FnMut(&'static str, DeviceId, Refusal)) {
    let rungs = spec.ladder.rungs();
    let mut best: SmallVec<[(DeviceId, Quality); 8]> = SmallVec::new();
    // Possibilities come rung by rung, best first.
    possible.retain(|each| {
        let (device, rung) = (each.choice.device, &rungs[each.choice.rung]);
        if best.iter().any(|(on, quality)| *on == device && *quality == rung.quality) {
            refuse(rung.name, device, Refusal::BetterRungFits);
            return false;
        }
        if each.fits_now {
            best.push((device, rung.quality));
        }
        true
    });
}

/// Fills in `run` where nothing was measured. A device that nobody has tried counts as fast as the fastest known one;
/// while its first try is under way, as much slower than the slowest, so that one task tries it and not a hundred. So
/// does a rung below another on the same device: a workload lists it for when the better one does not fit.
fn guess_unmeasured(possible: &mut Possibles) {
    if possible.iter().all(|possible| possible.choice.estimate.measured) {
        return;
    }
    let known =
        || possible.iter().filter(|other| other.choice.estimate.measured).map(|other| other.choice.estimate.run);
    let fastest = known().min().unwrap_or(UNKNOWN_RUN);
    let slow = Nanos(known().max().unwrap_or(UNKNOWN_RUN).0.saturating_mul(UNPROVEN_FACTOR));
    for at in 0..possible.len() {
        if possible[at].choice.estimate.measured {
            continue;
        }
        let better_open = better_on_device(possible, at).map(|better| better.choice.estimate.open);
        let Possible { choice, exploring, .. } = &mut possible[at];
        let is_first_try = *exploring == 0 && better_open.is_none();
        choice.estimate.run = if is_first_try { fastest } else { slow };
        // Nor is a session that nobody has opened yet cheaper to open than the better rung's.
        choice.estimate.open = choice.estimate.open.max(better_open.unwrap_or_default());
    }
}

/// The best rung that could run on the same device, if it is a better one. Possibilities come rung by rung, best first.
fn better_on_device(possible: &[Possible], at: usize) -> Option<&Possible> {
    possible[..at].iter().find(|better| better.choice.device == possible[at].choice.device)
}

pub(super) fn session_key(spec: &TaskSpec, rung: &Rung) -> SessionKey {
    SessionKey { workload: spec.workload, rung: rung.name, shape: spec.session }
}

pub(super) fn prepared_key(spec: &TaskSpec, rung: &Rung, content: crate::ContentKey) -> PreparedKey {
    PreparedKey { content, workload: spec.workload, rung: rung.name, params: spec.session.params }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn possible(rung: usize, device: u16, measured: Option<Nanos>) -> Possible {
        let run = measured.unwrap_or_default();
        let estimate = Estimate { run, measured: measured.is_some(), ..Estimate::default() };
        Possible {
            choice: Choice { rung, device: DeviceId(device), estimate },
            exploring: 0,
            fits: true,
            fits_now: true,
        }
    }

    #[test]
    fn a_device_that_nobody_tried_is_tried_but_not_a_rung_below_one_that_fits() {
        let known = Nanos::millis(200);
        let mut untried_device = Possibles::from_iter([possible(0, 1, None), possible(1, 0, Some(known))]);
        guess_unmeasured(&mut untried_device);
        assert_eq!(earliest(&untried_device).map(|choice| choice.device), Some(DeviceId(1)));
        let mut fallback = Possibles::from_iter([possible(0, 0, Some(known)), possible(1, 0, None)]);
        guess_unmeasured(&mut fallback);
        assert_eq!(earliest(&fallback).map(|choice| choice.rung), Some(0));
        let mut costly_to_open = Possibles::from_iter([possible(0, 0, Some(Nanos::millis(1))), possible(1, 0, None)]);
        costly_to_open[0].choice.estimate.open = known;
        guess_unmeasured(&mut costly_to_open);
        assert_eq!(earliest(&costly_to_open).map(|choice| choice.rung), Some(0));
        let mut nothing_known = Possibles::from_iter([possible(0, 0, None), possible(1, 0, None)]);
        guess_unmeasured(&mut nothing_known);
        assert_eq!(earliest(&nothing_known).map(|choice| choice.rung), Some(0));
    }
}
