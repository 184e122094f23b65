//! Makes references that are kept before others, wherever code runs: a stage of a pipeline has no orchestrator at hand.
//! Never keeps an orchestrator alive.

use std::sync::{Arc, Weak};

use crate::orchestrator::Registered;
use crate::shared::Shared;
use crate::task::{Pin, Reference};
use crate::workload::{Content, Workload};

/// Hands over references as [`Orchestrator::pin_reference`](crate::Orchestrator::pin_reference) does. Cheap to clone.
///
/// ```
/// use plimsoll_runtime::{Orchestrator, Task, workload};
/// let orchestrator = Orchestrator::builder().cpu(1).build();
/// let pinner = orchestrator.reference_pinner();
/// let count = orchestrator.register(workload::function("count", |text: &String| Ok::<_, std::io::Error>(text.len())));
/// let of_nothing = pinner.pin_reference(&count, ());
/// assert_eq!(of_nothing.key(), orchestrator.pin_reference(&count, ()).key());
/// ```
#[derive(Clone)]
pub struct ReferencePinner {
    pub(crate) shared: Weak<Shared>,
}

impl ReferencePinner {
    /// A reference that many tasks will share: hashed once, prepared on a device the first time a task needs it there, and
    /// kept before all others as long as a clone of the handle lives.
    pub fn pin_reference<W: Workload>(
        &self,
        _workload: &Registered<W>,
        reference: impl Into<Arc<W::Reference>>,
    ) -> Reference<W> {
        let data = reference.into();
        let key = data.key();
        let Some(shared) = self.shared.upgrade() else { return Reference { data, key, pin: None } };
        shared.lock().scheduler.pin(key);
        let shared = Weak::clone(&self.shared);
        let let_go = move |key| {
            if let Some(shared) = shared.upgrade() {
                shared.lock().scheduler.unpin(key);
            }
        };
        Reference { data, key, pin: Some(Arc::new(Pin { key, let_go: Box::new(let_go) })) }
    }
}

impl std::fmt::Debug for ReferencePinner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReferencePinner").finish_non_exhaustive()
    }
}
