//! Readbacks: bytes on their way out of a buffer, recorded with the work that makes them and collected once it is done.
//! Never copies: a backend does. Owns whose a readback is, its charge, and whether its work was handed over.
//! Invariant: what was not handed over, or was abandoned, is never collected (`conformance`).

use std::any::Any;
use std::sync::{Arc, OnceLock};

use plimsoll_core::{Bytes, Fault};

use crate::gauge::Charge;
use crate::misuse::MisuseError;
use crate::origin::Origin;

/// Bytes that [`crate::Backend::stage_read`] has asked for. Holds as many bytes of the device until it is collected or
/// dropped.
#[derive(Debug)]
pub struct Readback {
    origin: Origin,
    fate: Arc<OnceLock<Fate>>,
    content: Box<dyn Any + Send + Sync>,
    charge: Charge,
}

/// What became of recorded work.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Fate {
    HandedOver,
    Abandoned,
}

impl Readback {
    /// Its size.
    pub fn bytes(&self) -> Bytes {
        self.charge.bytes()
    }
}

/// The readbacks that one slot has recorded and not handed over yet. Only backends use this.
#[derive(Debug)]
pub struct Staged {
    origin: Origin,
    recorded: Vec<Arc<OnceLock<Fate>>>,
}

impl Staged {
    /// None so far, on a slot of this device and life.
    pub fn new(origin: Origin) -> Self {
        Self { origin, recorded: Vec::new() }
    }

    /// Wraps a backend's own readback, which was just recorded.
    pub fn record(&mut self, content: impl Any + Send + Sync, charge: Charge) -> Readback {
        let fate = Arc::default();
        self.recorded.push(Arc::clone(&fate));
        Readback { origin: self.origin.clone(), fate, content: Box::new(content), charge }
    }

    /// What was recorded is on its way to the device.
    pub fn handed_over(&mut self) {
        self.settle(Fate::HandedOver);
    }

    /// What was recorded never reaches the device, or nobody wants it any more.
    pub fn abandoned(&mut self) {
        self.settle(Fate::Abandoned);
    }

    fn settle(&mut self, fate: Fate) {
        // Each is in the list once, so nothing was set before.
        for recorded in self.recorded.drain(..) {
            let _ = recorded.set(fate);
        }
    }

    /// The backend's own readback and its charge, if it was handed over and `into` is as long as it is.
    ///
    /// # Errors
    /// [`Fault::WorkFailed`] if another device made it, if it was not handed over or abandoned, or for another length;
    /// [`Fault::DeviceLost`] for one of an earlier life.
    pub fn collect<C: Any>(&self, readback: Readback, into: &[u8]) -> Result<(C, Charge), Fault> {
        let Readback { origin, fate, content, charge } = readback;
        self.origin.check(&origin, "readback")?;
        match fate.get() {
            Some(Fate::HandedOver) => {}
            Some(Fate::Abandoned) => return Err(MisuseError::Abandoned.into()),
            None => return Err(MisuseError::NotHandedOver.into()),
        }
        let (wanted, got) = (charge.bytes().0, into.len() as u64);
        if wanted != got {
            return Err(MisuseError::ReadbackBytes { wanted, got }.into());
        }
        let content = content.downcast().map_err(|_| MisuseError::Foreign("readback"))?;
        Ok((*content, charge))
    }
}
