//! What a slot does with an attempt that is over: it checks its device if memory ran out, holds a result of a device that is
//! being checked, and settles all that it took at once.
//! Never settles a result before the runtime would.

use plimsoll_core::event::FaultKind;
use plimsoll_core::scheduler::{BatchOutcome, Settled};
use plimsoll_core::{Ailment, DeviceId, Fault, Nanos};
use smallvec::SmallVec;

use super::flight::{Check, source_lost};
use super::{Errand, Flight, Happening, World};

/// How often a slot with a result looks whether its device is still being checked.
const LOOK_AGAIN: Nanos = Nanos::millis(100);
/// How long a result waits for a check before it is not believed.
const CHECK_WAIT_MAX: Nanos = Nanos::seconds(120);
/// What a device that does not give its known answer may be found to have.
const AILMENTS: [Ailment; 4] = [Ailment::WrongAnswer, Ailment::Lost, Ailment::Stalled, Ailment::Unproven];

impl World {
    /// The slot is done with what it took.
    pub(super) fn land(&mut self, flight: usize) -> Result<(), String> {
        if self.begin_check(flight) || self.wait_for_check(flight) {
            return Ok(());
        }
        let Some(head) = self.flights[flight].take() else { return Ok(()) };
        self.settle_all(head)
    }

    /// After an out-of-memory the device must give its known answer. Says whether that is under way.
    fn begin_check(&mut self, flight: usize) -> bool {
        let Some(head) = &self.flights[flight] else { return false };
        let (device, check) = (head.device, head.check);
        match check {
            Check::Made => return false,
            Check::UnderWay(..) => return true,
            Check::NotMade if !self.ran_out_of_memory(flight) => return false,
            Check::NotMade => {}
        }
        let suspicion = self.scheduler.suspect(device);
        let state = &mut self.devices[device.index()];
        state.checks += 1;
        let check = Check::UnderWay(suspicion, state.quarantines);
        let hangs = self.rng.chance(state.gpu.faults.stall);
        let takes =
            if hangs { Nanos::seconds(self.rng.within(20, 200)) } else { Nanos::micros(self.rng.within(10, 5_000)) };
        if let Some(head) = &mut self.flights[flight] {
            (head.check, head.hangs) = (check, hangs);
        }
        self.plan(self.now + takes, Happening::Checked(flight));
        true
    }

    fn ran_out_of_memory(&self, flight: usize) -> bool {
        let Some(head) = &self.flights[flight] else { return false };
        let behind = head.behind.iter().filter_map(|&behind| self.flights[behind].as_ref());
        // Who stands behind an attempt that failed is never started.
        let mut started = std::iter::once(head).chain(behind.filter(|_| head.result.is_ok()));
        let failed = started.find_map(|flight| flight.result.as_ref().err());
        matches!(failed, Some(Fault::OutOfMemory { .. }))
    }

    /// The check is over; so is the wait of those whose results waited for it.
    pub(super) fn checked_after(&mut self, flight: usize) -> Result<(), String> {
        let Some(head) = &mut self.flights[flight] else { return Ok(()) };
        let Check::UnderWay(suspicion, quarantines) = head.check else { return Ok(()) };
        head.check = Check::Made;
        let device = head.device;
        let state = &mut self.devices[device.index()];
        let fails = state.is_lost || head.hangs || self.rng.chance(state.gpu.faults.check_fails);
        let is_of_now = state.quarantines == quarantines;
        if !fails {
            state.checks -= u32::from(is_of_now);
            self.scheduler.cleared(suspicion);
        } else {
            let ailment = AILMENTS[self.rng.below(AILMENTS.len())];
            self.scheduler.check_failed(self.now, suspicion, ailment);
            self.hear()?;
            let state = &mut self.devices[device.index()];
            // In quarantine already: it has to prove itself anyway.
            state.checks -= u32::from(state.quarantines == quarantines && state.checks > 0);
            if self.checks.is_some() && is_of_now && self.scheduler.health(device).is_well() {
                return Err(format!("trust: {device} did not give its known answer, and still counts as well"));
            }
        }
        self.release()?;
        self.land(flight)?;
        let held = std::mem::take(&mut self.devices[device.index()].held);
        held.into_iter().try_for_each(|waiting| self.land(waiting))
    }

