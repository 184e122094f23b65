//! The metrics by name: the one table from a metric and a rung to the code that does it.

use std::fmt;
use std::str::FromStr;

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use super::about::About;
use super::cvvdp::Display;
use super::workload::MetricWorkload;
use super::{butteraugli, cvvdp, dssim, iwssim, ms_ssim, psnr, ssim, ssim2, zensim};
use crate::image::Shape;

/// A measure of how far an image is from its reference.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Metric {
    /// SSIMULACRA 2.
    Ssim2,
    /// Butteraugli: the maximum over the image, and the 3-norm beside it.
    Butteraugli,
    /// Structural dissimilarity over several scales, in Lab.
    Dssim,
    /// Information-weighted structural similarity.
    Iwssim,
    /// ColorVideoVDP for still images, on a display.
    Cvvdp(Display),
    /// Zensim.
    Zensim,
    /// Peak signal-to-noise ratio.
    Psnr,
    /// Structural similarity.
    Ssim,
    /// Structural similarity over five scales.
    MsSsim,
}

/// No metric has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no metric '{name}'; there are {all}", all = Metric::ALL.map(Metric::name).join(", "))]
pub struct ParseMetricError {
    name: String,
}

impl Metric {
    /// Every metric, with its usual parameters.
    pub const ALL: [Self; 9] = [
        Self::Ssim2,
        Self::Butteraugli,
        Self::Dssim,
        Self::Iwssim,
        Self::Cvvdp(Display::STANDARD),
        Self::Zensim,
        Self::Psnr,
        Self::Ssim,
        Self::MsSsim,
    ];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// What there is to know of it.
    pub fn about(self) -> &'static About {
        match self {
            Self::Ssim2 => &ssim2::ABOUT,
            Self::Butteraugli => &butteraugli::ABOUT,
            Self::Dssim => &dssim::ABOUT,
            Self::Iwssim => &iwssim::ABOUT,
            Self::Cvvdp(_) => &cvvdp::ABOUT,
            Self::Zensim => &zensim::ABOUT,
            Self::Psnr => &psnr::ABOUT,
            Self::Ssim => &ssim::ABOUT,
            Self::MsSsim => &ms_ssim::ABOUT,
        }
    }

    /// The metric as a workload, to register with an orchestrator.
    pub fn workload(self) -> MetricWorkload {
        MetricWorkload::new(self)
    }

    /// The ways to compute it for images of this shape, best first.
    pub(super) fn rungs(self, shape: Shape) -> Vec<Rung> {
        match self {
            Self::Ssim2 => ssim2::WAYS.rungs(shape),
            Self::Butteraugli => butteraugli::WAYS.rungs(shape),
            Self::Dssim => dssim::WAYS.rungs(shape),
            Self::Iwssim => iwssim::WAYS.rungs(shape),
            Self::Cvvdp(display) => cvvdp::rungs(display, shape),
            Self::Zensim => zensim::rungs(shape),
            Self::Psnr => psnr::WAYS.rungs(shape),
            Self::Ssim => ssim::WAYS.rungs(shape),
            Self::MsSsim => ms_ssim::WAYS.rungs(shape),
        }
    }

    pub(super) fn open(
        self,
        rung: &str,
        shape: Shape,
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
        match self {
            Self::Ssim2 => ssim2::WAYS.open(rung, shape, backend),
            Self::Butteraugli => butteraugli::WAYS.open(rung, shape, backend),
            Self::Dssim => dssim::WAYS.open(rung, shape, backend),
            Self::Iwssim => iwssim::WAYS.open(rung, shape, backend),
            Self::Cvvdp(display) => cvvdp::open(display, rung, shape, backend),
            Self::Zensim => zensim::open(rung, shape, backend),
            Self::Psnr => psnr::WAYS.open(rung, shape, backend),
            Self::Ssim => ssim::WAYS.open(rung, shape, backend),
            Self::MsSsim => ms_ssim::WAYS.open(rung, shape, backend),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Metric {
    type Err = ParseMetricError;

    fn from_str(name: &str) -> Result<Self, ParseMetricError> {
        Self::ALL
            .into_iter()
            .find(|metric| metric.name() == name)
            .ok_or_else(|| ParseMetricError { name: name.to_owned() })
    }
}
