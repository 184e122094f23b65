//! The daemon: one machine's memory shared by many programs. It is the core's grants with owners outside this process:
//! it adds clients (a Unix socket and loopback HTTP), truth (what the driver says each process holds) and reach (engines
//! that give memory back when asked), and no second arbiter.
//! Never runs tasks, opens no GPU, and never believes a promise that the driver contradicts.
//!
//! | module | owns |
//! |---|---|
//! | [`wire`] | every JSON type that leaves or enters the daemon |
//! | [`broker`] | which lease is which grant, whose it is, who has to hear of what; no I/O |
//! | [`truth`] | what drivers say of each device and each process |
//! | [`server`] | the daemon as it runs: socket, HTTP, the task that owns the broker |
//! | [`store`] | its books on disk: leases for the next daemon, events |
//! | [`folder`] | where all that lies, and who may look |
//! | [`config`] | what its owner writes |
//! | [`process`] | who is alive, and how one is stopped |
//! | [`client`] | a client that blocks |
//! | `dashboard` | the page that shows it |

#![cfg(unix)]

pub mod broker;
pub mod client;
pub mod config;
mod dashboard;
pub mod folder;
pub mod process;
pub mod server;
pub mod size;
pub mod store;
pub mod truth;
pub mod wire;
