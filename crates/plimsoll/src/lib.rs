//! Loads every GPU and CPU in the machine to the line, never past it.

pub mod machine;
pub mod profile;

pub use machine::{Machine, MachineOptions};
