//! A lease held by someone outside the scheduler: bytes of devices, until dropped.
//! Never returned twice: it has no `clone`, and `drop` returns it.

use std::sync::Arc;

use plimsoll_core::ledger::LeaseId;
use plimsoll_core::{Bytes, DeviceId};

use crate::shared::Shared;

/// A promise of bytes on one or several devices. Tasks are kept out of them until it is dropped.
#[must_use = "dropping a lease returns it"]
pub struct Lease {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: LeaseId,
    pub(crate) portions: Vec<(DeviceId, Bytes)>,
}

impl Lease {
    /// What is promised.
    pub fn portions(&self) -> &[(DeviceId, Bytes)] {
        &self.portions
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        state.scheduler.release(now, self.id);
        self.shared.release(state);
    }
}
