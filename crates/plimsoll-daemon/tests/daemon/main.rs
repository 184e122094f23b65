//! The daemon as a process of its own, with real clients and a scripted machine: kills, crowds, hostile input.
//! The processes are parts of `daemon-part`.

mod attacks;
mod book;
mod crowds;
#[cfg(target_os = "linux")]
mod full_disk;
mod http;
mod kills;
mod rig;
mod sharing;
mod sources;
