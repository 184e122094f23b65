//! Whose figures a profile holds, and whether they still mean anything here and now.
//! Never looks at the hardware: the caller says what the machine is.
//! Invariant: figures of other hardware, another driver or other software are never taken for this machine's.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{DeviceKind, UnixSeconds};

/// Days after which a figure is measured again: drivers, cooling and habits drift. Each has its own date.
pub const STALE_AFTER_DAYS: u64 = 7;

const DAY_S: u64 = 24 * 3600;

/// How far in the future a profile may have been measured before the clock is doubted.
pub(super) const CLOCK_SLACK_S: u64 = DAY_S;

/// Whether what was learnt then can still be relied on.
pub(super) fn is_fresh(learnt_at: UnixSeconds, now: UnixSeconds) -> bool {
    now.0.saturating_sub(learnt_at.0) / DAY_S < STALE_AFTER_DAYS
}

/// A machine, as far as its figures depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// Names all hardware and drivers in it; equal on identical machines.
    pub key: String,
    /// What it has, for people.
    #[serde(default)]
    pub devices: Vec<DeviceSummary>,
}

/// One device of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSummary {
    /// What people call it.
    pub name: String,
    /// CPU or GPU.
    pub kind: DeviceKind,
    /// Driver name and version; empty for the CPU.
    #[serde(default)]
    pub driver: String,
}

impl Hardware {
    /// The devices' names, for a sentence.
    fn hardware(&self) -> String {
        let names: Vec<&str> = self.devices.iter().map(|device| device.name.as_str()).collect();
        if names.is_empty() { format!("machine {}", self.key) } else { names.join(" + ") }
    }

    fn same_hardware(&self, other: &Self) -> bool {
        let hardware = |machine: &Self| {
            let mut devices: Vec<_> = machine.devices.iter().map(|d| (d.kind, d.name.clone())).collect();
            devices.sort_unstable();
            devices
        };
        hardware(self) == hardware(other)
    }

    /// The first device whose driver is not the one it has in `now`.
    fn changed_driver<'a>(&'a self, now: &'a Self) -> Option<(&'a DeviceSummary, &'a DeviceSummary)> {
        let twin = |device: &DeviceSummary| {
            let same_driver = now.devices.iter().any(|d| d == device);
            if same_driver { None } else { now.devices.iter().find(|d| d.name == device.name) }
        };
        self.devices.iter().find_map(|device| Some((device, twin(device)?)))
    }
}

/// Where and with what figures were measured.
#[derive(Copy, Clone, Debug)]
pub struct Origin<'a> {
    /// The machine.
    pub machine: &'a Hardware,
    /// The version of the software.
    pub software: &'a str,
}

impl Origin<'_> {
    /// Why figures of this origin are not figures of `here`; `None` if they are.
    pub fn mismatch(self, here: Origin<'_>) -> Option<Mismatch> {
        if self.machine.key != here.machine.key {
            return Some(self.machine_mismatch(here));
        }
        (self.software != here.software)
            .then(|| Mismatch::Software { was: self.software.to_owned(), is: here.software.to_owned() })
    }

    fn machine_mismatch(self, here: Origin<'_>) -> Mismatch {
        if !self.machine.same_hardware(here.machine) {
            return Mismatch::Hardware { was: self.machine.hardware(), is: here.machine.hardware() };
        }
        match self.machine.changed_driver(here.machine) {
            Some((was, is)) => {
                Mismatch::Driver { device: was.name.clone(), was: was.driver.clone(), is: is.driver.clone() }
            }
            // Alike by name, yet not the same: processor features, memory, firmware.
            None => Mismatch::Key { was: self.machine.key.clone(), is: here.machine.key.clone() },
        }
    }
}

/// Why figures are not figures of this machine and software.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// Other devices.
    Hardware {
        /// The devices they were measured on.
        was: String,
        /// The devices that are here.
        is: String,
    },
    /// The same devices with another driver.
    Driver {
        /// The first device concerned.
        device: String,
        /// The driver they were measured with.
        was: String,
        /// The driver that is here.
        is: String,
    },
    /// Devices of the same names that differ in something else.
    Key {
        /// The key of the machine they were measured on.
        was: String,
        /// The key of this machine.
        is: String,
    },
    /// Another version of the software.
    Software {
        /// The version they were measured with.
        was: String,
        /// The version that runs.
        is: String,
    },
}

impl Mismatch {
    /// Whether they are another machine's, which may still need them; otherwise this machine's of before a change.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Hardware { .. } | Self::Key { .. })
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hardware { was, is } => write!(f, "it was measured on {was}; this machine has {is}"),
            Self::Driver { device, was, is } => {
                write!(f, "it was measured with driver '{was}' of {device}; this machine has driver '{is}'")
            }
            Self::Key { was, is } => {
                write!(f, "it was measured on a machine that differs in details ({was}; this one is {is})")
            }
            Self::Software { was, is } => write!(f, "it was measured by version {was}; this is version {is}"),
        }
    }
}

/// Whether a profile can be relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// Measured here, not long ago.
    Fresh,
    /// Measured here, but measure again: see the reason.
    Stale(Stale),
    /// Not this machine's figures at all: do not use them.
    Foreign(Mismatch),
}

