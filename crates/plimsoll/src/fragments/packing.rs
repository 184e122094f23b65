//! Safetensors to fragments and back: each piece is a task, so that all slots of the CPU pack while one file is written.
//! Memory: a few pieces for each slot, however large the model is.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::{Bytes, TaskError};
use plimsoll_fragments::FragmentError;
use plimsoll_fragments::index::Index;
use plimsoll_fragments::pack::{self, PackPiece, PackSpec, PackWriter, PackedPiece};
use plimsoll_fragments::restore::{self, Fragments, PieceOf};
use plimsoll_fragments::safetensors::Safetensors;
use plimsoll_runtime::workload::{Function, function};
use plimsoll_runtime::{Orchestrator, Registered, RunError, Task, Ticket};

use super::draft::Draft;
use super::watch::FragmentsWatch;

/// What packing gave.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PackSummary {
    /// What is in the file.
    pub index: Index,
    /// Bytes of the safetensors file.
    pub raw: u64,
    /// Bytes of the file of fragments.
    pub packed: u64,
}

/// What restoring gave.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreSummary {
    /// Bytes of the safetensors file.
    pub bytes: u64,
    /// Whether it has the very bytes that were packed.
    pub is_exact: bool,
}

fn failed(path: &Path, doing: &'static str) -> impl Fn(std::io::Error) -> FragmentError {
    move |source| FragmentError::File { path: path.to_owned(), doing, source }
}

/// Packs a safetensors file. The output appears when it is whole.
///
/// # Errors
/// If the input is none or cannot be read, the output cannot be written or is there without `force`.
pub fn pack_file(
    orchestrator: &Orchestrator,
    input: &Path,
    output: &Path,
    spec: &PackSpec,
    force: bool,
    watch: &FragmentsWatch,
) -> Result<PackSummary, FragmentError> {
    let mut file = File::open(input).map_err(failed(input, "read"))?;
    let safetensors = Safetensors::open(input, &mut file)?;
    let (draft, output_file) = Draft::begin(output, force)?;
    let mut writer =
        PackWriter::new(output, output_file.try_clone().map_err(failed(output, "written"))?, &safetensors, spec);
    let (input_path, task_spec) = (input.to_owned(), spec.clone());
    let work = function("fragments-pack", move |piece: &PackPiece| piece.pack(&file, &input_path, &task_spec));
    let work = orchestrator.register(work.bytes(|piece| Bytes(piece.memory())).units(|piece| piece.bytes as u64));
    in_order(orchestrator, &work, pack::pieces(&safetensors), watch, |packed: PackedPiece| {
        let raw = packed.raw;
        writer.add(packed)?;
        Ok(raw as u64)
    })?;
    let index = writer.finish()?;
    let packed = output_file.metadata().map_err(failed(output, "written"))?.len();
    draft.finish()?;
    Ok(PackSummary { raw: index.file_bytes(), packed, index })
}

/// Restores a model as a safetensors file, each tensor at the coarsest level that is at least so good.
///
/// # Errors
/// If fragments cannot be had or are damaged, the output cannot be written or is there without `force`.
pub fn restore_file(
    orchestrator: &Orchestrator,
    from: &Arc<dyn Fragments>,
    index: &Index,
    output: &Path,
    quality: f64,
    force: bool,
    watch: &FragmentsWatch,
) -> Result<RestoreSummary, FragmentError> {
    let levels: Vec<usize> = index.tensors.iter().map(|tensor| tensor.level_for(quality)).collect();
    let is_exact = index.tensors.iter().zip(&levels).all(|(tensor, level)| tensor.is_exact(*level));
    let (draft, mut file) = Draft::begin(output, force)?;
    let writing = failed(output, "written");
    let head = [&(index.header.len() as u64).to_le_bytes()[..], index.header.as_bytes()].concat();
    file.write_all(&head).map_err(&writing)?;
    let shared = Arc::new((Arc::clone(from), index.clone(), levels));
    let (of_work, of_bytes) = (Arc::clone(&shared), shared);
    let work = function("fragments-restore", move |at: &PieceOf| {
        restore::piece(&*of_work.0, &of_work.1, *at, of_work.2[at.tensor])
    });
    let bytes = move |at: &PieceOf| Bytes(restore::memory(&of_bytes.1, *at, of_bytes.2[at.tensor]));
    let work = orchestrator.register(work.bytes(bytes));
    in_order(orchestrator, &work, restore::pieces(index), watch, |bytes: Vec<u8>| {
        file.write_all(&bytes).map_err(&writing)?;
        Ok(bytes.len() as u64)
    })?;
    file.sync_all().map_err(&writing)?;
    draft.finish()?;
    Ok(RestoreSummary { bytes: index.file_bytes(), is_exact })
}

/// Runs a task for each input and takes the results in order, a few for each slot under way.
fn in_order<I: Send + Sync + 'static, O: Send + 'static>(
    orchestrator: &Orchestrator,
    work: &Registered<Function<I, O>>,
    inputs: Vec<I>,
    watch: &FragmentsWatch,
    mut take: impl FnMut(O) -> Result<u64, FragmentError>,
) -> Result<(), FragmentError> {
    let slots: usize = orchestrator.devices().map(|(_, facts)| facts.slots).sum();
    let mut under_way: VecDeque<Ticket<O>> = VecDeque::new();
    let mut inputs = inputs.into_iter();
    loop {
        if watch.is_stopped() {
            // Dropping the tickets cancels what is under way.
            return Err(FragmentError::Stopped);
        }
        while under_way.len() < 2 * slots + 1
            && let Some(input) = inputs.next()
        {
            let ticket =
                orchestrator.submit(work, Task::new(input)).map_err(|refused| of_task(&RunError::from(refused)))?;
            under_way.push_back(ticket.cancel_on_drop());
        }
        let Some(next) = under_way.pop_front() else { return Ok(()) };
        let done = next.wait().map_err(|error| of_task(&error))?;
        watch.add(take(done.output)?);
    }
}

/// What was wrong with a piece, as it was said there.
pub(super) fn of_task(error: &RunError) -> FragmentError {
    if let TaskError::WorkFailed(cause) = &error.error
        && let Some(cause) = cause.error().downcast_ref::<FragmentError>()
    {
        return again(cause);
    }
    FragmentError::File {
        path: "a piece of the model".into(),
        doing: "worked on",
        source: std::io::Error::other(error.to_string()),
    }
}

/// The same error once more: it stays with its task.
fn again(error: &FragmentError) -> FragmentError {
    match error {
        FragmentError::Damaged { what, why } => FragmentError::Damaged { what: what.clone(), why: why.clone() },
        FragmentError::Malformed { what, wanted, why } => {
            FragmentError::Malformed { what: what.clone(), wanted, why: why.clone() }
        }
        FragmentError::Server { url, why } => FragmentError::Server { url: url.clone(), why: why.clone() },
        FragmentError::File { path, doing, source } => {
            let source = std::io::Error::new(source.kind(), source.to_string());
            FragmentError::File { path: path.clone(), doing, source }
        }
        FragmentError::Full { path, wanted, free } => {
            FragmentError::Full { path: path.clone(), wanted: *wanted, free: *free }
        }
        FragmentError::Busy { what, seconds } => FragmentError::Busy { what: what.clone(), seconds: *seconds },
        FragmentError::Stopped => FragmentError::Stopped,
        other => FragmentError::Damaged { what: "a piece of the model".to_owned(), why: other.to_string() },
    }
}
