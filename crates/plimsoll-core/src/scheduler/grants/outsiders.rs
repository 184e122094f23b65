//! Outsiders: what other programs have of a device, and whether what they gave back is free.
//! Never asks a program: only what the driver says of free memory counts.
//!
//! The driver tells what all other programs hold together. A program with a grant is promised its bytes in the ledger; if
//! what it really uses also lowered the line, it would count twice. So what others hold is split in two: what strangers
//! held when the grants began (or less since), and the rest, up to what is granted, which is taken to be the grants'.
//! Invariants: the line is too high by at most what programs were granted and do not use; bytes that a program gave back
//! stay promised until the driver's figure has fallen by them, or until nobody waits for that any longer.

use super::super::{Host, Scheduler};
use super::returns::{Receding, ReturnId};
use crate::event::{GrantEdge, What};
use crate::grant::{GrantId, GrantOwner};
use crate::ledger::LeaseId;
use crate::line::Memory;
use crate::{Bytes, DeviceId, Moment};

/// What was last seen of other programs on one device.
#[derive(Clone, Debug, Default)]
pub(in crate::scheduler) struct Outsiders {
    /// The reading, as it came.
    memory: Memory,
    /// What all other programs held.
    others: Bytes,
    /// The part of it that those without a grant held.
    strangers: Bytes,
    /// At most what programs gave back and were not seen to free in time. If the figure falls, it may be that.
    given_up: Bytes,
    /// What programs were promised when it was read, less what was given up on since: a grant that came later is not in
    /// the figure.
    granted: Bytes,
    /// Where the driver tells what each owner uses: what of it was given up on and is still in use, as far as that is
    /// known. Only owners that use something.
    late: Option<Vec<(GrantOwner, Bytes)>>,
}

impl Outsiders {
    pub(in crate::scheduler) fn new(memory: Memory) -> Self {
        let others = held_by_others(memory);
        Self { memory, others, strangers: others, given_up: Bytes::ZERO, granted: Bytes::ZERO, late: None }
    }

    /// What programs use of what they were granted.
    pub(super) fn granted_in_use(&self) -> Bytes {
        self.others - self.strangers
    }

    /// So much of what strangers hold is a program's that is about to be promised it.
    pub(super) fn take_from_strangers(&mut self, bytes: Bytes) {
        (self.strangers, self.granted) = (self.strangers - bytes, self.granted + bytes);
    }

    /// So much of what programs use is no longer promised to any of them.
    pub(super) fn leave_to_strangers(&mut self, bytes: Bytes) {
        (self.strangers, self.granted) = ((self.strangers + bytes).min(self.others), self.granted - bytes);
    }

    /// All that an owner uses is about to be promised to it: nothing of it is late any more.
    pub(super) fn forgive(&mut self, owner: GrantOwner) {
        self.late.iter_mut().for_each(|late| late.retain(|(by, _)| *by != owner));
    }

    /// What programs without a grant hold.
    pub(super) fn strangers(&self) -> Bytes {
        self.strangers
    }

    /// A new reading, while programs are promised so much; `returned` of it was given back before the reading began. Says
    /// how much of that is free.
    fn read(&mut self, memory: Memory, granted: Bytes, returned: Bytes) -> Bytes {
        let before = std::mem::replace(&mut self.others, held_by_others(memory));
        self.memory = memory;
        let fallen = before - self.others;
        let late = fallen.min(self.given_up);
        let fallen_by_returned = fallen - late;
        self.given_up -= late;
        self.strangers = (self.strangers - late).min(self.others);
        self.redraw(granted);
        // What was given up on may have been freed since, and somebody else have taken as much.
        let surely_strangers = self.strangers - self.given_up;
        // What the driver's figure has not fallen by is still in use, but no more than anybody could have.
        let left = (returned - fallen_by_returned).min(self.others - surely_strangers);
        returned - left
    }

    /// A new reading that also tells what programs use of what they are promised. The reading as the line is to be drawn by.
    pub(super) fn read_in_parts(&mut self, memory: Memory, granted_in_use: Bytes) -> Memory {
        (self.memory, self.others, self.given_up) = (memory, held_by_others(memory), Bytes::ZERO);
        self.granted = granted_in_use.min(self.others);
        self.strangers = self.others - self.granted;
        self.for_the_line()
    }

