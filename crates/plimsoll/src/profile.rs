//! Where this user's profile is kept, and of which machine it must be.
//! Never reads or writes it: that is [`ProfileFile`].

use std::env;
use std::path::PathBuf;

use plimsoll_core::{DeviceKind, profile};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::{Device, Nature, SOFTWARE};
use twox_hash::XxHash3_64;

use crate::gpus::{self, FoundGpu, discover};

pub use plimsoll_core::profile::{
    Basis, Cell, CellKey, DeviceSummary, Dropped, Estimate, FailedAt, FailedCell, Failures, Freshness, Hardware,
    Measured, Mismatch, Origin, Profile, RanOut, RecordError, Stale, UnsupportedCell, Verdict,
};
pub use plimsoll_runtime::profile_file::{Imported, Loaded, ProfileFile, ProfileFileError, Saved, Warning};

/// Names another file than the one in the user's cache folder.
pub const PROFILE: &str = "PLIMSOLL_PROFILE";

/// The file that `PLIMSOLL_PROFILE` names, or that of this machine in the user's cache folder.
///
/// # Errors
/// [`ProfileFileError::NoCacheFolder`] if the variable is not set and the platform names no folder.
pub fn file(machine: &Hardware) -> Result<ProfileFile, ProfileFileError> {
    match env::var_os(PROFILE).filter(|path| !path.is_empty()) {
        Some(path) => Ok(ProfileFile::at(PathBuf::from(path))),
        None => ProfileFile::in_cache(machine),
    }
}

/// This machine as its profile names it: its processor and every card in it, with their drivers. A card whose driver did
/// not load today makes another machine, with a profile of its own.
///
/// Which of them are used does not count: leaving the GPUs out for one run must not make the profile look like another
/// machine's, which would throw its figures away. Nor do software GPUs: installing one changes no hardware, and their
/// figures are kept under keys that hold their own driver. Nothing is opened for it.
pub fn hardware() -> Hardware {
    machine_of(&CpuDevice::open(), &cards(gpus::may_be_there(), discover))
}

/// The cards that drivers find. Drivers of software GPUs, which do not count, are not loaded where there is no other.
fn cards(may_be_there: bool, discover: impl FnOnce() -> Vec<FoundGpu>) -> Vec<FoundGpu> {
    let found = if may_be_there { discover() } else { Vec::new() };
    found.into_iter().filter(|gpu| gpu.nature() == Nature::Hardware).collect()
}

fn machine_of(cpu: &CpuDevice, gpus: &[FoundGpu]) -> Hardware {
    let processor = DeviceSummary { name: cpu.facts().name.clone(), kind: DeviceKind::Cpu, driver: String::new() };
    let card = |gpu: &FoundGpu| DeviceSummary {
        name: gpu.name().to_owned(),
        kind: DeviceKind::Gpu,
        driver: gpu.driver().to_owned(),
    };
    let devices: Vec<DeviceSummary> = std::iter::once(processor).chain(gpus.iter().map(card)).collect();
    Hardware { key: key(&cpu.facts().key, &devices), devices }
}

/// Equal for equal processors and GPUs with equal drivers, in whatever order the GPUs are found.
fn key(cpu: &str, devices: &[DeviceSummary]) -> String {
    let mut lines: Vec<String> = devices.iter().map(|device| format!("{}\n{}", device.name, device.driver)).collect();
    lines.sort_unstable();
    format!("machine-{:016x}", XxHash3_64::oneshot(format!("{cpu}\n{}", lines.join("\n")).as_bytes()))
}

/// This machine and this version of the software.
pub fn origin(machine: &Hardware) -> profile::Origin<'_> {
    profile::Origin { machine, software: SOFTWARE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_asked_only_where_there_may_be_a_card() {
        assert!(cards(false, || panic!("a driver was loaded")).is_empty());
        let mut asked = false;
        cards(true, || {
            asked = true;
            Vec::new()
        });
        assert!(asked, "a card that is there counts");
    }

    fn device(name: &str, driver: &str) -> DeviceSummary {
        DeviceSummary { name: name.to_owned(), kind: DeviceKind::Gpu, driver: driver.to_owned() }
    }

    #[test]
    fn the_key_holds_every_device_and_driver() {
        let (a, b) = (device("A", "1"), device("B", "1"));
        let both = key("cpu", &[a.clone(), b.clone()]);
        assert_eq!(both, key("cpu", &[b.clone(), a.clone()]));
        assert_ne!(both, key("other cpu", &[a.clone(), b.clone()]));
        assert_ne!(both, key("cpu", &[a.clone(), device("B", "2")]));
        assert_ne!(both, key("cpu", &[a]));
    }

    #[test]
    fn this_machine_is_the_same_machine_again() {
        let machine = hardware();
        assert_eq!(machine, hardware());
        assert_eq!(machine.devices[0].kind, DeviceKind::Cpu);
        assert!(origin(&machine).mismatch(origin(&hardware())).is_none());
    }
}
