//! What the caller says of a task, and the table of tasks that are not yet settled.
//! Never looks into a task's payload.

use std::fmt;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::names::{self, UnknownNameError};
use crate::{Bytes, ContentKey, DeviceSet, Ladder, Moment, Quality, SequenceId, TaskId, ValueId, WorkloadId};

/// How urgent a task is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// After everything else, but for what was submitted more than a few seconds later: see [`crate::arbiter`].
    Background,
    /// May wait.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Someone is waiting for it.
    #[serde(alias = "user-facing")]
    High,
    /// Before everything else, however long that has waited.
    Critical,
}

impl Priority {
    /// How many levels there are.
    pub const LEVELS: usize = 5;
    /// Someone is waiting for it: another name for [`Priority::High`].
    pub const USER_FACING: Self = Self::High;

    /// Every name of a priority; of two names for one, the first is what it is called.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("background", Self::Background),
        ("low", Self::Low),
        ("normal", Self::Normal),
        ("high", Self::High),
        ("critical", Self::Critical),
        ("user-facing", Self::USER_FACING),
    ];

    /// The priority of a level; the highest for what is beyond.
    pub fn of_level(level: u8) -> Self {
        match level {
            0 => Self::Background,
            1 => Self::Low,
            2 => Self::Normal,
            3 => Self::High,
            _ => Self::Critical,
        }
    }

    /// 0 for the lowest.
    pub fn level(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(names::name_of(&Self::NAMES, *self))
    }
}

impl std::str::FromStr for Priority {
    type Err = UnknownNameError;

    fn from_str(text: &str) -> Result<Self, UnknownNameError> {
        names::parse("priority", &Self::NAMES, text)
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

/// Which part of a pipeline's work on an item a task is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ItemStage {
    /// When the item was submitted: all its stages are as old as that.
    pub since: Moment,
    /// Stages before this one. A later stage goes before an earlier one: see [`crate::arbiter`].
    pub stage: u8,
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
    /// No ladder: the best rung that this machine and the caller allow, or an error.
    pub strict: bool,
    /// The only rung allowed, if the caller named one.
    pub rung: Option<&'static str>,
    /// Devices allowed.
    pub devices: DeviceSet,
    /// Tasks that must have succeeded before this one may start.
    pub after: SmallVec<[TaskId; 2]>,
    /// Values that it reads, each of which a handle named to it.
    pub takes: SmallVec<[ValueId; 1]>,
    /// Whether whoever submits it holds what it will keep from the start.
    pub is_claimed: bool,
    /// The item of a pipeline that it is a stage of.
    pub item: Option<ItemStage>,
    /// Whether its sequence owns the session: see [`Scheduler::hold`](crate::Scheduler::hold).
    pub holds: bool,
    /// Whether nothing that was done before is left in the session once this task is done.
    pub drains: bool,
    /// The sequence it is part of: it runs where the one before it did, as long as that device is well and can take it.
    pub sequence: Option<SequenceId>,
    /// Whether its report is to say why it ran where it did.
    pub explain: bool,
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
            takes: SmallVec::new(),
            is_claimed: false,
            item: None,
            holds: false,
            drains: false,
            sequence: None,
            explain: false,
        }
    }

    /// The most bytes that a rung of this task has on its device at once.
    pub fn footprint_total(&self, rung: usize) -> Bytes {
        self.ladder.rungs()[rung].total(self.references.len())
    }
}

/// Tasks by id. A place is used again, under a new generation.
#[derive(Clone, Debug)]
pub(crate) struct TaskTable<T> {
    owner: u16,
    places: Vec<Place<T>>,
    vacant: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Place<T> {
    generation: u32,
    /// The last generation of which nobody knows any more how it ended.
    forgotten: Option<u32>,
    task: Option<T>,
}

impl<T> Place<T> {
    fn vacate(&mut self) -> Option<T> {
        let task = self.task.take()?;
        self.generation = self.generation.wrapping_add(1);
        Some(task)
    }

    /// How many tasks ago. Generations are counted round, so one from the future looks very old.
    fn ago(&self, generation: u32) -> u32 {
        self.generation.wrapping_sub(generation)
    }
}

/// What a table can say of an id.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has not ended.
    Live,
    /// It has ended.
    Ended,
    /// It has ended, so long ago that nobody knows how.
    Forgotten,
    /// It was never given out here.
    Unknown,
}

