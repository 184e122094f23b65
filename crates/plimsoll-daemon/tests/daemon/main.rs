//! The daemon as a process of its own, with real clients and a scripted machine: kills, crowds, hostile input.
//! `role` is what the other tests start: the daemon, or a client of it.

mod attacks;
mod crowds;
mod http;
mod kills;
mod rig;
mod sharing;

/// The processes that the other tests start.
#[test]
#[ignore = "a part that other tests start"]
fn role() {
    rig::play();
}
