//! Which devices to use, and how much of each: from code, or from the environment.
//! Never looks at the machine. A setting that cannot be read is an error that says what to write, never a guess.

use std::env;
use std::ffi::OsString;

use plimsoll_core::Bytes;

use crate::gpus;

use super::memory_limit::{MemoryLimit, ParseMemoryLimitError};

/// Lowers what each device may use: see [`MemoryLimit`].
pub const MEMORY_LIMIT: &str = "PLIMSOLL_MEMORY_LIMIT";
/// `1` leaves every GPU out.
pub const NO_GPU: &str = "PLIMSOLL_NO_GPU";
/// `1` also uses GPUs that are made of CPU cores.
pub const SOFTWARE_GPU: &str = "PLIMSOLL_SOFTWARE_GPU";

pub use plimsoll_runtime::book::ALONE;

/// The number of the lease that this program runs on, set by `plimsoll run`.
pub const LEASE: &str = "PLIMSOLL_LEASE";
/// The bytes of each device that it may use by that lease.
pub const LEASE_BYTES: &str = "PLIMSOLL_LEASE_BYTES";
/// Those devices, as the book calls them, one a line.
pub const LEASE_PLACES: &str = "PLIMSOLL_LEASE_PLACES";

/// A lease of a daemon that this program runs on: its bytes are promised already, to this program and all that it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnLease {
    /// Its number.
    pub id: u64,
    /// What of each of its devices may be used.
    pub bytes: Bytes,
    /// Its devices, as the book calls them.
    pub places: Vec<String>,
}

impl OnLease {
    /// What the environment says; nothing if it does not say all of it.
    fn from_variables(text: impl Fn(&'static str) -> String) -> Option<Self> {
        let (id, bytes) = (text(LEASE).parse().ok()?, text(LEASE_BYTES).parse().ok()?);
        let places = text(LEASE_PLACES).lines().map(str::to_owned).collect();
        Some(Self { id, bytes: Bytes(bytes), places })
    }
}

/// Which GPUs to use.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum GpuUse {
    /// None: the drivers are not even asked.
    None,
    /// Those that are hardware of their own. A software GPU shares the CPU's cores, so it would only be in the way.
    #[default]
    Hardware,
    /// Software GPUs too, such as Mesa's lavapipe.
    WithSoftware,
}

/// Which devices to use, and how much of each.
///
/// ```
/// use plimsoll::machine::{GpuUse, Machine, MachineOptions};
///
/// let options = MachineOptions { gpus: GpuUse::None, memory_limit: "64MiB".parse()?, ..MachineOptions::default() };
/// let machine = Machine::open(&options);
/// assert_eq!(machine.names[0].to_string(), "cpu");
/// assert_eq!(machine.devices[0].memory().limit.unwrap().to_string(), "64.0 MiB");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineOptions {
    /// Which GPUs.
    pub gpus: GpuUse,
    /// As how many devices each card is opened; 0 counts as 1. More than one also uses a software GPU if the machine
    /// has no other: there is nothing else to divide.
    pub logical_gpus: usize,
    /// What each device may use at most. The logical parts of one card all get the lowest of their limits.
    pub memory_limit: MemoryLimit,
    /// Tasks at once on the CPU. Without this, as many as this process may use cores.
    pub cpu_slots: Option<usize>,
    /// Promise what is free, whatever other programs of this user are about to take. Otherwise all share each device by the
    /// [book](crate::book), so that together they stay below its line.
    pub alone: bool,
    /// The lease that this program runs on, if it does: of its devices no more is used than it says.
    pub lease: Option<OnLease>,
}

impl Default for MachineOptions {
    fn default() -> Self {
        Self {
            gpus: GpuUse::default(),
            logical_gpus: 1,
            memory_limit: MemoryLimit::NONE,
            cpu_slots: None,
            alone: false,
            lease: None,
        }
    }
}

/// A setting in the environment that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// A switch is neither on nor off.
    #[error("{name} is '{value}'; write {name}=1 to {effect}, or leave it out")]
    Switch {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What it would do.
        effect: &'static str,
    },
    /// The memory limit is none.
    #[error("{MEMORY_LIMIT} is '{value}': {reason}")]
    MemoryLimit {
        /// What it holds.
        value: String,
        /// What is wrong with it.
        reason: ParseMemoryLimitError,
    },
}

impl MachineOptions {
    /// Logical devices of one card at most.
    pub const LOGICAL_GPUS_MAX: usize = gpus::PARTS_MAX;

