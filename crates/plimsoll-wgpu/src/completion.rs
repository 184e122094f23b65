//! Whether the device has done one submission, and waiting for that with a limit of the caller's own.
//! Never waits inside wgpu for less than the device's answer timeout: a wait there that times out just when another
//! thread finds the queue empty panics (an assertion of wgpu-core 30.0.1), and takes others' callbacks with it. Shorter
//! waits ask again and again instead, at most an eighth later than the answer came or [`STEP_MAX`].
//! Invariant: once done, done.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_core::Fault;
use plimsoll_runtime::FenceState;
use wgpu::SubmissionIndex;

use crate::generation::Generation;

/// Between two questions at the least: about what asking costs.
const STEP_MIN: Duration = Duration::from_micros(20);
/// Between two questions at the most.
const STEP_MAX: Duration = Duration::from_millis(1);
/// By now a callback has run that another thread took along when it asked.
const CALLBACK_MAX: Duration = Duration::from_secs(1);

/// Set by wgpu's callback, on whichever thread asks the device.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    done: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn done(&self) -> MutexGuard<'_, bool> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self) {
        *self.done() = true;
        self.changed.notify_all();
    }

    /// Whether it is set before this much time has passed.
    fn wait(&self, limit: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.done(), limit, |done| !*done);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// One submission.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) submission: SubmissionIndex,
    signal: Arc<Signal>,
    first_asked: OnceLock<Instant>,
}

impl Completion {
    pub(crate) fn new(submission: SubmissionIndex, signal: Arc<Signal>) -> Self {
        Self { submission, signal, first_asked: OnceLock::new() }
    }

    /// Waits until the device has done it, at most as long as `limit`.
    pub(crate) fn wait(&self, generation: &Generation, limit: Duration) -> Result<FenceState, Fault> {
        if *self.signal.done() {
            return Ok(FenceState::Done);
        }
        if limit >= generation.answer_timeout() {
            generation.wait(Some(self.submission.clone()))?;
            self.signal.set();
            return Ok(FenceState::Done);
        }
        let began = Instant::now();
        loop {
            generation.tick()?;
            let waited = began.elapsed();
            let step = (waited / 8).clamp(STEP_MIN, STEP_MAX);
            if self.signal.wait(step.min(limit.saturating_sub(waited))) {
                return Ok(FenceState::Done);
            }
            if waited >= limit {
                return self.still_under_way(generation, began);
            }
        }
    }

    /// It is not done yet. A device that has answered nobody for too long, while this was asked for, is stalled.
    fn still_under_way(&self, generation: &Generation, asked: Instant) -> Result<FenceState, Fault> {
        let first_asked = *self.first_asked.get_or_init(|| asked);
        if generation.last_answer().max(first_asked).elapsed() < generation.answer_timeout() {
            return Ok(FenceState::UnderWay);
        }
        if self.signal.wait(CALLBACK_MAX) { Ok(FenceState::Done) } else { Err(generation.stalled()) }
    }
}
