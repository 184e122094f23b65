//! Devices: which there are, which may be given work, and where their lines are.
//! Never opens one; it orders the host to.
//! Invariant: a device gets work only after it was opened and its known answer was right.

use super::state::DeviceState;
use super::{Host, Order, Scheduler};
use crate::event::What;
use crate::health::{Ailment, Health};
use crate::line::{Margin, Memory};
use crate::residency::ResidencyCounts;
use crate::stats::DeviceReport;
use crate::{Bytes, ContentKey, DeviceId, DeviceKind, DeviceSet, Moment, Nanos, TaskId};

/// What the host says of a device when it adds it.
#[derive(Copy, Clone, Debug)]
pub struct DeviceSpec {
    /// CPU or GPU.
    pub kind: DeviceKind,
    /// Tasks at once at the most.
    pub slots: usize,
    /// Tasks at once to begin with, if how many are best is to be measured; `None` always uses all slots.
    pub width_first: Option<usize>,
    /// Its share for the weighted strategy; its slots if `None`.
    pub weight: Option<f64>,
    /// How its line follows from its memory.
    pub margin: Margin,
    /// Its memory now.
    pub memory: Memory,
    /// How long beyond its prediction a run may take before it counts as stalled; `None` waits for ever.
    pub stall_after: Option<Nanos>,
}

impl DeviceSpec {
    /// A device with this many slots and this much free memory.
    pub fn new(kind: DeviceKind, slots: usize, memory: Bytes) -> Self {
        let memory = Memory { capacity: memory, free: memory, ..Memory::default() };
        Self {
            kind,
            slots: slots.max(1),
            width_first: None,
            weight: None,
            margin: Margin::default(),
            memory,
            stall_after: None,
        }
    }
}

impl<H: Host> Scheduler<H> {
    /// Adds a device. It gets no work before [`Scheduler::device_opened`].
    ///
    /// # Panics
    /// If there are already [`DeviceSet::LIMIT`] devices.
    pub fn add_device(&mut self, spec: DeviceSpec) -> DeviceId {
        assert!(self.devices.len() < DeviceSet::LIMIT, "at most {} devices", DeviceSet::LIMIT);
        let device = DeviceId(self.devices.len() as u16);
        let mut state = DeviceState::new(spec);
        let (line, ceiling) = state.line_after(spec.memory, Bytes::ZERO);
        self.grants.add_device(spec.memory);
        self.devices.push(state);
        self.ledger.set_line(device, line, ceiling);
        device
    }

    /// How many devices there are, well or not.
    pub fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// A device's health. One all of whose slots hang is not well, whatever its last check said.
    pub fn health(&self, device: DeviceId) -> Health {
        self.device(device).health_now()
    }

    /// A device's figures.
    pub fn report(&self, now: Moment, device: DeviceId) -> DeviceReport {
        let state = self.device(device);
        state.stats.report(now.since(self.since), state.width.slots(), state.depth())
    }

    /// How many slots of a device are used at once now.
    pub fn width(&self, device: DeviceId) -> usize {
        self.device(device).width.slots()
    }

    /// How many of a device's slots, counted from the first, should ask for work: as many as are used at once, and one
    /// more for each that hangs.
    pub fn slots_wanted(&self, device: DeviceId) -> usize {
        self.device(device).slots_wanted()
    }

    /// A device's reference counts.
    pub fn residency(&self, device: DeviceId) -> ResidencyCounts {
        self.device(device).cache.counts
    }

    /// The device was opened and answered rightly: it may be given work.
    pub fn device_opened(&mut self, now: Moment, device: DeviceId) {
        self.things_changed();
        self.measure_width_anew(now, device);
        self.device_mut(device).health = Health::Well;
        let (line, promised) = (self.ledger.line(device), self.ledger.promised(device));
        self.note(now, || What::Returned { device });
        self.note(now, || What::LineMoved { device, line, promised });
        self.wakes = self.wakes.with(device);
        self.place_stranded(now);
    }

    /// The device could not be opened, or answered wrongly when it was.
    pub fn device_failed_to_open(&mut self, now: Moment, device: DeviceId) {
        let state = self.device_mut(device);
        state.health = state.health.after_failed_try(now);
        if !state.health.may_return() {
            self.note(now, || What::Gone { device });
            self.place_stranded(now);
        }
    }

    /// The device showed a fault outside any run, or in its known-answer check after one.
    pub fn device_faulted(&mut self, now: Moment, device: DeviceId, ailment: Ailment) {
        self.quarantine(now, device, ailment, None);
    }

    /// No work until it proves itself again; its queue goes elsewhere, and nothing warm on it counts any more.
    pub(super) fn quarantine(&mut self, now: Moment, device: DeviceId, ailment: Ailment, task: Option<TaskId>) {
        let state = self.device_mut(device);
        if !state.health.is_well() {
            return;
        }
        state.fell_ill(ailment, now, task);
        state.trust.start_epoch(state.epoch + 1, ailment == Ailment::WrongAnswer);
        self.things_changed();
        self.start_epoch(device);
        self.lose_values(now, device);
        self.lose_holds(now, device);
        self.note(now, || What::Quarantined { device, ailment });
        self.try_device(now, device);
        self.place_again(now, device);
        self.offer_memory_to_grants(now);
    }