/// Why a profile should be measured again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stale {
    /// All of it is too old.
    Age {
        /// Full days since the last of it was measured.
        days: u64,
    },
    /// It claims to be measured in the future.
    Clock,
    /// The driver or the software has changed since.
    Changed(Mismatch),
}

impl Freshness {
    /// Of figures the last of which was measured then. Each of them is judged by its own date besides.
    pub(super) fn of(measured_at: UnixSeconds, origin: Origin<'_>, here: Origin<'_>, now: UnixSeconds) -> Self {
        match origin.mismatch(here) {
            Some(mismatch) if mismatch.is_foreign() => Self::Foreign(mismatch),
            Some(mismatch) => Self::Stale(Stale::Changed(mismatch)),
            None if measured_at > now.plus(CLOCK_SLACK_S) => Self::Stale(Stale::Clock),
            None => match now.0.saturating_sub(measured_at.0) / DAY_S {
                0..STALE_AFTER_DAYS => Self::Fresh,
                days => Self::Stale(Stale::Age { days }),
            },
        }
    }

    /// Whether nothing needs to be measured again.
    pub fn is_fresh(&self) -> bool {
        *self == Self::Fresh
    }
}

impl fmt::Display for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fresh => f.write_str("fresh"),
            Self::Stale(Stale::Age { days }) => {
                write!(f, "stale: measured {days} days ago, more than {STALE_AFTER_DAYS}")
            }
            Self::Stale(Stale::Clock) => f.write_str("stale: measured in the future, so the clock has moved"),
            Self::Stale(Stale::Changed(mismatch)) => write!(f, "stale: {mismatch}"),
            Self::Foreign(mismatch) => write!(f, "foreign: {mismatch}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: UnixSeconds = UnixSeconds(1_760_000_000);

    fn machine(key: &str, card: &str, driver: &str) -> Hardware {
        let device = |name: &str, kind, driver: &str| DeviceSummary { name: name.into(), kind, driver: driver.into() };
        Hardware {
            key: key.into(),
            devices: vec![device("Ryzen", DeviceKind::Cpu, ""), device(card, DeviceKind::Gpu, driver)],
        }
    }

    fn freshness(here: &Hardware, software: &str, now: UnixSeconds) -> Freshness {
        let home = machine("k1", "RTX 5070", "580.1");
        let origin = Origin { machine: &home, software: "0.1.0" };
        Freshness::of(MEASURED, origin, Origin { machine: here, software }, now)
    }

    #[test]
    fn a_profile_goes_stale_after_seven_days() {
        let home = machine("k1", "RTX 5070", "580.1");
        let after = |seconds| freshness(&home, "0.1.0", MEASURED.plus(seconds));
        assert_eq!(after(0), Freshness::Fresh);
        assert_eq!(after(7 * DAY_S - 1), Freshness::Fresh);
        assert_eq!(after(7 * DAY_S), Freshness::Stale(Stale::Age { days: 7 }));
    }

    #[test]
    fn a_profile_from_the_future_is_not_fresh_for_ever() {
        let home = machine("k1", "RTX 5070", "580.1");
        assert_eq!(freshness(&home, "0.1.0", UnixSeconds(MEASURED.0 - 60)), Freshness::Fresh);
        assert_eq!(freshness(&home, "0.1.0", UnixSeconds(1)), Freshness::Stale(Stale::Clock));
        let ahead_by = |seconds| freshness(&home, "0.1.0", UnixSeconds(MEASURED.0 - seconds));
        assert!(ahead_by(CLOCK_SLACK_S).is_fresh(), "clocks differ by so much");
        assert_eq!(ahead_by(CLOCK_SLACK_S + 1), Freshness::Stale(Stale::Clock));
    }

    #[test]
    fn every_change_is_told_with_its_reason() {
        let reason = |here: &Hardware, software: &str| freshness(here, software, MEASURED).to_string();
        assert_eq!(
            reason(&machine("k1", "RTX 5070", "580.1"), "0.2.0"),
            "stale: it was measured by version 0.1.0; this is version 0.2.0"
        );
        assert_eq!(
            reason(&machine("k2", "RTX 5070", "590.0"), "0.1.0"),
            "stale: it was measured with driver '580.1' of RTX 5070; this machine has driver '590.0'"
        );
        assert_eq!(
            reason(&machine("k3", "Arc B580", "26.1"), "0.1.0"),
            "foreign: it was measured on Ryzen + RTX 5070; this machine has Ryzen + Arc B580"
        );
        assert_eq!(
            reason(&machine("k4", "RTX 5070", "580.1"), "0.1.0"),
            "foreign: it was measured on a machine that differs in details (k1; this one is k4)"
        );
    }

    #[test]
    fn the_order_in_which_devices_are_found_is_not_hardware() {
        let home = machine("k1", "RTX 5070", "580.1");
        let mut turned = home.clone();
        turned.devices.reverse();
        assert!(home.same_hardware(&turned));
        assert!(!home.same_hardware(&machine("k1", "Arc B580", "580.1")));
    }

    #[test]
    fn only_what_is_fresh_is_fresh() {
        let home = machine("k1", "RTX 5070", "580.1");
        assert!(freshness(&home, "0.1.0", MEASURED).is_fresh());
        assert!(!freshness(&home, "0.2.0", MEASURED).is_fresh());
    }
}
