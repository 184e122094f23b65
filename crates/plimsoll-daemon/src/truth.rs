//! Truth: what drivers say of each device's memory, and what each process has of it. The daemon believes this, not promises.
//! Never opens a GPU, and never guesses: a source that does not know says so.
//! Invariant: a device's name means the same device in every reading.
//!
//! | file | source |
//! |---|---|
//! | `drm.rs` | amdgpu, xe and i915: sysfs and the `fdinfo` of each process |
//! | `ram.rs` | the system's memory, as the device `cpu` |
//! | `nvidia.rs` | NVML |
//! | `scripted.rs` | a file that is read again each time, for machines without a GPU and for tests |
//! | `reader.rs` | the threads that read, because drivers may hang |

pub mod drm;
#[cfg(feature = "gpu")]
pub mod nvidia;
pub mod ram;
pub mod reader;
pub mod scripted;

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::{Bytes, DeviceKind};

/// What one source says of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceTruth {
    /// `gpu0`, `cpu`.
    pub name: String,
    /// What people call it.
    pub card: String,
    /// CPU or GPU.
    pub kind: DeviceKind,
    /// All its memory.
    pub capacity: Bytes,
    /// What is free, counting everybody.
    pub free: Bytes,
    /// What each process has of it; `None` if the source cannot tell.
    pub processes: Option<Vec<ProcessUse>>,
    /// Where the figures come from.
    pub source: String,
    /// What it is called in the book that the user's programs share; `None` if it is not in it.
    pub in_book: Option<String>,
    /// Set for programs that are to use this device and no other.
    pub environment: Vec<(String, String)>,
}

/// What one process has of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessUse {
    /// Its number.
    pub pid: u32,
    /// What it is called.
    pub name: String,
    /// Whoever started it, the nearest first.
    pub ancestors: Vec<u32>,
    /// What it has.
    pub bytes: Bytes,
}

impl ProcessUse {
    /// With what is known of the process below this folder.
    pub(crate) fn of(proc_root: &Path, pid: u32, bytes: Bytes) -> Self {
        let stat = crate::process::Stat::read(proc_root, pid);
        let name = stat.map_or_else(|| format!("process {pid}"), |stat| stat.name);
        Self { pid, name, ancestors: crate::process::ancestors(proc_root, pid), bytes }
    }
}

/// Why a source has nothing to say.
#[derive(Debug, thiserror::Error)]
#[error("{source_name}: {what}")]
pub struct TruthError {
    /// Which source.
    pub source_name: String,
    /// What went wrong.
    pub what: String,
}

/// A source of figures.
pub trait Truth: Send {
    /// What people call it.
    fn name(&self) -> &str;

    /// Every device it knows, as it stands now.
    ///
    /// # Errors
    /// Why there is nothing to say. The last reading counts as before.
    fn read(&mut self) -> Result<Vec<DeviceTruth>, TruthError>;
}

/// Every source that this machine has. What a card has although its driver does not say so is in `said`, by the card's place
/// on the bus.
pub fn sources(said: &BTreeMap<String, Bytes>) -> Vec<Box<dyn Truth>> {
    let mut sources: Vec<Box<dyn Truth>> = Vec::new();
    let mut gpus = 0;
    #[cfg(feature = "gpu")]
    if let Some(nvidia) = nvidia::Nvidia::find(&mut gpus) {
        sources.push(Box::new(nvidia));
    }
    if let Some(drm) = drm::Drm::find(Path::new("/sys"), Path::new("/proc"), &mut gpus, said) {
        sources.push(Box::new(drm));
    }
    sources.push(Box::new(ram::Ram::new(Path::new("/proc"))));
    sources
}