    /// A result of a device that is being checked waits for that. Says whether it does.
    fn wait_for_check(&mut self, flight: usize) -> bool {
        let Some(head) = &mut self.flights[flight] else { return false };
        let device = head.device;
        if head.result.is_err() || !self.scheduler.is_suspect(device) {
            return false;
        }
        let since = *head.waits_since.get_or_insert(self.now);
        if self.now.since(since) >= CHECK_WAIT_MAX {
            return false;
        }
        self.devices[device.index()].held.push(flight);
        self.plan(self.now + LOOK_AGAIN, Happening::Land(flight));
        true
    }

    /// Settles a run: those that were done, then the one that failed; who stood behind that was never started.
    fn settle_all(&mut self, mut head: Flight) -> Result<(), String> {
        let (run, device, session) = (head.run, head.device, head.session.take());
        if let Some(slot) = head.slot {
            self.devices[device.index()].slots.free(slot);
        }
        let behind: Vec<usize> = std::mem::take(&mut head.behind);
        let mut flights = vec![head];
        flights.extend(behind.into_iter().filter_map(|behind| self.flights[behind].take()));
        let done = flights.iter().take_while(|flight| flight.result.is_ok()).count();
        let mut measured = flights[0].measured;
        measured.run = flights[..done].iter().map(|flight| flight.measured.run).sum();
        for flight in &mut flights {
            flight.task_bytes = None;
            flight.held.clear();
            flight.copies.clear();
            flight.reads.clear();
        }
        let (value, moves) = (flights[0].makes.take().filter(|_| done > 0), std::mem::take(&mut flights[0].moves));
        let failed = flights.get_mut(done).and_then(|failed| {
            let fault = std::mem::replace(&mut failed.result, Ok(())).err()?;
            let kind = FaultKind::from(&fault);
            if failed.errand == Errand::Asked {
                self.tasks[failed.job].failures.push((failed.rung, device, kind));
            }
            Some((fault, failed.measured.run, kind))
        });
        let kind = failed.as_ref().map(|(_, _, kind)| *kind);
        let mut session = session.filter(|_| failed.is_none());
        let state = self.returns_held(&flights[0], &mut session);
        let fault = failed.map(|(fault, took, _)| (fault, took));
        let made = (value.is_some() && flights[0].errand == Errand::Asked).then_some(flights[0].job);
        made.into_iter().for_each(|job| self.hold_what_was_made(job));
        let outcome = BatchOutcome { done, fault, session, measured, value, moves: SmallVec::from_vec(moves), state };
        let mut settled = Vec::new();
        self.scheduler.settle_batch(self.now, run, outcome, |each| settled.push(each));
        if let Some(job) = made.filter(|_| !matches!(settled[..], [Settled::Done(_), ..])) {
            self.let_go_of_what_was_made(job);
        }
        self.hear()?;
        for (flight, settled) in flights.iter().zip(settled) {
            self.settled(flight, settled)?;
        }
        match flights.get(done).filter(|_| kind.is_some()) {
            Some(failed) => self.came_to_nothing(failed, kind),
            None => Ok(()),
        }
    }

    fn settled(&mut self, flight: &Flight, settled: Settled) -> Result<(), String> {
        match settled {
            Settled::Done(_) if flight.errand != Errand::Asked => {
                Err(format!("job {} was told again of what it did not ask for", flight.job))
            }
            Settled::Done(report) => {
                self.receive_value(flight.job);
                self.checked(|checks, world| checks.delivered(world, flight, &report))?;
                self.end(flight.job, Ok(flight.device))
            }
            Settled::Dropped => self.came_to_nothing(flight, None),
        }
    }

    fn came_to_nothing(&mut self, flight: &Flight, fault: Option<FaultKind>) -> Result<(), String> {
        self.let_go_of_handles(flight.job);
        self.checked(|checks, world| checks.dropped(world, flight, fault))
    }

    /// The device goes away: whatever runs on it fails now, whatever was on it is gone.
    pub(super) fn lose(&mut self, device: DeviceId, generation: u32) -> Result<(), String> {
        let state = &mut self.devices[device.index()];
        if state.generation != generation {
            return Ok(());
        }
        state.generation += 1;
        state.is_lost = true;
        for at in 0..self.flights.len() {
            let Some(flight) = &mut self.flights[at] else { continue };
            let is_running = flight.waits_since.is_none() && matches!(flight.check, Check::NotMade);
            if flight.slot.is_none() || !is_running {
                continue;
            }
            let copies = flight.fetches.iter().any(|(from, until)| *from == device && *until > self.now);
            if flight.device == device || copies {
                let lost = Fault::DeviceLost { detail: "simulated".into() };
                flight.result = Err(if flight.device == device { lost } else { source_lost(device) });
                self.land(at)?;
                self.release()?;
            }
        }
        Ok(())
    }
}
