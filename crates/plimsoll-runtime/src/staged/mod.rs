//! Staged work on a real device: carries out what `plimsoll_core::staged` orders, on the backend of one session.
//! Never orders anything itself, and starts no work of its own: whoever runs a task of the session calls it.
//!
//! | file | what it owns |
//! |---|---|
//! | `pools.rs` | the buffers, and the only way to one: acquired, until it is released |
//! | `session.rs` | the items under way, their fences and readbacks; the step by step |
//!
//! A backend is one queue: whatever its slot records is done in the order of recording. So streams are names here, a wait
//! of one stream for another is kept by that order, and only the host really waits, for the fence of a kick. Two things are
//! refused when the session opens, because one queue cannot do them: a stage of the drain that runs on the device (its copy
//! would lie behind the next kick; record it in the kick, with [`Acquired::stage_read`]), and a host stage that needs the
//! device's answer in the middle of a kick.

mod pools;
mod session;

pub use pools::Acquired;
pub use session::{Payload, Published, StagedSession};
