//! What a process says of itself to the scripted driver.

use std::fs;
use std::path::{Path, PathBuf};

/// What this process uses, as the driver of a scripted machine shows it.
pub(crate) struct Uses(PathBuf);

impl Uses {
    /// Of this process. Numbers of processes are used again, so it also says when it began.
    pub(crate) fn of_this(folder: &Path) -> Self {
        let this = plimsoll_daemon::process::Process::this();
        Self(folder.join("uses").join(format!("{}-{}", this.pid, this.started)))
    }

    /// So many bytes, from one moment to the next.
    pub(crate) fn set(&self, bytes: u64) {
        let aside = self.0.with_extension("new");
        fs::write(&aside, bytes.to_string()).unwrap();
        fs::rename(&aside, &self.0).unwrap();
    }

    pub(crate) fn none(&self) {
        fs::remove_file(&self.0).unwrap();
    }
}
