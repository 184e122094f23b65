//! The simulator: virtual devices on a virtual clock, driven by the very core that drives real ones.
//! Never sleeps or starts a thread; a run is a function of its seed.
//!
//! | file | what it is |
//! |---|---|
//! | `truth.rs` | the bytes that are really on each device, and how every task really went |
//! | `world/` | the clock, the devices and their faults, the slots, the callers |
//! | `checks/` | what must hold, each rule in a file of its own |
//! | `scenario/` | a random box with random work, from a seed |
//! | `fuzz.rs` | many scenarios, and whether each task ended as it should |
//! | `shared/` | programs that share a machine: models, images, batches, with good manners and bad ones |
//! | `stream.rs` | a stream of equal frames in an ordered window |
//! | `replay.rs` | a known task graph on a known box |
//! | `staged/` | staged work on streams that run beside each other, and what happens if a part of it is switched off |

mod checks;
pub mod fuzz;
pub mod replay;
pub mod scenario;
pub mod shared;
pub mod staged;
pub mod stream;
mod truth;
pub mod world;
