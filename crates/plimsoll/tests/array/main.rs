//! Arrays: every way in gives the same store, and the store gives back what came in.

#![cfg(feature = "array")]

mod cases;
mod ends;
mod resume;
mod round_trips;
