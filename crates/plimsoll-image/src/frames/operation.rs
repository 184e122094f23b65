//! What an operation is: arguments in, passes out. One file in `ops/` for each; `ops/mod.rs` is the one table of them.
//! Never runs anything: it adds passes to a graph.

use std::fmt;

use super::carry::Carried;
use super::chain::Args;
use super::format::Format;
use super::graph::Graph;
use super::picture::Picture;

/// One operation of a chain, with its arguments.
///
/// Its `Debug` text names everything that changes what it does: warm sessions are told apart by it.
pub(crate) trait Operation: fmt::Debug + Send + Sync {
    /// Adds the passes that do it to a picture.
    ///
    /// # Errors
    /// [`OperationError`] if this picture cannot be done so.
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError>;

    /// How many frames before and after its own it looks at.
    fn frames_around(&self) -> usize {
        0
    }

    /// As [`Operation::plan`], for an operation that looks at other frames: those before and after that there are.
    ///
    /// # Errors
    /// As [`Operation::plan`].
    fn plan_among(&self, graph: &mut Graph, picture: Picture, _others: &[Picture]) -> Result<Picture, OperationError> {
        self.plan(graph, picture)
    }

    /// What becomes of what a stream says about its frames, whose format it was `before`; the format that comes out is
    /// there already.
    ///
    /// # Errors
    /// [`OperationError`] if it needs what was only guessed.
    fn carry(&self, _stream: &mut Carried, _before: Format) -> Result<(), OperationError> {
        Ok(())
    }
}

/// Why an operation cannot be done: text for whoever wrote the chain, saying what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OperationError(String);

impl OperationError {
    /// A reason.
    pub(crate) fn because(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// What there is to know of an operation.
pub struct About {
    /// Its name in a chain.
    pub name: &'static str,
    /// How it is written, for example `scale=WxH|N%[:FILTER]`: capitals stand for what is filled in, small letters for
    /// themselves, `|` parts choices, and what is in brackets may be left out. A name and `=` stand where an argument
    /// is told by its name.
    pub usage: &'static str,
    /// What comes out, in one line; after a semicolon, what holds where something is left out.
    pub what: &'static str,
    /// Reads its arguments.
    pub(crate) parse: fn(&mut Args<'_>) -> Result<Box<dyn Operation>, OperationError>,
}

impl fmt::Debug for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("About").field("name", &self.name).finish_non_exhaustive()
    }
}
