//! Allotments: how much of each line may be promised here, and how much more is wanted.
//! Never asks anybody: whoever keeps the book does (see [`crate::allotment`]), and says what came of it.
//! Invariant: without an allotment nothing here is ever reached by a task on its way.

use smallvec::SmallVec;

use super::evict::Needs;
use super::state::Phase;
use super::take::LOOK;
use super::{Discards, Host, Scheduler};
use crate::allotment::Standing;
use crate::{Bytes, DeviceId, DeviceSet, Moment, Nanos, Priority, TaskId};

/// How long a new grant waits for a larger allotment before it takes a lower rung: a few looks at the book.
const ALLOTMENT_WAIT_MAX: Nanos = Nanos::millis(150);

/// What is wanted beyond the allotments.
#[derive(Debug)]
pub(super) struct Allotments {
    /// Devices of which more was wanted since somebody last looked.
    wanted: DeviceSet,
    /// What callers asked for who take it at once or not at all: the allotment that would do.
    asked: SmallVec<[(DeviceId, Bytes, Priority); 1]>,
}

impl Default for Allotments {
    fn default() -> Self {
        Self { wanted: DeviceSet::NONE, asked: SmallVec::new() }
    }
}

impl<H: Host> Scheduler<H> {
    /// Says how much of a device's line may be promised here; `None` is all of it. What is promised beyond it stays so,
    /// and comes back as it would anyway.
    pub fn set_allotment(&mut self, now: Moment, device: DeviceId, allotment: Option<Bytes>) {
        if self.ledger.allotment(device) == allotment {
            return;
        }
        let before = self.ledger.line(device);
        self.ledger.set_allotment(device, allotment);
        if self.ledger.line(device) != before {
            let rose = self.ledger.line(device) > before;
            self.line_moved(now, device, rose);
        }
    }

    /// These bytes are in use already, whoever was asked: they count as allotted, so that others hear of them.
    pub(super) fn allot_what_is_there(&mut self, portions: &[(DeviceId, Bytes)]) {
        for &(device, bytes) in portions {
            let needed = self.ledger.promised(device) + bytes;
            if self.ledger.allotment(device).is_some_and(|allotment| allotment < needed) {
                self.ledger.set_allotment(device, Some(needed));
            }
        }
    }

    /// The allotment of a device with which the next task, grant or session that does not fit would, and how urgent that
    /// is; `None` if nothing waits for it, or more allotment would not help.
    pub fn wanted_allotment(&self, device: DeviceId) -> Option<(Bytes, Priority)> {
        if !self.ledger.is_capped(device) {
            return None;
        }
        let asked = self.allotments.asked.iter().filter(|(on, ..)| *on == device);
        let asked = asked.map(|(_, bytes, priority)| (*bytes, *priority));
        let wanted = asked.chain(self.wanted_by_grants(device)).chain(self.wanted_by_tasks(device));
        let wanted = wanted.filter(|(bytes, _)| *bytes > self.ledger.line(device));
        wanted.max_by_key(|(bytes, priority)| (*priority, std::cmp::Reverse(*bytes)))
    }

    /// The devices of which more was wanted since the last call.
    pub fn drain_wants(&mut self) -> DeviceSet {
        std::mem::replace(&mut self.allotments.wanted, DeviceSet::NONE)
    }

    /// Somebody will ask for these bytes in a moment, and take them at once or not at all: where that needs more allotment,
    /// it is wanted from now until [`Scheduler::asks_no_longer`]. Says on which devices.
    pub fn will_ask_for(&mut self, portions: &[(DeviceId, Bytes)], priority: Priority) -> DeviceSet {
        let mut wanted = DeviceSet::NONE;
        for &(device, bytes) in portions.iter().filter(|(device, _)| device.index() < self.devices.len()) {
            let missing = bytes - self.free_for_grants(device);
            if missing > Bytes::ZERO && self.could_be_allotted(device, missing) {
                self.allotments.asked.push((device, self.allotment_with(device, missing), priority));
                wanted = wanted.with(device);
                self.allotments.wanted = self.allotments.wanted.with(device);
            }
        }
        wanted
    }

    /// Whoever asked with [`Scheduler::will_ask_for`] has what it asked for, or goes without.
    pub fn asks_no_longer(&mut self, devices: DeviceSet) {
        self.allotments.asked.retain(|(device, ..)| !devices.contains(*device));
    }

