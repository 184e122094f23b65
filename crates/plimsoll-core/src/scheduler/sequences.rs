//! Sequences: on which device each of them is at home, so that what its tasks share need not travel.
//! Never picks a home: the strategy does for the first task, and again for a task that its home cannot take.
//! Invariant: a sequence is known exactly as long as one of its tasks has not ended, so there are never more of them
//! than tasks.

use rustc_hash::FxHashMap;

use crate::{DeviceId, SequenceId};

#[derive(Debug, Default)]
pub(super) struct Sequences(FxHashMap<SequenceId, Sequence>);

#[derive(Debug, Default)]
struct Sequence {
    /// Where its last task was placed; none before the first was.
    home: Option<DeviceId>,
    /// Tasks that have not ended.
    members: usize,
}

impl Sequences {
    /// A task of this sequence was taken in.
    pub(super) fn joined(&mut self, id: SequenceId) {
        self.0.entry(id).or_default().members += 1;
    }

    /// A task of this sequence ended.
    pub(super) fn left(&mut self, id: SequenceId) {
        let Some(sequence) = self.0.get_mut(&id) else { return };
        sequence.members -= 1;
        if sequence.members == 0 {
            self.0.remove(&id);
        }
    }

    /// A task of this sequence was placed here: the others follow.
    pub(super) fn make_home(&mut self, id: SequenceId, device: DeviceId) {
        if let Some(sequence) = self.0.get_mut(&id) {
            sequence.home = Some(device);
        }
    }

    pub(super) fn home(&self, id: SequenceId) -> Option<DeviceId> {
        self.0.get(&id)?.home
    }

    /// Tasks of all sequences that have not ended.
    pub(super) fn members(&self) -> usize {
        self.0.values().map(|sequence| sequence.members).sum()
    }
}
