//! Strangers: programs without a grant have taken so much that the line is below what is held. The least urgent holders
//! step down or leave until it is not.
//! Never stops anybody for them, and leaves batches for last. Invariant: only if `Sharing::yields_to_strangers`.

use super::super::{Host, Scheduler};
use super::recall::{Asker, Round};
use crate::grant::Portions;
use crate::{Bytes, Moment};

impl<H: Host> Scheduler<H> {
    /// The line may have sunk below what grants and sequences hold.
    pub(in crate::scheduler) fn yield_to_strangers(&mut self, now: Moment) {
        if !self.config.sharing.yields_to_strangers || !self.grants.are_held() {
            return;
        }
        let over = self.device_ids().map(|device| {
            let stays = self.ledger.lasting(device) - self.coming_back(device);
            // What others were allotted is no stranger's: whoever keeps the book asks for that.
            (device, stays - self.ledger.measured(device))
        });
        let over: Portions = over.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect();
        if over.is_empty() {
            return;
        }
        let in_round = |round| self.steps_for(Asker::Strangers, round, &over);
        let steps = in_round(Round::Step).unwrap_or_else(|few| {
            in_round(Round::Leave).unwrap_or_else(|all| {
                // Even all of them are not enough: what can be had is better than nothing.
                if all.is_empty() { few } else { all }
            })
        });
        self.ask_for(now, steps);
    }
}
