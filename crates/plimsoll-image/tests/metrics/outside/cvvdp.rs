//! cvvdp beside values from outside.