    /// Owners use so much: no more of what was given up on can be.
    pub(super) fn owners_use(&mut self, uses: impl Fn(GrantOwner) -> Bytes) {
        let late = self.late.get_or_insert_default();
        late.iter_mut().for_each(|(owner, bytes)| *bytes = uses(*owner).min(*bytes));
        late.retain(|(_, bytes)| *bytes > Bytes::ZERO);
    }

    /// What of an owner's use was given up on.
    pub(super) fn late_of(&self, owner: GrantOwner) -> Bytes {
        self.late.iter().flatten().filter(|(by, _)| *by == owner).map(|(_, bytes)| *bytes).sum()
    }

    /// So much was given back, and is not waited for any longer: what of it is in use is strangers'.
    fn give_up(&mut self, bytes: Bytes, owner: GrantOwner) {
        self.redraw(self.granted - bytes);
        if let Some(late) = &mut self.late {
            match late.iter_mut().find(|(by, _)| *by == owner) {
                Some((_, known)) => *known += bytes,
                None => late.push((owner, bytes)),
            }
        }
        self.given_up = (self.given_up + bytes).min(self.others);
    }

    /// What is beyond the granted bytes is strangers'.
    fn redraw(&mut self, granted: Bytes) {
        self.granted = granted;
        self.strangers = self.strangers.max(self.others - granted);
    }

    /// The reading as the line is to be drawn by: what programs use of what they were granted is promised already.
    pub(super) fn for_the_line(&self) -> Memory {
        Memory { free: self.memory.free + self.granted_in_use(), ..self.memory }
    }
}

/// What other programs hold. Where the process as a whole is measured, nothing of it is theirs.
fn held_by_others(memory: Memory) -> Bytes {
    memory.capacity - memory.free - memory.ours.max(memory.resident.unwrap_or_default())
}

impl<H: Host> Scheduler<H> {
    /// The reading as the line is to be drawn by. What was given back and is free by it comes back.
    pub(in crate::scheduler) fn read_outsiders(&mut self, now: Moment, device: DeviceId, memory: Memory) -> Memory {
        let (read, returned) = self.returned_before_reading(device);
        let granted = self.ledger.programs(device);
        let free = self.grants.outsiders[device.index()].read(memory, granted, returned);
        self.free_receding(now, device, free, &read);
        let granted = self.ledger.programs(device);
        let outsiders = &mut self.grants.outsiders[device.index()];
        outsiders.redraw(granted);
        outsiders.for_the_line()
    }

    /// A reading begins: what was given back until now is not in use by its owner while it is taken.
    pub(in crate::scheduler) fn outsiders_reading_begins(&mut self, device: DeviceId) {
        self.grants.receding.reading_begins(device);
    }

    /// What was given back before the reading began, oldest first, and how much that is.
    fn returned_before_reading(&self, device: DeviceId) -> (Vec<ReturnId>, Bytes) {
        let read = || self.grants.receding.iter().filter(|(_, each)| each.is_read_on(device));
        let bytes = read().map(|(_, each)| self.ledger.held(each.lease, device)).sum();
        (read().map(|(id, _)| id).collect(), bytes)
    }

    /// What programs really use of what they were granted.
    #[inline]
    pub(in crate::scheduler) fn granted_in_use(&self, device: DeviceId) -> Bytes {
        self.grants.outsiders[device.index()].granted_in_use()
    }

    /// So many bytes of these, which were given back, are free: the first of them first.
    pub(super) fn free_receding(&mut self, now: Moment, device: DeviceId, mut free: Bytes, returns: &[ReturnId]) {
        for id in returns {
            if free == Bytes::ZERO {
                return;
            }
            let Some(&Receding { grant, lease, .. }) = self.grants.receding.get(*id) else { continue };
            let held = self.ledger.held(lease, device);
            let freed = held.min(free);
            free -= freed;
            if freed == held {
                self.grants.receding.remove(*id);
                self.came_back(now, grant, lease);
            } else if let Some(part) = self.ledger.split(lease, device, held - freed) {
                self.give_back(part);
            }
        }
    }

    fn came_back(&mut self, now: Moment, grant: GrantId, lease: LeaseId) {
        self.give_back(lease);
        self.end_if_free(now, grant);
    }

