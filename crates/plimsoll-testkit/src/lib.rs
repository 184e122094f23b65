//! Pretends: what the tests and the simulator replay.

pub mod graph;
