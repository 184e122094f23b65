//! Arrays: every way in gives the same store, and the store gives back what came in.

#![cfg(feature = "array")]

mod cases;
#[cfg(feature = "gpu")]
mod depths;
#[cfg(feature = "gpu")]
mod devices;
mod ends;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(feature = "gpu")]
mod kernel;
mod producers;
mod resume;
mod round_trips;
mod stages;
