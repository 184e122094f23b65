//! IW-SSIM beside piq.

use plimsoll_image::metrics::Metric;

use super::drawn::agrees_with;

/// piq works in double precision here, we in single: the largest difference seen is 5e-7.
#[test]
fn agrees_with_piq() {
    agrees_with(Metric::Iwssim, include_str!("values/iwssim.tsv"), 2e-6);
}
