//! What each device did: counts, throughput, busy time, percentiles.
//! Never decides; `balancer` reads it.

use serde::Serialize;

use crate::Nanos;
use crate::histogram::Histogram;

/// Weight of the latest sample in the moving average of throughput.
const THROUGHPUT_ALPHA: f64 = 0.1;

/// Running counts of one device.
#[derive(Clone, Debug, Default)]
pub struct DeviceStats {
    pub(crate) dispatched: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) retried: u64,
    pub(crate) busy: Nanos,
    pub(crate) units_per_second: Option<f64>,
    run_times: Histogram,
    /// The time that its slots had until the width last changed, and when that was.
    slot_time: Nanos,
    slot_time_until: Nanos,
}

impl DeviceStats {
    /// So many tasks gave results, each of which took so long.
    #[inline]
    pub(crate) fn completed(&mut self, units: u64, took: Nanos, count: u64) {
        self.completed += count;
        self.busy += Nanos(took.0.saturating_mul(count));
        self.run_times.record_many(took, count);
        let rate = units.max(1) as f64 / took.as_secs_f64().max(1e-9);
        self.units_per_second = Some(match self.units_per_second {
            Some(average) => average + THROUGHPUT_ALPHA * (rate - average),
            None => rate,
        });
    }

    pub(crate) fn failed(&mut self, took: Nanos) {
        self.failed += 1;
        self.busy += took;
    }

    /// So many slots were in use until `elapsed` after the start.
    pub(crate) fn width_was(&mut self, elapsed: Nanos, slots: usize) {
        self.slot_time = self.slot_time_at(elapsed, slots);
        self.slot_time_until = elapsed;
    }

    fn slot_time_at(&self, elapsed: Nanos, slots: usize) -> Nanos {
        self.slot_time + Nanos((elapsed - self.slot_time_until).0.saturating_mul(slots as u64))
    }

    /// The figures for people and machines, `elapsed` after the start.
    pub(crate) fn report(&self, elapsed: Nanos, slots: usize, depth: usize) -> DeviceReport {
        let available = self.slot_time_at(elapsed, slots).as_secs_f64();
        DeviceReport {
            slots_used: slots,
            dispatched: self.dispatched,
            completed: self.completed,
            failed: self.failed,
            retried: self.retried,
            depth,
            units_per_second: self.units_per_second.unwrap_or(0.0),
            busy_share: if available > 0.0 { (self.busy.as_secs_f64() / available).min(1.0) } else { 0.0 },
            p50: self.run_times.percentile(0.50),
            p95: self.run_times.percentile(0.95),
            p99: self.run_times.percentile(0.99),
        }
    }
}

/// One device's figures at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceReport {
    /// Attempts started.
    pub dispatched: u64,
    /// Attempts that gave a result.
    pub completed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Of those started, attempts at tasks that had failed elsewhere or before.
    pub retried: u64,
    /// Slots in use at once now: what was measured to be best, for a device that leaves that to be measured.
    pub slots_used: usize,
    /// Tasks queued or running now.
    pub depth: usize,
    /// Moving average of units per second of one slot.
    pub units_per_second: f64,
    /// Share of the time of its slots in use spent running, from 0 to 1.
    pub busy_share: f64,
    /// Half of the runs took at most this.
    pub p50: Option<Nanos>,
    /// 95 % of the runs took at most this.
    pub p95: Option<Nanos>,
    /// 99 % of the runs took at most this.
    pub p99: Option<Nanos>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_share_counts_every_slot() {
        let mut stats = DeviceStats::default();
        stats.completed(10, Nanos::seconds(1), 1);
        stats.failed(Nanos::seconds(1));
        let report = stats.report(Nanos::seconds(2), 2, 3);
        assert_eq!((report.completed, report.failed, report.depth), (1, 1, 3));
        assert!((report.busy_share - 0.5).abs() < 1e-9);
        assert!((report.units_per_second - 10.0).abs() < 1e-9);
        stats.width_was(Nanos::seconds(2), 2);
        let later = stats.report(Nanos::seconds(6), 1, 0);
        assert!((later.busy_share - 0.25).abs() < 1e-9, "two of 2 × 2 + 4 × 1 slot seconds: {later:?}");
    }

    #[test]
    fn throughput_is_a_moving_average() {
        let mut stats = DeviceStats::default();
        for (units, took) in [(100, Nanos::millis(100)), (200, Nanos::millis(100)), (0, Nanos::ZERO)] {
            let before = stats.units_per_second;
            stats.completed(units, took, 1);
            assert!(before.is_none_or(|before| stats.units_per_second.is_some_and(|after| after > before)));
        }
        stats.units_per_second = Some(1_000.0);
        stats.completed(200, Nanos::millis(100), 1);
        let average = stats.report(Nanos::seconds(1), 1, 0).units_per_second;
        assert!((average - 1_100.0).abs() < 1e-6, "a tenth of the way to 2,000: {average}");
    }

    #[test]
    fn nothing_is_busy_before_any_time_has_passed() {
        assert_eq!(DeviceStats::default().report(Nanos::ZERO, 2, 0).busy_share, 0.0);
    }
}
