//! Whose a buffer, a fence or a readback is: the device that made it, and which of its lives.
//! Never keeps a device open: it only tells one from another.
//! Invariant: what another device made is the workload's mistake; what went with an earlier life is a loss
//! (`conformance`).

use std::sync::Arc;

use plimsoll_core::Fault;

use crate::gauge::Gauge;
use crate::misuse::MisuseError;

/// One life of one device.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Tells devices apart: each has one.
    gauge: Arc<Gauge>,
    life: u64,
}

impl Origin {
    /// The life of this number of the device that is charged on this gauge.
    pub fn new(gauge: &Arc<Gauge>, life: u64) -> Self {
        Self { gauge: Arc::clone(gauge), life }
    }

    /// Checks that `what` is of this very life.
    ///
    /// # Errors
    /// [`Fault::WorkFailed`] if another device made it; [`Fault::DeviceLost`] if it went with another life.
    pub fn check(&self, made_by: &Self, what: &'static str) -> Result<(), Fault> {
        if !Arc::ptr_eq(&self.gauge, &made_by.gauge) {
            return Err(MisuseError::Foreign(what).into());
        }
        if self.life != made_by.life {
            return Err(Fault::DeviceLost { detail: format!("the {what} went with an earlier life of the device") });
        }
        Ok(())
    }
}
