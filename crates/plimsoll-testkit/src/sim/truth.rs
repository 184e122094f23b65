//! The bytes that are really on each virtual device, counted apart from the ledger.
//! Never asks the scheduler: that is the point.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_core::Bytes;

/// One device's bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Account(Rc<Cell<u64>>);

impl Account {
    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.0.get())
    }

    pub(super) fn allocate(&self, bytes: Bytes) -> Allocation {
        self.0.set(self.0.get() + bytes.0);
        Allocation { bytes, account: self.clone() }
    }
}

/// Bytes on a device until dropped.
#[derive(Debug)]
pub struct Allocation {
    bytes: Bytes,
    account: Account,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.account.0.set(self.account.0.get() - self.bytes.0);
    }
}
