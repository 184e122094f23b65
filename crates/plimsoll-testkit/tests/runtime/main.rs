//! Tries to break the runtime, through its public API and on real threads.
//! Never relies on timing to pass: tasks are held in a state by gates, and every wait has an end.

mod awaiting;
mod batches;
mod bounded;
mod cancelling;
mod deadlines;
mod device_faults;
mod functions;
mod grants;
mod hooked;
mod host_memory;
mod hung;
mod identity;
mod inboxes;
mod learning;
mod leases;
mod leftovers;
mod memory;
mod memory_readings;
mod openings;
mod panics;
mod pipelines;
mod predecessors;
mod queue;
mod references;
mod scripted;
mod shutdown;
mod strategies;
mod streams;
mod stress;
mod tickets;
mod trust;
mod unsupported;
mod widths;
