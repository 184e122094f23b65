//! Rungs and ladders: the ways to do a task, best first.
//! Never knows what a rung computes; only where it runs, what it needs and how good it is.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Quality};

/// What kind of device something is or needs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The pool of processor cores.
    Cpu,
    /// A graphics processor.
    Gpu,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        })
    }
}

/// Where a rung can run.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On devices of this kind only. A CPU rung never reaches a GPU, so a fallback is really a fallback.
    On(DeviceKind),
    /// On any device.
    Anywhere,
}

impl Place {
    /// Whether a device of this kind will do.
    pub fn allows(self, kind: DeviceKind) -> bool {
        match self {
            Self::On(wanted) => wanted == kind,
            Self::Anywhere => true,
        }
    }
}

/// The bytes of a device that a rung needs, by how long they stay.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Held by the warm session, for as long as it is open.
    pub session: Bytes,
    /// Held while one task runs.
    pub task: Bytes,
    /// Held by each prepared reference, for as long as it is resident.
    pub reference: Bytes,
}

impl Footprint {
    /// A rung that needs bytes only while it runs.
    pub const fn task(bytes: Bytes) -> Self {
        Self { session: Bytes::ZERO, task: bytes, reference: Bytes::ZERO }
    }

    /// All that must be there at once for a task with this many references.
    pub fn total(self, references: usize) -> Bytes {
        self.session + self.task + Bytes(self.reference.0.saturating_mul(references as u64))
    }
}

/// One way to do a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// Its name in the profile, events and results, for example `gpu-strip`.
    pub name: &'static str,
    /// Where it can run.
    pub place: Place,
    /// What it needs there.
    pub footprint: Footprint,
    /// How good its answer is. Rungs of equal quality give the same answer within the workload's tolerance.
    pub quality: Quality,
    /// Bytes of its output that stay on the device as a value for later tasks to read; none if its output leaves.
    pub value: Bytes,
}

impl Rung {
    /// A full-quality rung.
    pub const fn new(name: &'static str, place: Place, footprint: Footprint) -> Self {
        Self { name, place, footprint, quality: Quality::FULL, value: Bytes::ZERO }
    }

    /// The same rung with an output of so many bytes that stays on the device.
    #[must_use]
    pub const fn with_value(mut self, bytes: Bytes) -> Self {
        self.value = bytes;
        self
    }

    /// All that must be there at once for a task with this many references.
    pub fn total(&self, references: usize) -> Bytes {
        self.footprint.total(references) + self.value
    }

    /// The same rung with another quality.
    #[must_use]
    pub const fn with_quality(mut self, quality: Quality) -> Self {
        self.quality = quality;
        self
    }
}

/// Whether two rung names are the same. They are literals, so the same name nearly always has the same address, and the
/// text need not be looked at.
pub(crate) fn same_name(a: &'static str, b: &'static str) -> bool {
    std::ptr::eq(a, b) || a == b
}

/// The rungs of a task, best first. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ladder(Arc<[Rung]>);

impl Ladder {
    /// Rungs in one ladder. More would mean a workload that enumerates sizes instead of choosing one.
    pub const LIMIT: usize = 16;

    /// A ladder of these rungs.
    ///
    /// # Panics
    /// If there is no rung or more than [`Ladder::LIMIT`]: a workload's mistake, found the first time it runs.
    pub fn new(rungs: impl Into<Arc<[Rung]>>) -> Self {
        let rungs = rungs.into();
        assert!(!rungs.is_empty(), "a ladder needs at least one rung");
        assert!(rungs.len() <= Self::LIMIT, "a ladder has at most {} rungs", Self::LIMIT);
        Self(rungs)
    }

    /// Where it lies: the same for clones, another for equal rungs listed anew.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// The best quality that any of its rungs gives.
    #[inline]
    pub(crate) fn best_quality(&self) -> Quality {
        self.0.iter().map(|rung| rung.quality).max().unwrap_or_default()
    }

    /// Whether its rungs do not all give the same quality.
    pub(crate) fn has_several_qualities(&self) -> bool {
        self.0.iter().any(|rung| rung.quality != self.0[0].quality)
    }

    /// The rungs, best first.
    pub fn rungs(&self) -> &[Rung] {
        &self.0
    }
}

impl From<Vec<Rung>> for Ladder {
    fn from(rungs: Vec<Rung>) -> Self {
        Self::new(rungs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(qualities: &[f32]) -> Ladder {
        let rung = |quality: &f32| {
            Rung::new("any", Place::Anywhere, Footprint::default()).with_quality(Quality::new(*quality))
        };
        Ladder::from(qualities.iter().map(rung).collect::<Vec<_>>())
    }

    #[test]
    fn what_a_task_leaves_on_the_device_must_fit_beside_what_it_needs() {
        let footprint = Footprint { session: Bytes(100), task: Bytes(10), reference: Bytes(1) };
        let rung = Rung::new("any", Place::Anywhere, footprint);
        assert_eq!((rung.total(0), rung.total(3)), (Bytes(110), Bytes(113)));
        assert_eq!(rung.with_value(Bytes(1_000)).total(3), Bytes(1_113));
    }

    #[test]
    fn a_ladder_gives_the_quality_of_its_best_rung() {
        assert_eq!(ladder(&[0.5, 0.7, 0.2]).best_quality(), Quality::new(0.7));
        assert!(ladder(&[0.5, 0.5, 0.2]).has_several_qualities() && !ladder(&[0.5, 0.5]).has_several_qualities());
    }

    #[test]
    fn a_ladder_is_known_again_by_where_it_lies() {
        let (one, other) = (ladder(&[1.0]), ladder(&[1.0]));
        assert_eq!(one.address(), one.clone().address());
        assert_ne!(one.address(), other.address());
    }
}
