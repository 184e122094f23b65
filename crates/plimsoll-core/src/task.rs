//! What the caller says of a task, and the table of tasks that are not yet settled.
//! Never looks into a task's payload.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::{Bytes, ContentKey, DeviceSet, Ladder, Moment, Quality, SequenceId, TaskId, WorkloadId};

/// How urgent a task is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// When nothing else wants the device.
    Background,
    /// May wait.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Someone is waiting for it.
    High,
    /// Before everything else.
    Critical,
}

impl Priority {
    /// How many levels there are.
    pub const LEVELS: usize = 5;
    /// Someone is waiting for it: another name for [`Priority::High`].
    pub const USER_FACING: Self = Self::High;

    /// 0 for the lowest.
    pub fn level(self) -> usize {
        self as usize
    }
}

/// What makes two tasks able to share a warm session: everything that changes its answer or its size.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionShape {
    /// A hash of all parameters that change the answer.
    pub params: u64,
    /// A hash of the shape that the session's memory is made for.
    pub shape: u64,
}

/// A reference that a task needs prepared on its device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ReferenceUse {
    /// Its content.
    pub content: ContentKey,
    /// Whether its owner holds a handle to it: it is evicted only when nothing else can be.
    pub pinned: bool,
}

/// What the caller says of a task.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Which workload.
    pub workload: WorkloadId,
    /// The ways to do it, best first.
    pub ladder: Ladder,
    /// How much of it there is (pixels, bytes, items): what its time is proportional to.
    pub units: u64,
    /// Which warm sessions will do.
    pub session: SessionShape,
    /// The references it needs, each once.
    pub references: SmallVec<[ReferenceUse; 1]>,
    /// How urgent it is.
    pub priority: Priority,
    /// When its result is no longer wanted.
    pub deadline: Option<Moment>,
    /// Rungs below this quality are refused.
    pub quality_min: Quality,
    /// No ladder: the first rung that the caller allowed, or an error.
    pub strict: bool,
    /// The only rung allowed, if the caller named one.
    pub rung: Option<&'static str>,
    /// Devices allowed.
    pub devices: DeviceSet,
    /// Tasks that must have succeeded before this one may start.
    pub after: SmallVec<[TaskId; 2]>,
    /// The sequence it is part of: it runs where the one before it did, as long as that device is well and can take it.
    pub sequence: Option<SequenceId>,
}

impl TaskSpec {
    /// A task of normal priority and full quality that may run anywhere.
    pub fn new(workload: WorkloadId, ladder: Ladder, units: u64) -> Self {
        Self {
            workload,
            ladder,
            units,
            session: SessionShape::default(),
            references: SmallVec::new(),
            priority: Priority::default(),
            deadline: None,
            quality_min: Quality::FULL,
            strict: false,
            rung: None,
            devices: DeviceSet::ALL,
            after: SmallVec::new(),
            sequence: None,
        }
    }

    /// The most bytes that a rung of this task has on its device at once.
    pub fn footprint_total(&self, rung: usize) -> Bytes {
        self.ladder.rungs()[rung].footprint.total(self.references.len())
    }
}

/// Tasks by id. A place is used again, under a new generation.
#[derive(Clone, Debug)]
pub(crate) struct TaskTable<T> {
    places: Vec<Place<T>>,
    vacant: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Place<T> {
    generation: u32,
    task: Option<T>,
}

impl<T> Default for TaskTable<T> {
    fn default() -> Self {
        Self { places: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> TaskTable<T> {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    #[inline]
    pub(crate) fn insert(&mut self, task: T) -> TaskId {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, task: None });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.task = Some(task);
        TaskId::new(index, place.generation)
    }

    pub(crate) fn get(&self, id: TaskId) -> Option<&T> {
        let place = self.places.get(id.index())?;
        if place.generation == id.generation() { place.task.as_ref() } else { None }
    }

    pub(crate) fn get_mut(&mut self, id: TaskId) -> Option<&mut T> {
        let place = self.places.get_mut(id.index())?;
        if place.generation == id.generation() { place.task.as_mut() } else { None }
    }

    /// Drops a task where it lies, for when moving it out would cost more than it is worth.
    pub(crate) fn discard(&mut self, id: TaskId) {
        if let Some(place) = self.places.get_mut(id.index()).filter(|place| place.generation == id.generation()) {
            place.task = None;
            place.generation = place.generation.wrapping_add(1);
            self.vacant.push(id.index() as u32);
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: TaskId) -> Option<T> {
        let place = self.places.get_mut(id.index())?;
        if place.generation != id.generation() {
            return None;
        }
        let task = place.task.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.vacant.push(id.index() as u32);
        Some(task)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.places
            .iter()
            .enumerate()
            .filter(|(_, place)| place.task.is_some())
            .map(|(index, place)| TaskId::new(index as u32, place.generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_id_never_means_a_new_task() {
        let mut table = TaskTable::default();
        let old = table.insert("old");
        assert_eq!(table.remove(old), Some("old"));
        let new = table.insert("new");
        assert_eq!((table.get(old), table.get(new), table.len()), (None, Some(&"new"), 1));
        assert_eq!(table.remove(old), None);
    }
}
