//! The tasks that failed lately, and the errors of the last of them, so that a successor submitted after the fact learns of
//! it.
//! Never grows beyond [`FAILURES_MAX`] tasks and [`ERRORS_MAX`] errors.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::{Cause, TaskError, TaskId};

/// Failed tasks remembered. Which task is forgotten then is known, so that it never counts as one that succeeded.
pub(super) const FAILURES_MAX: usize = 65_536;
/// Errors remembered. A successor is named while its predecessor is still on the caller's mind.
const ERRORS_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct FailedLately {
    /// `None` where only the failure itself is still known.
    errors: FxHashMap<TaskId, Option<TaskError>>,
    order: VecDeque<TaskId>,
}

impl FailedLately {
    /// Remembers a failure; gives the task that is forgotten for it, if there are too many.
    pub(super) fn remember(&mut self, task: TaskId, error: &TaskError) -> Option<TaskId> {
        self.errors.insert(task, Some(error.clone()));
        self.order.push_back(task);
        if let Some(at) = self.order.len().checked_sub(ERRORS_MAX + 1) {
            self.errors.insert(self.order[at], None);
        }
        let forgotten = (self.order.len() > FAILURES_MAX).then(|| self.order.pop_front()).flatten()?;
        self.errors.remove(&forgotten);
        Some(forgotten)
    }

    /// The error of a task that failed; `None` if it is not known to have.
    pub(super) fn error(&self, task: TaskId) -> Option<TaskError> {
        let no_longer_kept = || TaskError::WorkFailed(Cause::new("its error is no longer kept"));
        self.errors.get(&task).map(|error| error.clone().unwrap_or_else(no_longer_kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_forgotten_before_failures() {
        let mut failed = FailedLately::default();
        let forgotten: Vec<_> = (0..FAILURES_MAX as u64 + 2)
            .filter_map(|task| failed.remember(TaskId(task), &TaskError::Cancelled))
            .collect();
        assert_eq!(forgotten, [TaskId(0), TaskId(1)]);
        let known = |back: usize| failed.error(TaskId((FAILURES_MAX + 2 - back) as u64)).map(|error| error.to_string());
        assert_eq!(known(ERRORS_MAX).as_deref(), Some("cancelled"));
        assert_eq!(known(ERRORS_MAX + 1).as_deref(), Some("its error is no longer kept"));
        assert_eq!((known(FAILURES_MAX + 1), failed.errors.len()), (None, FAILURES_MAX));
    }
}
