//! Each operation: every way agrees, and values from outside where there are some.

mod convert;
mod crop;
mod levels;
mod tonemap;
mod blur;
mod naive;
