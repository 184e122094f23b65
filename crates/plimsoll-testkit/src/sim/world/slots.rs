//! The slots of a device as the runtime's threads: each works, or waits until it is woken. Only who is woken looks for
//! work, so a wake-up that the scheduler forgets shows.
//! Never wakes more than the runtime does: one waiting slot for each device that the scheduler names when the lock is
//! released, all of them if the number of slots that should ask changed.

use plimsoll_core::DeviceId;
use plimsoll_core::rng::Rng;

use super::{Taken, World};

/// Looks for work in one moment after which slots count as waking each other without end: far more than there are slots
/// and tasks.
const LOOKS_MAX: usize = 20_000;

/// What a slot's thread does now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Slot {
    /// It will ask for work.
    Awake,
    /// It waits until its device has work for it.
    Waits,
    /// It is beyond the slots in use and waits until more are wanted.
    Spare,
    /// It has a run.
    Busy,
}

/// The slots of one device.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    all: Vec<Slot>,
    /// How many should have asked for work when the lock was last released.
    wanted: usize,
}

impl Slots {
    pub(super) fn new(slots: usize, wanted: usize) -> Self {
        Self { all: vec![Slot::Awake; slots], wanted }
    }

    /// Slots with a run on them.
    pub(crate) fn busy(&self) -> usize {
        self.count(Slot::Busy)
    }

    /// Slots that wait for work.
    pub(crate) fn waiting(&self) -> usize {
        self.count(Slot::Waits)
    }

    fn count(&self, wanted: Slot) -> usize {
        self.all.iter().filter(|slot| **slot == wanted).count()
    }

    pub(super) fn free(&mut self, slot: usize) {
        self.all[slot] = Slot::Awake;
    }

    fn notify_one(&mut self, rng: &mut Rng) {
        let waiting = self.waiting();
        if waiting == 0 {
            return;
        }
        let which = rng.below(waiting);
        if let Some(slot) = self.all.iter_mut().filter(|slot| **slot == Slot::Waits).nth(which) {
            *slot = Slot::Awake;
        }
    }

    fn notify_all_if_changed(&mut self, wanted: usize) {
        if std::mem::replace(&mut self.wanted, wanted) != wanted {
            let asleep = self.all.iter_mut().filter(|slot| matches!(slot, Slot::Waits | Slot::Spare));
            asleep.for_each(|slot| *slot = Slot::Awake);
        }
    }
}

impl World {
    /// Every slot that is awake looks for work, until all of them have some or wait.
    pub(super) fn dispatch(&mut self) -> Result<(), String> {
        self.release()?;
        let mut looks = 0;
        while let Some((device, slot)) = self.pick_awake() {
            self.look_for_work(device, slot)?;
            looks += 1;
            if looks > LOOKS_MAX {
                return Err(format!("livelock: slots wake each other without end at {:?}", self.now));
            }
        }
        Ok(())
    }

    /// Threads get the lock in any order.
    fn pick_awake(&mut self) -> Option<(DeviceId, usize)> {
        let awake = |state: &super::VirtualState| state.slots.count(Slot::Awake);
        let all: usize = self.devices.iter().map(awake).sum();
        if all == 0 {
            return None;
        }
        let mut which = self.rng.below(all);
        for (at, state) in self.devices.iter().enumerate() {
            for (slot, _) in state.slots.all.iter().enumerate().filter(|(_, slot)| **slot == Slot::Awake) {
                if which == 0 {
                    return Some((DeviceId(at as u16), slot));
                }
                which -= 1;
            }
        }
        None
    }

    fn look_for_work(&mut self, device: DeviceId, slot: usize) -> Result<(), String> {
        if slot >= self.scheduler.slots_wanted(device) {
            self.devices[device.index()].slots.all[slot] = Slot::Spare;
            return self.release();
        }
        let before = self.before_take(device);
        if let Some(assignment) = self.scheduler.take(self.now, device) {
            self.devices[device.index()].slots.all[slot] = Slot::Busy;
            self.after_take(before, Taken::of(&assignment))?;
            self.take_off(device, slot, assignment)?;
            return self.release();
        }
        // As in the runtime: who has something to follow up does not go to sleep before it looked again.
        let has_news = self.scheduler.has_news();
        self.release()?;
        if !has_news {
            self.devices[device.index()].slots.all[slot] = Slot::Waits;
        }
        Ok(())
    }

    /// Wakes whom the scheduler wants awake.
    pub(super) fn notify(&mut self) {
        let wakes = self.scheduler.drain_wakes();
        for at in 0..self.devices.len() {
            let device = DeviceId(at as u16);
            if wakes.contains(device) {
                let slots = &mut self.devices[at].slots;
                slots.notify_one(&mut self.rng);
                slots.notify_all_if_changed(self.scheduler.slots_wanted(device));
            }
        }
    }
}
