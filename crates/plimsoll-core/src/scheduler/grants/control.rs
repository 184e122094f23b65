//! Control: what an owner, or whoever runs the machine, may change of a grant that is there.
//! Never moves bytes by itself: who waits looks again at what is left.

use super::super::{Host, Scheduler};
use super::book::Grant;
use crate::arbiter;
use crate::grant::{GrantId, GrantPhase};
use crate::{Moment, Nanos, Priority};

impl<H: Host> Scheduler<H> {
    /// A grant is as urgent as this from now on. One that waits keeps its age. Says whether there is such a grant.
    pub fn set_priority(&mut self, now: Moment, id: GrantId, priority: Priority) -> bool {
        let Some(grant) = self.grants.get(id) else { return false };
        if grant.phase == GrantPhase::Waiting {
            let turn = arbiter::turn(grant.asked_at, priority, grant.spec.deadline, Nanos::ZERO, 0);
            self.grants.stand_in_line(id, turn);
        }
        self.change_terms(now, id, |grant| grant.spec.priority = priority)
    }

    /// Nobody may ask for a grant from now on, or again. What was asked before stands, but goes no further. Says whether
    /// there is such a grant.
    pub fn set_pinned(&mut self, now: Moment, id: GrantId, pinned: bool) -> bool {
        self.change_terms(now, id, |grant| grant.spec.pinned = pinned)
    }

    /// The batch of a grant's owner has so many items left. Between two of them nobody takes its bytes, but for somebody
    /// [`leave_levels`](crate::Sharing::leave_levels) above who has waited for
    /// [`batch_wait_max`](crate::Sharing::batch_wait_max); and if it had to step down, nobody rises before it. Says
    /// whether there is such a grant.
    pub fn set_batch(&mut self, now: Moment, id: GrantId, items_left: u32) -> bool {
        self.change_terms(now, id, |grant| grant.items_left = items_left)
    }

    fn change_terms(&mut self, now: Moment, id: GrantId, change: impl FnOnce(&mut Grant)) -> bool {
        let is_there = self.grants.change(id, change).is_some();
        if is_there {
            self.yield_to_strangers(now);
            self.memory_freed(now);
        }
        is_there
    }
}