impl<T> TaskTable<T> {
    /// An empty table whose ids name this scheduler.
    pub(crate) fn new(owner: u16) -> Self {
        Self { owner: owner % TaskId::OWNERS, places: Vec::new(), vacant: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    #[inline]
    pub(crate) fn insert(&mut self, task: T) -> TaskId {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, forgotten: None, task: None });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.task = Some(task);
        TaskId::new(self.owner, index, place.generation)
    }

    #[inline]
    fn place(&self, id: TaskId) -> Option<&Place<T>> {
        self.places.get(id.index()).filter(|_| id.owner() == self.owner)
    }

    #[inline]
    pub(crate) fn get(&self, id: TaskId) -> Option<&T> {
        let place = self.place(id)?;
        if place.generation == id.generation() { place.task.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: TaskId) -> Option<&mut T> {
        let owner = self.owner;
        let place = self.places.get_mut(id.index()).filter(|_| id.owner() == owner)?;
        if place.generation == id.generation() { place.task.as_mut() } else { None }
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: TaskId) -> Option<T> {
        self.get(id)?;
        let task = self.places[id.index()].vacate();
        self.vacant.push(id.index() as u32);
        task
    }

    /// Drops a task where it lies, for when moving it out would cost more than it is worth.
    pub(crate) fn discard(&mut self, id: TaskId) {
        if self.get(id).is_some() {
            let place = &mut self.places[id.index()];
            place.task = None;
            place.generation = place.generation.wrapping_add(1);
            self.vacant.push(id.index() as u32);
        }
    }

    /// From now on nobody knows how this task, or one before it in the same place, ended.
    pub(crate) fn forget(&mut self, id: TaskId) {
        if let Some(place) = self.places.get_mut(id.index()) {
            let ago = place.ago(id.generation());
            if place.forgotten.is_none_or(|forgotten| ago < place.ago(forgotten)) {
                place.forgotten = Some(id.generation());
            }
        }
    }

    /// What can be said of a task.
    pub(crate) fn standing(&self, id: TaskId) -> Standing {
        let Some(place) = self.place(id) else { return Standing::Unknown };
        let ago = place.ago(id.generation());
        match ago {
            0 if place.task.is_some() => Standing::Live,
            0 => Standing::Unknown,
            _ if ago > u32::MAX / 2 => Standing::Unknown,
            _ if place.forgotten.is_some_and(|forgotten| ago >= place.ago(forgotten)) => Standing::Forgotten,
            _ => Standing::Ended,
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.places
            .iter()
            .enumerate()
            .filter(|(_, place)| place.task.is_some())
            .map(|(index, place)| TaskId::new(self.owner, index as u32, place.generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_id_never_means_a_new_task() {
        let mut table = TaskTable::new(0);
        let old = table.insert("old");
        assert_eq!(table.remove(old), Some("old"));
        let new = table.insert("new");
        assert_eq!((table.get(old), table.get(new), table.len()), (None, Some(&"new"), 1));
        assert_eq!(table.remove(old), None);
    }

    #[test]
    fn what_is_forgotten_of_a_place_is_all_up_to_then() {
        let mut table = TaskTable::new(3);
        let ids: Vec<TaskId> = (0..6)
            .map(|n| {
                let id = table.insert(n);
                assert_eq!(table.standing(id), Standing::Live);
                table.remove(id);
                id
            })
            .collect();
        let mut forget = |at: usize| {
            table.forget(ids[at]);
            ids.iter().filter(|id| table.standing(**id) == Standing::Forgotten).count()
        };
        assert_eq!((forget(1), forget(0), forget(3)), (2, 2, 4));
        assert_eq!(table.standing(ids[4]), Standing::Ended);
    }

    #[test]
    fn what_was_never_given_out_is_unknown() {
        let mut table = TaskTable::new(3);
        let id = table.insert(());
        let strangers =
            [TaskId::new(4, 0, 0), TaskId::new(3, 1, 0), TaskId::new(3, 0, 1), TaskId::new(3, 0, u32::MAX / 2)];
        for stranger in strangers {
            assert_eq!((table.standing(stranger), table.get(stranger)), (Standing::Unknown, None));
            assert_eq!(table.remove(stranger), None);
        }
        table.discard(id);
        assert_eq!(table.standing(id), Standing::Ended);
        assert_eq!(table.standing(TaskId::new(3, 0, 1)), Standing::Unknown, "the place is vacant");
    }
}
