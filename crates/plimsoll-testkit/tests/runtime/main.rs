//! Tries to break the runtime, through its public API and on real threads.
//! Never relies on timing to pass: tasks are held in a state by gates, and every wait has an end.

mod awaiting;
mod batches;
mod bounded;
mod cancelling;
mod deadlines;
mod device_faults;
mod hung;
mod identity;
mod learning;
mod leases;
mod memory;
mod panics;
mod predecessors;
mod queue;
mod references;
mod scripted;
mod shutdown;
mod strategies;
mod stress;
mod trust;
mod widths;
