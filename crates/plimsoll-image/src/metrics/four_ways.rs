//! A metric with all four rungs: kernels whole and in strips, and plain code for the CPU.
//! Invariant: strips on the CPU are the strips of the GPU, through the kernels' twins.

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use super::Metric;
use super::device_metric::{self, DeviceMetric};
use super::host_metric::{self, HostMetric};
use super::workload::{CPU, CPU_STRIP, GPU_FULL, GPU_STRIP, MetricWorkload, rung};
use crate::image::Shape;

/// The three pieces of code behind four rungs.
pub(super) struct FourWays<W, S, H> {
    pub(super) metric: Metric,
    pub(super) whole: W,
    pub(super) strips: S,
    pub(super) host: H,
}

/// How a metric lists its rungs and opens a session on one.
pub(super) trait Ways {
    /// The ways to compute it for images of this shape, best first.
    fn rungs(&self, shape: Shape) -> Vec<Rung>;

    /// Opens a session on the rung of this name.
    fn open(
        &self,
        rung: &str,
        shape: Shape,
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<MetricWorkload>>, Fault>;
}

impl<W: DeviceMetric + Copy, S: DeviceMetric + Copy, H: HostMetric + Copy> Ways for FourWays<W, S, H> {
    fn rungs(&self, shape: Shape) -> Vec<Rung> {
        let strips = device_metric::footprint(&self.strips, shape);
        vec![
            rung(GPU_FULL, device_metric::footprint(&self.whole, shape)),
            rung(GPU_STRIP, strips),
            rung(CPU, self.host.footprint(shape)),
            rung(CPU_STRIP, strips),
        ]
    }

    fn open(
        &self,
        rung: &str,
        shape: Shape,
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
        match rung {
            GPU_FULL => device_metric::open(self.metric, self.whole, shape, backend),
            CPU => Ok(host_metric::open(self.metric, self.host, shape)),
            _ => device_metric::open(self.metric, self.strips, shape, backend),
        }
    }
}
