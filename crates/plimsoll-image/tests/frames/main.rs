//! Chains of operations on every device, beside each other and beside values from outside.

mod agree;
mod bench;
mod carry;
mod footprints;
mod made;
mod ops;
mod random;
mod refused;
