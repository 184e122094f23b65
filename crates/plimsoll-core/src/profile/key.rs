//! The name of a cell: which workload, by which rung, on which device.

use std::fmt;

use super::name::clean;

/// Names a cell. The device's name is the one of the hardware and driver, so that it means the same on the next day.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    workload: String,
    rung: String,
    device: String,
}

impl CellKey {
    /// The cell of this workload, rung and device. Control characters become spaces and over-long names are cut.
    pub fn new(workload: &str, rung: &str, device: &str) -> Self {
        Self { workload: clean(workload), rung: clean(rung), device: clean(device) }
    }

    /// The workload's name.
    pub fn workload(&self) -> &str {
        &self.workload
    }

    /// The rung's name.
    pub fn rung(&self) -> &str {
        &self.rung
    }

    /// The device's key.
    pub fn device(&self) -> &str {
        &self.device
    }
}

impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {} on {}", self.workload, self.rung, self.device)
    }
}