    /// What was given back long ago and not seen to be free is believed to be what the driver says: the line shows it.
    pub(super) fn believe_the_driver(&mut self, now: Moment) {
        while let Some(each) = self.grants.receding.take_due(now) {
            let (grant, device, owner) = (each.grant, each.device, each.owner);
            let bytes = self.ledger.held(each.lease, device);
            self.note(now, || What::Grant { grant, edge: GrantEdge::Unseen { device, bytes } });
            self.came_back(now, grant, each.lease);
            let granted = self.ledger.programs(device);
            let outsiders = &mut self.grants.outsiders[device.index()];
            outsiders.give_up(bytes, owner);
            let memory = outsiders.for_the_line();
            let own = self.ledger.promised(device) - granted;
            self.draw_line(now, device, memory, own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOMEBODY: GrantOwner = GrantOwner::Program(1);

    /// Of a device of 100, so much is held by others; ours is nothing.
    fn others(held: u64) -> Memory {
        Memory { capacity: Bytes(100), free: Bytes(100 - held), ..Memory::default() }
    }

    fn free_for_the_line(outsiders: &Outsiders) -> u64 {
        outsiders.for_the_line().free.0
    }

    #[test]
    fn what_a_program_uses_of_its_grant_does_not_count_twice() {
        let mut seen = Outsiders::new(others(10));
        assert_eq!(free_for_the_line(&seen), 90, "strangers count");
        for used in [0, 15, 30] {
            seen.read(others(10 + used), Bytes(30), Bytes::ZERO);
            assert_eq!(free_for_the_line(&seen), 90, "{used} of 30 in use");
        }
        seen.read(others(10 + 30 + 5), Bytes(30), Bytes::ZERO);
        assert_eq!(free_for_the_line(&seen), 85, "what is beyond the grant is strangers'");
        seen.read(others(10 + 30), Bytes(30), Bytes::ZERO);
        assert_eq!(free_for_the_line(&seen), 85, "too low, and safe: 5 of the grant may be unused");
    }

    #[test]
    fn what_was_given_back_is_free_when_the_figure_has_fallen() {
        let mut seen = Outsiders::new(others(10));
        seen.read(others(40), Bytes(30), Bytes::ZERO);
        assert_eq!(seen.read(others(40), Bytes(30), Bytes(30)), Bytes::ZERO, "it said so, the driver does not");
        assert_eq!(seen.read(others(28), Bytes(30), Bytes(30)), Bytes(12));
        assert_eq!(seen.read(others(10), Bytes(18), Bytes(18)), Bytes(18));
    }

    #[test]
    fn what_was_never_used_is_free_at_once() {
        let mut seen = Outsiders::new(others(10));
        seen.read(others(10), Bytes(30), Bytes::ZERO);
        assert_eq!(seen.read(others(10), Bytes(30), Bytes(30)), Bytes(30));
    }

    /// It was not yet seen to be in use when it was given back.
    #[test]
    fn use_that_shows_after_the_return_is_not_free() {
        let mut seen = Outsiders::new(others(10));
        assert_eq!(seen.read(others(40), Bytes(30), Bytes(30)), Bytes::ZERO);
        assert_eq!(seen.read(others(10), Bytes(30), Bytes(30)), Bytes(30));
    }

    #[test]
    fn what_another_grant_uses_is_not_taken_for_what_was_given_back() {
        let mut seen = Outsiders::new(others(0));
        seen.read(others(50), Bytes(50), Bytes::ZERO);
        assert_eq!(seen.read(others(50), Bytes(50), Bytes(20)), Bytes::ZERO);
        assert_eq!(seen.read(others(30), Bytes(50), Bytes(20)), Bytes(20));
        assert_eq!(free_for_the_line(&seen), 100, "the other uses its 30");
    }

    #[test]
    fn what_is_believed_to_be_in_use_is_strangers() {
        let mut seen = Outsiders::new(others(0));
        seen.read(others(50), Bytes(50), Bytes::ZERO);
        seen.give_up(Bytes(30), SOMEBODY);
        assert_eq!(free_for_the_line(&seen), 70, "30 were given up on, and are still in use");
    }

    /// One that gave back 30 long ago frees them while another's 20 are waited for.
    #[test]
    fn what_is_freed_late_is_not_taken_for_what_another_gave_back() {
        let mut seen = Outsiders::new(others(0));
        seen.read(others(50), Bytes(50), Bytes::ZERO);
        seen.give_up(Bytes(30), SOMEBODY);
        assert_eq!(seen.read(others(20), Bytes(20), Bytes(20)), Bytes::ZERO);
        assert_eq!(free_for_the_line(&seen), 100);
        assert_eq!(seen.read(others(0), Bytes(20), Bytes(20)), Bytes(20));
    }

    /// One that was given up on frees 30, and another takes 30: the figure is the same.
    #[test]
    fn what_hides_behind_what_was_given_up_on_is_not_free() {
        let mut seen = Outsiders::new(others(0));
        seen.read(others(30), Bytes(30), Bytes::ZERO);
        seen.give_up(Bytes(30), SOMEBODY);
        seen.read(others(30), Bytes(30), Bytes::ZERO);
        assert_eq!(seen.read(others(30), Bytes(30), Bytes(30)), Bytes::ZERO);
        assert_eq!(seen.read(others(0), Bytes(30), Bytes(30)), Bytes(30));
    }

    /// 30 were given up on beside a grant of 20 of which 10 are used; when they are freed late, the 10 are the grant's.
    #[test]
    fn what_is_freed_late_is_strangers_no_more() {
        let mut seen = Outsiders::new(others(0));
        seen.read(others(40), Bytes(50), Bytes::ZERO);
        seen.give_up(Bytes(30), SOMEBODY);
        assert_eq!(free_for_the_line(&seen), 80, "of the 40 in use at least 20 are strangers'");
        seen.read(others(10), Bytes(20), Bytes::ZERO);
        assert_eq!(free_for_the_line(&seen), 100);
        assert_eq!(seen.read(others(10), Bytes(20), Bytes(20)), Bytes(10), "the other 10 are still in use");
    }

    /// What is given up on can hide in what another program was granted and does not use.
    #[test]
    fn what_was_given_up_on_is_remembered_even_if_it_does_not_show() {
        let mut seen = Outsiders::new(others(0));
        seen.read(others(30), Bytes(60), Bytes::ZERO);
        seen.give_up(Bytes(30), SOMEBODY);
        assert_eq!(free_for_the_line(&seen), 100, "the 30 in use may be those of the grant that is left");
        seen.read(others(60), Bytes(30), Bytes::ZERO);
        assert_eq!(seen.read(others(30), Bytes(30), Bytes(30)), Bytes::ZERO, "whose 30 fell?");
    }

    /// 30 are given back of which 20 were used, beside 10 that were given up on. Those 10 are freed late: of the 30, 10 must
    /// be free whoever freed them, as only 20 are in use.
    #[test]
    fn no_more_is_in_use_than_others_hold() {
        let mut seen = Outsiders::new(others(0));
        seen.read(others(30), Bytes(40), Bytes::ZERO);
        seen.give_up(Bytes(10), SOMEBODY);
        assert_eq!(seen.read(others(20), Bytes(30), Bytes(30)), Bytes(10));
    }

    /// 30 are given up on after a reading of 50 and before one in which a grant of 20 that came since would show.
    #[test]
    fn what_is_given_up_on_does_not_hide_behind_a_grant_that_was_not_read() {
        let mut seen = Outsiders::new(others(0));
        seen.read(others(50), Bytes(50), Bytes::ZERO);
        seen.give_up(Bytes(30), SOMEBODY);
        assert_eq!(free_for_the_line(&seen), 70, "whatever was granted since: it was not in use when that was read");
    }

    /// 30 that were given up on are freed; of the next to give back 20, all of it is seen to be free beside 10 in use.
    #[test]
    fn what_was_given_up_on_is_forgotten_once_it_is_free() {
        let mut seen = Outsiders::new(others(0));
        seen.read(others(60), Bytes(60), Bytes::ZERO);
        seen.give_up(Bytes(30), SOMEBODY);
        seen.read(others(30), Bytes(30), Bytes::ZERO);
        assert_eq!(seen.read(others(10), Bytes(30), Bytes(20)), Bytes(20));
    }

    #[test]
    fn what_this_process_holds_is_nobody_elses() {
        let memory = Memory { capacity: Bytes(100), free: Bytes(40), ours: Bytes::ZERO, resident: Some(Bytes(50)) };
        assert_eq!(held_by_others(memory), Bytes(10));
    }
}
