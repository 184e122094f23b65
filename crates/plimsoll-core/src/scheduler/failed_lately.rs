//! The errors of tasks that failed lately, so that a successor submitted after the fact learns the cause. That a task
//! failed is known for longer: `TaskTable` remembers it.
//! Never grows beyond [`REMEMBERED`].

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::{TaskError, TaskId};

/// Errors remembered. A successor is named while its predecessor is still on the caller's mind.
const REMEMBERED: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct FailedLately {
    errors: FxHashMap<TaskId, TaskError>,
    order: VecDeque<TaskId>,
}

impl FailedLately {
    pub(super) fn remember(&mut self, task: TaskId, error: &TaskError) {
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.errors.remove(&oldest);
        }
        self.errors.insert(task, error.clone());
        self.order.push_back(task);
    }

    pub(super) fn error(&self, task: TaskId) -> Option<&TaskError> {
        self.errors.get(&task)
    }
}
