//! Each operation: every way agrees, and values from outside where there are some.

mod blur;
mod crop;
mod naive;
