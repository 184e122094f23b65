//! ssim2 beside values from outside.
