//! Fragments over HTTP: a client that reads ranges and believes nothing, and a server of ranges.

mod client;
mod pull;
mod serve;

pub use client::Origin;
pub use pull::{PullWatch, Pulled, pull, pull_index};
pub use serve::Server;
