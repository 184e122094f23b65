//! What a rung says it needs is what it takes.

use plimsoll_core::Bytes;
use plimsoll_image::Image;
use plimsoll_image::metrics::Metric;
use plimsoll_runtime::Workload;

use crate::bench::Bench;
use crate::pairs::{of_every_kind, size};

/// Kernels allocate through the backend, which counts: the figure is exact.
pub(crate) fn kernels_hold_what_their_rung_says(metric: Metric) {
    let bench = Bench::new();
    for (width, height) in [(5, 3), (200, 333), (257, 128)] {
        let pair = of_every_kind(size(width, height)).remove(0);
        for &rung in metric.about().rungs.iter().filter(|&&rung| rung != "cpu") {
            // A workload of its own: nothing is warm, so all of it is allocated now.
            let registered = bench.register(metric);
            let report = bench.score(&registered, rung, &pair.reference, &pair.distorted).expect("it runs").report;
            let (peak, predicted) = (report.bytes_peak.expect("counted"), report.bytes_predicted);
            assert!(peak <= predicted, "{metric} {rung} {width}x{height}: {peak} held, {predicted} predicted");
            let slack = Bytes((predicted.0 - peak.0).saturating_sub(predicted.0 / 10));
            assert!(slack <= Bytes::mib(3), "{metric} {rung} {width}x{height}: {peak} held, {predicted} predicted");
        }
    }
}

/// A small card can take a large image: strips fit in 48 MiB at 4096 x 4096 pixels.
pub(crate) fn strips_of_a_large_image_fit_in_a_small_memory(metric: Metric) {
    let large = Image::rgb8(size(4096, 4096), vec![0; 4096 * 4096 * 3]).expect("as many samples as it has");
    let ladder = metric.workload().ladder(&large);
    for rung in ladder.rungs().iter().filter(|rung| rung.name.ends_with("strip")) {
        let needs = rung.footprint.total(1);
        assert!(needs <= Bytes::mib(48), "{metric} {}: {needs}", rung.name);
    }
}
