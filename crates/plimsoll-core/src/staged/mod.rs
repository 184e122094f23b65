//! Staged work: items that pass through stages on several streams of one device, in buffers that come from pools.
//! Never chooses a device and never waits: it orders what one session does, and `README.md` says how and why.
//!
//! | question | file |
//! |---|---|
//! | what are the stages, pools and edges? | `declare.rs` |
//! | do the edges keep every two uses of a buffer apart, and is each of them needed? | `prove.rs` |
//! | how deep, and is a slot drained before or after a kick? | `select.rs` |
//! | what comes next? | `order.rs` |
//! | was it done in that order? | `checks.rs` |
//!
//! Invariant: `order.rs` is the only place that orders anything; whoever carries out its steps adds no wait of his own.

mod checks;
mod declare;
mod error;
mod ids;
mod order;
mod prove;
mod select;
#[cfg(test)]
mod tests;

pub use checks::{Checks, Report, Violation};
pub use declare::{
    Count, DEPTH_LIMIT, Draft, Edge, EdgeDecl, EdgeKind, HOST, Memory, PoolDecl, Stage, StageDecl, Stages, Usage,
};
pub use error::StagesError;
pub use ids::{EdgeId, PoolId, StageId, StreamId};
pub use order::{Order, Step, Use};
pub use select::{Facts, Mode, Plan};