    /// Where we stand on a device, but for what only whoever keeps the book knows. The least and the most that were
    /// promised begin anew.
    pub fn standing(&mut self, device: DeviceId) -> Standing {
        let (least, most) = self.ledger.take_extremes(device);
        let state = self.device(device);
        Standing {
            promised: self.ledger.promised(device),
            idle: state.sessions.idle_bytes() + state.cache.idle_bytes(),
            least,
            most,
            ours: state.memory.ours,
            capacity: state.memory.capacity,
            strangers: state.memory.capacity - (state.memory.free + state.memory.ours),
            share: state.spec.margin.share,
            limit: state.spec.margin.limit,
            urgency: self.urgency(device),
            ..Standing::default()
        }
    }

    /// Gives up idle things, the least useful first, until so many bytes less are promised. Drop them before anybody is
    /// told.
    pub fn give_up_idle(&mut self, now: Moment, device: DeviceId, bytes: Bytes) -> Discards<H> {
        let target = self.ledger.promised(device) - bytes;
        let mut discards = Discards::default();
        if bytes == Bytes::ZERO {
            return discards;
        }
        let is_above = |ledger: &crate::ledger::Ledger| ledger.promised(device) > target;
        self.evict_while(now, device, is_above, &Needs::nothing(), &mut discards);
        self.things_changed();
        discards
    }

    /// Somebody outside who is this urgent wants what grants and held sessions have of a device beyond the line: those that
    /// are less urgent are asked to step down.
    pub fn step_down_for_others(&mut self, now: Moment, device: DeviceId, priority: Priority) -> bool {
        self.recall_for_others(now, device, priority)
    }

    /// Whether so many bytes more would be there if the allotment were larger.
    pub(super) fn could_be_allotted(&self, device: DeviceId, missing: Bytes) -> bool {
        self.ledger.is_capped(device) && self.allotment_with(device, missing) <= self.ledger.measured(device)
    }

    /// Until when a grant that is asked for now waits for a larger allotment rather than take a lower rung: the book is asked
    /// first, as it is for a task. Who has no patience for that takes what there is.
    pub(super) fn waits_for_allotment(&self, now: Moment, waits_until: Option<Moment>) -> Option<Moment> {
        let until = now + ALLOTMENT_WAIT_MAX;
        let is_capped = self.device_ids().any(|device| self.ledger.is_capped(device));
        (is_capped && waits_until.is_none_or(|end| end > until)).then_some(until)
    }

    /// A task lacks so many bytes: if a larger allotment would have them, it is wanted.
    pub(super) fn want_allotment_if_it_helps(&mut self, device: DeviceId, missing: Bytes) {
        if self.could_be_allotted(device, missing) {
            self.allotments.wanted = self.allotments.wanted.with(device);
        }
    }

    /// A grant was not given: if a larger allotment of its devices would have helped, it is wanted.
    pub(super) fn want_allotment_for_grants(&mut self) {
        for device in self.device_ids() {
            if self.ledger.is_capped(device) && self.wanted_by_grants(device).is_some() {
                self.allotments.wanted = self.allotments.wanted.with(device);
            }
        }
    }

    /// The most urgent of what runs on a device or stands first in its queue.
    fn urgency(&self, device: DeviceId) -> Option<Priority> {
        let priority = |task: TaskId| self.tasks.get(task).map(|state| state.spec.priority);
        let runs = self.runs.ids().filter_map(|id| self.runs.get(id)).filter(|run| run.device == device);
        // A run whose tasks have ended or moved still has its bytes.
        let running = runs.map(|run| run.tasks.iter().filter_map(|task| priority(*task)).max().unwrap_or_default());
        let queued = self.device(device).queue.iter().take(LOOK).filter_map(priority);
        running.chain(queued).max()
    }

    /// The allotment with which so much more could be promised. What is promised already may be above the line, which
    /// sinks as others come.
    pub(super) fn allotment_with(&self, device: DeviceId, missing: Bytes) -> Bytes {
        self.ledger.line(device).max(self.ledger.promised(device)) + missing
    }

    fn wanted_by_tasks(&self, device: DeviceId) -> Option<(Bytes, Priority)> {
        let mut heads = self.device(device).queue.iter().take(LOOK);
        heads.find_map(|task| self.wanted_by_task(device, task))
    }

    fn wanted_by_task(&self, device: DeviceId, task: TaskId) -> Option<(Bytes, Priority)> {
        let state = self.tasks.get(task)?;
        let Phase::Queued { rung, .. } = state.phase else { return None };
        let missing = self.shortfall(device, &state.spec, &state.spec.ladder.rungs()[rung])?;
        let helps = self.could_be_allotted(device, missing);
        helps.then(|| (self.allotment_with(device, missing), state.spec.priority))
    }
}
