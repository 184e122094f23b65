//! Each operation: every way agrees, and values from outside where there are some.

mod crop;
mod flip;
mod pad;
mod rotate;
mod scale;
