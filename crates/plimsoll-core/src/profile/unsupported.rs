//! What a device cannot do at all: a rung whose kernel its driver does not compile.
//! Never a shortage of memory, which passes; this lasts until the driver or the software changes.
//! Invariant: none counts for longer than [`UNSUPPORTED_LIFE_S`], so that a mistake is not for ever.

use super::key::CellKey;
use super::name::clean;
use crate::UnixSeconds;

/// How long it counts: thirty days. The device's key holds its driver's version, so an update ends it sooner.
pub const UNSUPPORTED_LIFE_S: u64 = 30 * 24 * 3600;

/// A rung that a device cannot do, and what the driver said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnsupportedCell {
    key: CellKey,
    detail: String,
    software: String,
    at: UnixSeconds,
}

impl UnsupportedCell {
    /// The device refused the rung, with these words. They are cleaned and cut as names are.
    pub fn new(key: CellKey, detail: &str, software: &str, at: UnixSeconds) -> Self {
        let at = UnixSeconds(at.0.min(i64::MAX as u64));
        Self { key, detail: clean(detail), software: clean(software), at }
    }

    /// Which workload, rung and device.
    pub fn key(&self) -> &CellKey {
        &self.key
    }

    /// What the driver said.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The version of the software that it happened to.
    pub fn software(&self) -> &str {
        &self.software
    }

    /// When it happened.
    pub fn at(&self) -> UnixSeconds {
        self.at
    }

    /// When it stops counting.
    pub fn until(&self) -> UnixSeconds {
        self.at.plus(UNSUPPORTED_LIFE_S)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Failures;
    use super::*;

    const NOW: UnixSeconds = UnixSeconds(1_760_000_000);

    #[test]
    fn it_counts_for_its_rung_device_and_software_until_it_is_old() {
        let key = |rung: &str, device: &str| CellKey::new("blur", rung, device);
        let mut failures = Failures::default();
        failures.remember_unsupported(UnsupportedCell::new(key("gpu", "card 580.1"), "no f64\n", "1.0", NOW));
        let cannot = |rung, device, now, software| failures.is_unsupported(&key(rung, device), now, software);
        assert!(cannot("gpu", "card 580.1", NOW.plus(UNSUPPORTED_LIFE_S - 1), "1.0"));
        assert!(!cannot("gpu", "card 580.1", NOW.plus(UNSUPPORTED_LIFE_S), "1.0"), "a mistake is not for ever");
        assert!(!cannot("gpu", "card 590.0", NOW, "1.0"), "another driver");
        assert!(!cannot("gpu", "card 580.1", NOW, "1.1"), "another version");
        assert!(!cannot("strip", "card 580.1", NOW, "1.0"));
        assert_eq!(failures.iter().count(), 0, "it is no shortage of memory");
        assert_eq!(failures.unsupported().map(UnsupportedCell::detail).collect::<Vec<_>>(), ["no f64 "]);
    }
}
