//! SSIM beside scikit-image.

use plimsoll_image::metrics::Metric;

use super::drawn::agrees_with;

/// scikit-image works in double precision, we in single: the largest difference seen is 4e-7.
#[test]
fn agrees_with_scikit_image() {
    agrees_with(Metric::Ssim, include_str!("values/ssim.tsv"), 2e-6);
}
