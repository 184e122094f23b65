//! References by file: each loaded once for all pairs that follow one another, and handed to every metric.
//! Invariant: keeps at most [`KEPT`] references beside those that pairs under way hold.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::Shared;
use plimsoll_image::metrics::MetricWorkload;
use plimsoll_runtime::Reference;

use super::load::Loaded;
use super::pair::PairError;

/// References kept for pairs to come. Sweeps name the variants of one reference one after the other.
const KEPT: usize = 4;

/// A reference that every metric can name.
pub(super) struct LoadedReference {
    pub(super) file: Arc<Loaded>,
    /// One for each metric, in their order.
    pub(super) handles: Vec<Reference<MetricWorkload>>,
}

pub(super) type Loading<'a> = Pin<Box<dyn Future<Output = Result<Rc<LoadedReference>, PairError>> + 'a>>;

/// The references used last.
#[derive(Default)]
pub(super) struct References<'a> {
    known: RefCell<VecDeque<(PathBuf, Shared<Loading<'a>>)>>,
}

impl<'a> References<'a> {
    /// The reference in a file; `load` is called if it is not among those used last.
    pub(super) fn at(&self, path: &Path, load: impl FnOnce() -> Loading<'a>) -> Shared<Loading<'a>> {
        let mut known = self.known.borrow_mut();
        if let Some(at) = known.iter().position(|(name, _)| name == path)
            && let Some(found) = known.remove(at)
        {
            known.push_back(found);
        } else {
            known.push_back((path.to_owned(), load().shared()));
            if known.len() > KEPT {
                known.pop_front();
            }
        }
        known.back().map(|(_, loading)| loading.clone()).expect("one was just put there")
    }
}
