//! A device's queue: tasks placed on it, in the order in which they should start.
//! Never decides what may start; `scheduler::take` does.
//! Invariant: keys ascend and are unique.

use std::collections::VecDeque;

use crate::{Moment, TaskId};

/// A task's place in the order. Smaller goes first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    /// When it would have been submitted at the lowest priority to stand here: see `arbiter`.
    pub(crate) turn: Moment,
    /// The order of submission, or the rank in a plan. Unique.
    pub(crate) order: u64,
}

/// The tasks placed on one device. In submission order both ends cost O(1); a jump of the queue moves the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceQueue {
    entries: VecDeque<(QueueKey, TaskId)>,
}

impl DeviceQueue {
    /// Tasks waiting.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Puts a task at its place.
    #[inline]
    pub(crate) fn push(&mut self, key: QueueKey, task: TaskId) {
        if self.entries.back().is_none_or(|&(last, _)| last < key) {
            self.entries.push_back((key, task));
            return;
        }
        let at = self.entries.partition_point(|&(other, _)| other < key);
        self.entries.insert(at, (key, task));
    }

    /// Takes the task with this key out; says whether it was there.
    #[inline]
    pub(crate) fn remove(&mut self, key: QueueKey) -> bool {
        if self.entries.front().is_some_and(|&(first, _)| first == key) {
            self.entries.pop_front();
            return true;
        }
        match self.entries.binary_search_by_key(&key, |&(other, _)| other) {
            Ok(at) => self.entries.remove(at).is_some(),
            Err(_) => false,
        }
    }

    /// The tasks, first to start first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = TaskId> + '_ {
        self.entries.iter().map(|&(_, task)| task)
    }

    /// The `index`-th task to start.
    pub(crate) fn nth(&self, index: usize) -> Option<TaskId> {
        self.entries.get(index).map(|&(_, task)| task)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(turn: u64, order: u64) -> QueueKey {
        QueueKey { turn: Moment(turn), order }
    }

    proptest! {
        #[test]
        fn order_is_by_key_whatever_the_order_of_pushes(turns in proptest::collection::vec(0..20_u64, 0..60)) {
            let mut queue = DeviceQueue::default();
            for (order, &turn) in turns.iter().enumerate() {
                queue.push(key(turn, order as u64), TaskId(order as u64));
            }
            let mut expected: Vec<_> = turns.iter().enumerate().map(|(s, &t)| (t, s as u64)).collect();
            expected.sort_unstable();
            prop_assert_eq!(queue.iter().map(|task| task.0).collect::<Vec<_>>(),
                expected.iter().map(|&(_, s)| s).collect::<Vec<_>>());
            for (turn, order) in expected.into_iter().rev() {
                prop_assert!(queue.remove(key(turn, order)));
                prop_assert!(!queue.remove(key(turn, order)));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
