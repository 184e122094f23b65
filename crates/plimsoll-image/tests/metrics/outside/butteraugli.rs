//! butteraugli beside values from outside.
