//! Where a stage may run, as a user chooses it.
//! Never changes what a stage gives: only where it is made.

use plimsoll_core::{DeviceId, DeviceKind};
use plimsoll_runtime::Orchestrator;

/// Where a stage may run.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum StageChoice {
    /// Wherever it finishes first.
    #[default]
    Auto,
    /// On the CPU, and nowhere else.
    Cpu,
    /// On a GPU, and nowhere else.
    Gpu,
}

impl StageChoice {
    /// The devices that it means, empty for all of them; none if there is no such device.
    pub(crate) fn devices(self, orchestrator: &Orchestrator) -> Option<Vec<DeviceId>> {
        let kind = match self {
            Self::Auto => return Some(Vec::new()),
            Self::Cpu => DeviceKind::Cpu,
            Self::Gpu => DeviceKind::Gpu,
        };
        let meant = orchestrator.devices().filter(|(_, facts)| facts.kind == kind).map(|(id, _)| id);
        Some(meant.collect::<Vec<_>>()).filter(|meant| !meant.is_empty())
    }
}
