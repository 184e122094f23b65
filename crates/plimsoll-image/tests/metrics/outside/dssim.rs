//! dssim beside values from outside.
