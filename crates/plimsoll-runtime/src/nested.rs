//! Whether a thread is inside a task of an orchestrator: whoever waits there for another task of it keeps a slot from doing
//! that, and with few slots for ever.
//! Never guesses: a thread is marked only while a workload's code runs on it. Wakers and results that a slot hands over
//! outside of that may poll what they like.

use std::cell::Cell;

use crate::shared::Shared;

thread_local! {
    static INSIDE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Until it is dropped, this thread runs a task of an orchestrator.
pub(crate) struct Inside(Option<u64>);

impl Inside {
    pub(crate) fn of(shared: &Shared) -> Self {
        Self(INSIDE.replace(Some(shared.id)))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

/// Whether this thread runs a task of this orchestrator.
pub(crate) fn is_inside(shared: &Shared) -> bool {
    INSIDE.get() == Some(shared.id)
}
