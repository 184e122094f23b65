//! The simulator: virtual devices on a virtual clock, driven by the very core that drives real ones.
//! Never sleeps or starts a thread; a run is a function of its seed.
//!
//! | file | what it pretends |
//! |---|---|
//! | `truth.rs` | the bytes that are really on each device |
//! | `world.rs` | the clock, the devices and their faults |
//! | `watch.rs` | nothing: it checks from events that sequences stay together |
//! | `scenario.rs` | a random box with random work, from a seed |
//! | `fuzz.rs` | many scenarios, and what must hold in each |
//! | `stream.rs` | a stream of equal frames in an ordered window |
//! | `replay.rs` | a known task graph on a known box |

pub mod fuzz;
pub mod replay;
pub mod scenario;
pub mod stream;
mod truth;
mod watch;
pub mod world;