    pub(super) fn try_device(&mut self, now: Moment, device: DeviceId) {
        if self.device_mut(device).health.begin_try(now) {
            self.orders.push(Order::Reopen(device));
        }
    }

    /// How a device's line follows from its memory, from its next reading on.
    pub fn set_margin(&mut self, device: DeviceId, margin: Margin) {
        self.device_mut(device).spec.margin = margin;
    }

    /// The device's memory is about to be read. What is promised at any moment from now until the reading arrives may be
    /// in it.
    pub fn memory_reading_begins(&mut self, device: DeviceId) {
        self.ledger.watch(device);
        self.outsiders_reading_begins(device);
    }

    /// The device's memory was read again.
    pub fn set_memory(&mut self, now: Moment, device: DeviceId, memory: Memory) {
        self.take_reading(now, device, |scheduler| scheduler.read_outsiders(now, device, memory));
    }

    /// Draws the line by a reading, once it is known what of it is whose.
    pub(super) fn take_reading(&mut self, now: Moment, device: DeviceId, read: impl FnOnce(&mut Self) -> Memory) {
        // What other programs hold is no part of our own heap.
        let promised = self.ledger.peak_watched(device) - self.ledger.programs(device);
        let before = self.ledger.promised(device);
        let memory = read(self);
        let came_back = self.ledger.promised(device) < before;
        self.ledger.watch(device);
        self.draw_line(now, device, memory, promised);
        if came_back {
            self.memory_freed(now);
        }
    }

    /// Draws the line by a reading in which what programs use of their grants counts as free, taken while our own were
    /// promised so much.
    pub(super) fn draw_line(&mut self, now: Moment, device: DeviceId, memory: Memory, promised: Bytes) {
        let (line, ceiling) = self.device_mut(device).line_after(memory, promised);
        let before = (self.ledger.line(device), self.ledger.ceiling(device));
        if (line, ceiling) == before {
            return;
        }
        let (before, _) = before;
        self.things_changed();
        self.ledger.set_line(device, line, ceiling);
        let promised = self.ledger.promised(device);
        self.note(now, || What::LineMoved { device, line, promised });
        if line > before {
            self.memory_freed(now);
        } else {
            self.step_off_what_no_longer_fits(now, device);
            self.yield_to_strangers(now);
            self.offer_memory_to_grants(now);
        }
    }

    /// Tasks queued here that need more than the new line are chosen for again.
    fn step_off_what_no_longer_fits(&mut self, now: Moment, device: DeviceId) {
        let line = self.ledger.line(device);
        let too_large: Vec<_> =
            self.device(device).queue.iter().filter(|task| self.queued_bytes(*task) > line).collect();
        for &task in &too_large {
            self.dequeue(task);
        }
        for task in too_large {
            self.place(now, task);
        }
    }

    /// What the rung that a task is queued for takes, as far as that is known.
    pub(super) fn queued_bytes(&self, task: crate::TaskId) -> Bytes {
        let Some(state) = self.tasks.get(task) else { return Bytes::ZERO };
        let super::state::Phase::Queued { rung, device, .. } = state.phase else { return Bytes::ZERO };
        let rung = &state.spec.ladder.rungs()[rung];
        self.beside_own_session(&state.spec, rung, self.wanted(device, &state.spec, rung))
    }

    /// A handle holds this content from now on, wherever it is or will be prepared.
    pub fn pin(&mut self, content: ContentKey) {
        *self.pins.entry(content).or_default() += 1;
        for device in &mut self.devices {
            device.cache.hold(content);
        }
    }

    /// A handle lets go of this content. It stays held while there are others.
    pub fn unpin(&mut self, content: ContentKey) {
        let Some(handles) = self.pins.get_mut(&content) else { return };
        *handles -= 1;
        if *handles == 0 {
            self.pins.remove(&content);
            self.let_go(content);
        }
    }

    /// Nobody holds this content any more: what was prepared of it goes, at once or with its last user.
    fn let_go(&mut self, content: ContentKey) {
        self.things_changed();
        for device in self.device_ids() {
            for (prepared, lease) in self.device_mut(device).cache.let_go(content) {
                self.give_back(lease);
                self.discarded.references.push(prepared);
                self.wakes = self.wakes.with(device);
            }
        }
    }

    /// Gives up everything that is warm and that no run holds, on every device.
    pub fn discard_warm(&mut self) {
        for device in self.device_ids() {
            self.start_epoch(device);
        }
    }

    /// What was made so far belongs to the past: idle things go now, the rest with the run that holds it.
    fn start_epoch(&mut self, device: DeviceId) {
        let state = self.device_mut(device);
        state.epoch += 1;
        let sessions = state.sessions.clear();
        let references = state.cache.start_epoch();
        for warm in sessions {
            self.give_back(warm.lease);
            self.discarded.sessions.push(warm.session);
        }
        for (prepared, lease) in references {
            self.give_back(lease);
            self.discarded.references.extend(prepared);
        }
    }
}
