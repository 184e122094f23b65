//! MS-SSIM beside pytorch-msssim, beside piq for small images, and beside TensorFlow for odd sizes.

use plimsoll_image::metrics::Metric;

use super::drawn::agrees_with;

/// The tool works in double precision, we in single: the largest difference seen is 7e-7.
#[test]
fn agrees_with_pytorch_msssim() {
    agrees_with(Metric::MsSsim, include_str!("values/ms_ssim.tsv"), 2e-6);
}

/// As above; the largest difference is 2e-7.
#[test]
fn agrees_with_piq_where_there_are_fewer_scales() {
    agrees_with(Metric::MsSsim, include_str!("values/ms_ssim_fewer.tsv"), 1e-6);
}

/// TensorFlow works in single precision and takes variances as differences of large numbers: the largest difference
/// seen is 1.1e-5, on white paper with noise.
#[test]
fn agrees_with_tensorflow_at_odd_sizes() {
    agrees_with(Metric::MsSsim, include_str!("values/ms_ssim_odd.tsv"), 3e-5);
}
