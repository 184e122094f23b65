//! A trace of the work as it went, for Perfetto (ui.perfetto.dev) or chrome://tracing to show.
//! Never disturbs the work: what goes wrong with the file is kept and told at the end.
//! Invariant: under the final name lies a whole trace, or what lay there before.
//!
//! ```text
//! recorder      which entries an event makes
//! whereabouts   where each task is, as far as events told
//! lanes         which track a run is drawn on
//! wire          an entry as JSON
//! file          a JSON array that grows under a temporary name
//! ```

mod error;
mod file;
mod lanes;
mod recorder;
mod whereabouts;
mod wire;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::event::Event;
use serde::Serialize;

pub use error::TraceError;
pub use file::TRACE_BYTES_MAX;

use crate::shared::Listener;
use crate::sync::{Mutex, lock};
use file::ArrayFile;
use recorder::Recorder;

/// Hears events and writes them into a trace: the half for `Builder::listener`.
///
/// Entries are written on the thread that caused them, through a buffer. The trace ends when its [`TraceHandle`] is
/// asked to [`finish`](TraceHandle::finish), or when both halves are gone.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use plimsoll::{Orchestrator, Shutdown, Task, telemetry::TraceWriter, workload};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("trace.json");
/// let (writer, trace) = TraceWriter::create(&path, ["this CPU"])?;
/// let orchestrator = Orchestrator::builder().cpu(2).listener(writer).build();
/// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
/// orchestrator.run(&square, Task::new(12))?;
/// orchestrator.shutdown(Shutdown::Cancel);
/// assert_eq!(trace.finish()?.runs, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a trace that hears nothing stays empty"]
pub struct TraceWriter(Arc<Mutex<Recorder>>);

impl fmt::Debug for TraceWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceWriter").finish_non_exhaustive()
    }
}

/// The half of a trace that ends it.
pub struct TraceHandle(Arc<Mutex<Recorder>>);

impl fmt::Debug for TraceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceHandle").finish_non_exhaustive()
    }
}

/// What a trace holds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Entries in the file.
    pub entries: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Runs that gave a result.
    pub runs: u64,
    /// Waits that were not drawn because too many tasks waited at once; the depth of the queue and each run's own wait
    /// are there all the same.
    pub waits_left_out: u64,
    /// Other entries that are missing: the file is at [`TRACE_BYTES_MAX`], or more ran at once than can be drawn.
    pub left_out: u64,
}

impl TraceWriter {
    /// Starts a trace that will lie at `path` when it ends; until then it grows under a temporary name beside it. A
    /// `path` that is a pipe or a terminal is written to straight away. Devices are named in the order of their ids.
    ///
    /// # Errors
    /// Why no file can be written there.
    pub fn create<N: Into<String>>(
        path: impl AsRef<Path>,
        device_names: impl IntoIterator<Item = N>,
    ) -> Result<(Self, TraceHandle), TraceError> {
        let file = ArrayFile::create(path.as_ref())?;
        let names = device_names.into_iter().map(Into::into).collect();
        let recorder = Arc::new(Mutex::new(Recorder::new(file, names)));
        Ok((Self(Arc::clone(&recorder)), TraceHandle(recorder)))
    }
}

impl Listener for TraceWriter {
    fn hear(&mut self, events: &[Event]) {
        lock(&self.0).hear(events);
    }
}

impl TraceHandle {
    /// Ends the trace and puts it in its place. What happens after that is not in it; shut the orchestrator down first
    /// to have everything.
    ///
    /// # Errors
    /// What went wrong with the file at any time since it was created. Nothing is left under the final name then, or
    /// what was there before.
    pub fn finish(self) -> Result<Summary, TraceError> {
        lock(&self.0).finish()
    }
}

#[cfg(test)]
mod tests;
