//! References by file: each loaded once for all pairs that follow one another, and handed to every metric.
//! Invariant: keeps at most [`KEPT`] references, and no more bytes than it was given unless one alone has more, beside those
//! that pairs under way hold.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plimsoll_core::{Priority, TaskId};
use plimsoll_image::decode::{Outlook, look};
use plimsoll_runtime::Task;

use super::load::{File, LoadError, ReferenceCell, ReferenceFile};
use super::pair::PairError;
use super::sweep::Parts;

/// References kept for pairs to come. Sweeps name the variants of one reference one after the other.
const KEPT: usize = 4;

/// A reference that is loaded, or will be.
#[derive(Clone)]
pub(super) struct KnownReference {
    pub(super) outlook: Outlook,
    pub(super) cell: ReferenceCell,
    /// The task that loads it.
    pub(super) task: TaskId,
    /// Whether nobody has asked for it before.
    pub(super) is_new: bool,
}

/// The references used last.
pub(super) struct References {
    parts: Arc<Parts>,
    bytes_max: u64,
    known: VecDeque<(PathBuf, Result<KnownReference, PairError>)>,
}

impl References {
    pub(super) fn new(parts: Arc<Parts>, bytes_max: u64) -> Self {
        Self { parts, bytes_max, known: VecDeque::new() }
    }

    /// The reference in a file. It is on its way from now on, if it was not among those used last.
    pub(super) fn at(&mut self, path: &Path) -> Result<KnownReference, PairError> {
        if let Some(at) = self.known.iter().position(|(name, _)| name == path)
            && let Some(found) = self.known.remove(at)
        {
            let known = found.1.clone().map(|known| KnownReference { is_new: false, ..known });
            self.known.push_back(found);
            return known;
        }
        let begun = self.begin(path);
        self.known.push_back((path.to_owned(), begun.clone()));
        while self.known.len() > 1 && (self.known.len() > KEPT || self.bytes() > self.bytes_max) {
            self.known.pop_front();
        }
        begun
    }

    fn begin(&self, path: &Path) -> Result<KnownReference, PairError> {
        let outlook = look(path).map_err(|cause| PairError::Load(LoadError::of(path, cause)))?;
        let cell: ReferenceCell = Arc::new(OnceLock::new());
        let file = File { path: path.to_owned(), outlook };
        // Nothing can be scored before it is loaded, so it goes first.
        let task = Task::new(ReferenceFile { file, cell: Arc::clone(&cell) }).priority(Priority::High);
        let ticket = self.parts.orchestrator.submit(&self.parts.load_reference, task);
        let task = ticket.map_err(|refused| PairError::NotLoaded(Arc::new(refused.into())))?.id();
        Ok(KnownReference { outlook, cell, task, is_new: true })
    }

    fn bytes(&self) -> u64 {
        self.known.iter().flat_map(|(_, known)| known).map(|known| known.outlook.image_bytes).sum()
    }
}
