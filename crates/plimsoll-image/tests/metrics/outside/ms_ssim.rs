//! ms_ssim beside values from outside.