    /// What the environment asks for: `PLIMSOLL_MEMORY_LIMIT`, `PLIMSOLL_NO_GPU`, `PLIMSOLL_SOFTWARE_GPU`,
    /// `PLIMSOLL_ALONE`, and what `plimsoll run` says of its lease. If GPUs are both left out and asked for, none is used. An empty variable counts as none.
    ///
    /// # Errors
    /// [`SettingError`] if one of them holds something else than it may.
    pub fn from_env() -> Result<Self, SettingError> {
        Self::from_variables(env::var_os)
    }

    fn from_variables(variable: impl Fn(&'static str) -> Option<OsString>) -> Result<Self, SettingError> {
        let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned()).unwrap_or_default();
        let no_gpu = switch(NO_GPU, text(NO_GPU), "leave GPUs out")?;
        let software = switch(SOFTWARE_GPU, text(SOFTWARE_GPU), "use software GPUs too")?;
        let alone = switch(ALONE, text(ALONE), "share no memory with other programs of yours")?;
        let gpus = match (no_gpu, software) {
            (true, _) => GpuUse::None,
            (false, true) => GpuUse::WithSoftware,
            (false, false) => GpuUse::Hardware,
        };
        Ok(Self {
            gpus,
            memory_limit: memory_limit(text(MEMORY_LIMIT))?,
            alone,
            lease: OnLease::from_variables(text),
            ..Self::default()
        })
    }
}

fn switch(name: &'static str, value: String, effect: &'static str) -> Result<bool, SettingError> {
    match value.trim() {
        "1" => Ok(true),
        "" | "0" => Ok(false),
        _ => Err(SettingError::Switch { name, value, effect }),
    }
}

fn memory_limit(value: String) -> Result<MemoryLimit, SettingError> {
    if value.trim().is_empty() {
        return Ok(MemoryLimit::NONE);
    }
    value.parse().map_err(|reason| SettingError::MemoryLimit { value, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<MachineOptions, SettingError> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        MachineOptions::from_variables(find)
    }

    #[test]
    fn an_empty_environment_asks_for_nothing() {
        assert_eq!(from(&[]), Ok(MachineOptions::default()));
        assert_eq!(from(&[(NO_GPU, ""), (SOFTWARE_GPU, "0"), (MEMORY_LIMIT, " ")]), Ok(MachineOptions::default()));
    }

    #[test]
    fn each_variable_is_read() {
        assert_eq!(from(&[(NO_GPU, "1")]).unwrap().gpus, GpuUse::None);
        assert_eq!(from(&[(SOFTWARE_GPU, "1")]).unwrap().gpus, GpuUse::WithSoftware);
        assert_eq!(from(&[(SOFTWARE_GPU, "1"), (NO_GPU, "1")]).unwrap().gpus, GpuUse::None);
        assert!(from(&[(ALONE, "1")]).unwrap().alone && !from(&[]).unwrap().alone);
        let lease = [(LEASE, "7"), (LEASE_BYTES, "100"), (LEASE_PLACES, "a card, gpu0\nanother")];
        let places = vec!["a card, gpu0".to_owned(), "another".to_owned()];
        assert_eq!(from(&lease).unwrap().lease, Some(OnLease { id: 7, bytes: Bytes(100), places }));
        assert_eq!(from(&lease[..1]).unwrap().lease, None);
        let limited = from(&[(MEMORY_LIMIT, "64MiB")]).unwrap();
        assert_eq!(limited.memory_limit, MemoryLimit::every(Bytes::mib(64)));
    }

    #[test]
    fn a_wrong_value_says_what_to_write() {
        let said = |name, value| from(&[(name, value)]).unwrap_err().to_string();
        assert_eq!(
            said(NO_GPU, "yes"),
            "PLIMSOLL_NO_GPU is 'yes'; write PLIMSOLL_NO_GPU=1 to leave GPUs out, or leave it out"
        );
        assert!(said(SOFTWARE_GPU, "true").contains("PLIMSOLL_SOFTWARE_GPU=1 to use software GPUs too"));
        assert!(said(MEMORY_LIMIT, "lots").starts_with("PLIMSOLL_MEMORY_LIMIT is 'lots': 'lots' is not a size"));
    }

    #[cfg(unix)]
    #[test]
    fn text_that_is_not_unicode_is_an_error_and_no_panic() {
        use std::os::unix::ffi::OsStringExt;
        let find = |name: &str| (name == NO_GPU).then(|| OsString::from_vec(vec![0xff]));
        assert!(MachineOptions::from_variables(find).is_err());
    }
}
