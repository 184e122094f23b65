//! Adapters against engines that speak the real interfaces and misbehave, and the gate in front of them.

#[path = "../fakes/mod.rs"]
mod fakes;

mod adapters;
mod daemon;
mod gate;
