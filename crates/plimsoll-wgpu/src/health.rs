//! Whether a device still lives, as far as anyone has heard.
//! Never asks the driver: the driver's callbacks tell it. After a loss wgpu's calls report no error at all, so this is
//! looked at after every call, before its success is believed.
//! Invariant: once lost, lost for good; a reopened device has a new [`Health`].

use std::sync::OnceLock;

use plimsoll_core::Fault;

/// Shared by a device's callbacks and its slots.
#[derive(Debug, Default)]
pub(crate) struct Health {
    lost: OnceLock<String>,
    stalled: OnceLock<()>,
}

impl Health {
    /// Marks it lost. The first reason is kept.
    pub(crate) fn lose(&self, reason: impl Into<String>) {
        // A second reason is a consequence of the first.
        let _ = self.lost.set(reason.into());
    }

    /// Marks it lost because it does not answer; it may never do again.
    pub(crate) fn stall(&self, reason: impl Into<String>) {
        self.lose(reason);
        let _ = self.stalled.set(());
    }

    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.get().is_some()
    }

    /// An error once it is lost.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        match self.lost.get() {
            None => Ok(()),
            Some(detail) => Err(Fault::DeviceLost { detail: detail.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_is_kept() {
        let health = Health::default();
        health.check().unwrap();
        health.stall("no answer");
        health.lose("destroyed");
        assert!(health.is_stalled());
        assert_eq!(health.check().unwrap_err().to_string(), "device lost: no answer");
    }
}
