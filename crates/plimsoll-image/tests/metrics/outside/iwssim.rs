//! iwssim beside values from outside.
