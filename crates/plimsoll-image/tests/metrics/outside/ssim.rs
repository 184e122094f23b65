//! ssim beside values from outside.
