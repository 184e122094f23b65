//! Checking a store: its objects side by side, each a task.

use std::convert::Infallible;
use std::sync::Arc;

use plimsoll_arrays::codec::Scratch;
use plimsoll_arrays::read::{Store, StoredObject, Verification, VerifyOptions};
use plimsoll_core::Bytes;
use plimsoll_runtime::{Orchestrator, RunError, Task, workload};

use super::error::ArrayError;

/// Reads everything that a store holds, and says what is wrong with it, in the order of its objects.
///
/// # Errors
/// [`ArrayError`] if the store cannot be listed, or an object cannot be looked at at all.
pub fn verify_store(
    orchestrator: &Orchestrator,
    store: &Arc<Store>,
    options: &VerifyOptions,
) -> Result<Verification, ArrayError> {
    let (of_task, options) = (Arc::clone(store), *options);
    let chunk = store.levels().iter().map(|level| level.metadata.grid.chunk_bytes() as u64).max().unwrap_or(0);
    let check = workload::function("array-verify", move |object: &StoredObject| {
        Ok::<_, Infallible>(of_task.verify_object(object, &options, &mut Scratch::default()))
    })
    .units(|object| object.bytes)
    .bytes(move |object| Bytes(3 * chunk.min(options.chunk_bytes_max) + object.bytes.min(chunk)));
    let check = orchestrator.register(check);
    let mut found = store.verify_levels();
    let tasks = store.objects()?.into_iter().map(Task::new);
    let mut results = orchestrator
        .run_all(&check, tasks)
        .collect::<Result<Vec<_>, RunError>>()
        .map_err(|failure| ArrayError::Work { what: "checking the store".to_owned(), failure: Arc::new(failure) })?;
    results.sort_unstable_by_key(|done| done.index);
    results.into_iter().for_each(|done| found.add(done.output));
    Ok(found)
}
