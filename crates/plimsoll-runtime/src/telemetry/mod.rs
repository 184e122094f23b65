//! What people look at while and after work runs: counters, a trace, progress. All of it is made from events.
//! Never asks the scheduler or a device for anything, reads a clock, or prints.
//! Invariant: whatever is kept here has a named limit; a listener that cannot go on gets out of the work's way.
//!
//! Listeners hear a batch of events in order. Two threads may hand over their batches the other way round, so nothing
//! here relies on the order of events that different threads caused.

mod counters;
mod progress;
mod trace;

pub use counters::{
    Counters, DeviceCounts, FaultCount, GrantCounts, ROWS_MAX, RungCounts, Snapshot, Spans, TaskCounts,
};
pub use progress::{Progress, ProgressNow};
pub use trace::{Summary, TRACE_BYTES_MAX, TraceError, TraceHandle, TraceWriter};
