//! Each operation: every way agrees, and values from outside where there are some.

mod crop;
mod pad;
mod scale;
