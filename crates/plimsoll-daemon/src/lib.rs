//! The daemon: one machine's memory shared by many programs. It is the core's grants with owners outside this process:
//! it adds clients (a Unix socket and loopback HTTP), truth (what the driver says each process holds) and reach (engines
//! that give memory back when asked), and no second arbiter.
//! Never runs tasks, opens no GPU, and never believes a promise that the driver contradicts.
//!
//! | module | owns |
//! |---|---|
//! | [`engines`] | programs that give memory back when asked through their own interface |
//! | [`gate`] | a port in front of an engine's, which holds requests until there is room |
//! | [`wire`] | every JSON type that leaves or enters the daemon |

pub mod engines;
pub mod gate;
pub mod wire;
