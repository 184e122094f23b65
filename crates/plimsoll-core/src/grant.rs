//! Grants: promises of bytes that last, as their owners see them.
//! Never decides anything: who gets what, and who has to step down, is `scheduler::grants`.
//! Invariant: a [`GrantId`] is given out once, so an old one never means a new grant.

use std::fmt;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::names::{self, UnknownNameError};
use crate::sharing;
use crate::{Bytes, DeviceId, Moment, Nanos, Priority, Quality, SequenceId, ShortfallError};

/// A grant. Its number is never used again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct GrantId(pub u64);

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grant {}", self.0)
    }
}

/// Who holds a grant. It decides when bytes that were given back are free.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantOwner {
    /// Somebody in this process: what it gives back is free at once.
    Caller,
    /// A sequence, for the session that it holds: what it gives back is free at once.
    Sequence(SequenceId),
    /// Another program, by a number that its host knows it by: what it gives back is free when the driver says so.
    Program(u64),
}

impl GrantOwner {
    /// Whether the device's driver counts its bytes as somebody else's.
    pub fn is_outside(self) -> bool {
        matches!(self, Self::Program(_))
    }
}

impl fmt::Display for GrantOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller => write!(f, "a caller"),
            Self::Sequence(sequence) => write!(f, "sequence {}", sequence.0),
            Self::Program(program) => write!(f, "program {program}"),
        }
    }
}

/// What a grant's owner does with it: how far its quality may be lowered, how long it waits, who gives way to whom.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantKind {
    /// A language model that answers.
    Llm,
    /// Makes images.
    Image,
    /// Makes videos.
    Video,
    /// Works through many items of which none is waited for.
    Batch,
    /// Anything else.
    #[default]
    Other,
}

impl GrantKind {
    /// Every kind, and what it is called.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("llm", Self::Llm),
        ("image", Self::Image),
        ("video", Self::Video),
        ("batch", Self::Batch),
        ("other", Self::Other),
    ];
}

impl fmt::Display for GrantKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(names::name_of(&Self::NAMES, *self))
    }
}

impl std::str::FromStr for GrantKind {
    type Err = UnknownNameError;

    fn from_str(text: &str) -> Result<Self, UnknownNameError> {
        names::parse("kind", &Self::NAMES, text)
    }
}

/// Bytes on devices: one entry a device, in the order of devices, none of them empty.
pub type Portions = SmallVec<[(DeviceId, Bytes); 2]>;

/// One way to hold a grant: with these bytes, at this quality.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRung {
    portions: Portions,
    /// How good what its owner does on this rung is.
    pub quality: Quality,
    /// What it costs the owner to go to this rung from another one: unloading, loading, warming up.
    pub switch_cost: Nanos,
}

impl GrantRung {
    /// A full-quality rung that needs all of these bytes at once. Entries of one device add up.
    pub fn new(portions: &[(DeviceId, Bytes)]) -> Self {
        Self { portions: summed(portions), quality: Quality::FULL, switch_cost: Nanos::ZERO }
    }

    /// The same rung with another quality.
    #[must_use]
    pub fn with_quality(mut self, quality: Quality) -> Self {
        self.quality = quality;
        self
    }

    /// The same rung, to which it takes its owner so long to go.
    #[must_use]
    pub fn with_switch_cost(mut self, cost: Nanos) -> Self {
        self.switch_cost = cost;
        self
    }

    /// What it needs, in the order of devices.
    pub fn portions(&self) -> &[(DeviceId, Bytes)] {
        &self.portions
    }

    /// What it needs of one device.
    pub fn on(&self, device: DeviceId) -> Bytes {
        bytes_on(&self.portions, device)
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct GrantSpec {
    /// Who asks.
    pub owner: GrantOwner,
    /// The ways to hold it, best first; at most [`GrantSpec::RUNGS_MAX`].
    pub ladder: Vec<GrantRung>,
    /// How urgent it is. While it is held, only what is more urgent may make it step down.
    pub priority: Priority,
    /// When it is no longer wanted if it still waits.
    pub deadline: Option<Moment>,
    /// How long it waits; [`Nanos::ZERO`] takes it at once or not at all.
    pub patience: Nanos,
    /// Whether its owner wants to hear when a better rung fits again.
    pub may_rise: bool,
    /// Whether its owner stays on the devices that it is given first: its ladder then keeps only the rungs there, and rungs
    /// are counted among those from then on.
    pub stays: bool,
    /// What its owner does with it.
    pub kind: GrantKind,
    /// Whether it is never asked to step down or to leave, by anybody.
    pub pinned: bool,
    /// Whether its owner may be stopped if it neither steps down nor leaves when it has to.
    pub may_be_stopped: bool,
    /// The quality that its owner wants if there is memory for it.
    pub quality_target: Quality,
}

impl GrantSpec {
    /// Rungs in one ladder, as many as a task may have.
    pub const RUNGS_MAX: usize = crate::Ladder::LIMIT;

    /// A grant of normal priority that waits as long as it takes and does not ask to rise.
    pub fn new(owner: GrantOwner, ladder: Vec<GrantRung>) -> Self {
        Self {
            owner,
            ladder,
            priority: Priority::default(),
            deadline: None,
            patience: Nanos::MAX,
            may_rise: false,
            stays: false,
            kind: GrantKind::default(),
            pinned: false,
            may_be_stopped: false,
            quality_target: Quality::FULL,
        }
    }

    /// The same, for one that waits as long as its owner says, or as is usual for its kind and priority
    /// ([`sharing::patience`]).
    #[must_use]
    pub fn with_patience(mut self, said: Option<Nanos>) -> Self {
        self.patience = said.unwrap_or_else(|| sharing::patience(self.kind, self.priority));
        self
    }
}

/// Why a grant was not given, named by what its owner can do.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// Even the lowest rung is more than its devices will ever have for us. Ask for less, or raise the limit.
    #[error("{0}; ask for less, or raise the memory limit")]
    NeverFits(ShortfallError),
    /// It did not come in time. Wait longer, ask for less, or ask with a higher priority.
    #[error("{0}; wait longer, ask for less, or ask with a higher priority")]
    NotInTime(ShortfallError),
    /// There are as many grants as there may be. Return some.
    #[error("there are {limit} grants already; return some, then ask again")]
    TooMany {
        /// How many there may be.
        limit: usize,
    },
    /// A ladder has at least one rung and at most as many as are allowed.
    #[error("a grant's ladder has between 1 and {limit} rungs, this one has {rungs}")]
    BadLadder {
        /// How many it has.
        rungs: usize,
        /// How many it may have.
        limit: usize,
    },
    /// Its owner cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// Nothing is given out any more.
    #[error("the orchestrator is shutting down")]
    ShuttingDown,
}

/// Why a grant cannot go to another rung.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// It is not held: it still waits, or was returned.
    #[error("this grant is not held")]
    NotHeld,
    /// Its ladder has no such rung, or a recall names one that frees nothing.
    #[error("rung {rung} is no step for this grant")]
    NoStep {
        /// The rung that was named.
        rung: usize,
    },
    /// The rung needs bytes that were not reserved for it. Begin the step first.
    #[error("the rung needs bytes on {device} that were not reserved; begin the step first")]
    NotReserved {
        /// Where.
        device: DeviceId,
    },
    /// The bytes that the rung needs more are not to be had now.
    #[error("{0}")]
    DoesNotFit(ShortfallError),
    /// It is pinned: nobody may ask for it. Unpin it first.
    #[error("this grant is pinned; unpin it first")]
    Pinned,
}

/// Where a grant is in its life. One that is free is no longer known.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum GrantPhase {
    /// It is not given yet.
    Waiting,
    /// Its owner may use its bytes.
    Held,
    /// Its owner was asked to step down, or to leave, until a moment.
    Recalled {
        /// The rung to step down to; `None` to leave.
        to: Option<usize>,
        /// When it should have done so.
        until: Moment,
    },
    /// Its owner has left, but nobody knows yet that its bytes are free.
    Returning,
}

/// A grant as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantStatus {
    /// Who holds it, or wants to.
    pub owner: GrantOwner,
    /// Where it is in its life.
    pub phase: GrantPhase,
    /// The rung it holds, or held last; `None` while it waits.
    pub rung: Option<usize>,
    /// What it is promised now: its rung's bytes, and those of the rung that it is on its way to.
    pub promised: Portions,
    /// What its owner has given back and nobody knows to be free yet.
    pub returning: Portions,
    /// What its owner does with it.
    pub kind: GrantKind,
    /// How urgent it is.
    pub priority: Priority,
    /// Whether nobody may ask for it.
    pub pinned: bool,
    /// Whether the time of its recall is over.
    pub overdue: bool,
    /// Whether its owner is being stopped.
    pub stopping: bool,
    /// Items that its batch still has to do.
    pub items_left: u32,
}

/// Why a grant still waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// This one stands before it and waits for the same device.
    Behind(GrantId),
    /// Tasks hold what it needs: it comes back as they end.
    Runs,
    /// Owners were asked for it, or have given it back without anybody knowing it to be free.
    ComingBack,
    /// Grants hold it that need not step down for this one.
    Grants,
    /// Programs without a grant hold it.
    Strangers,
}

/// A grant that waits, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantWait {
    /// How many stand before it.
    pub before: usize,
    /// Why it is not given.
    pub reason: WaitReason,
    /// The device that it waits for.
    pub device: DeviceId,
    /// What it needs there at the least.
    pub wanted: Bytes,
    /// What is free there.
    pub free: Bytes,
    /// What programs without a grant hold there.
    pub strangers: Bytes,
    /// Who holds most there by a grant, at most [`GrantWait::HOLDERS_MAX`] of them, the most first.
    pub holders: Vec<(GrantId, Bytes)>,
    /// When the last of what was asked for there is due; `None` if nothing was, or if nobody can tell.
    pub expected: Option<Moment>,
    /// When it is refused if it still waits.
    pub until: Option<Moment>,
}

impl GrantWait {
    /// Holders that are named: enough to see whom to ask.
    pub const HOLDERS_MAX: usize = 8;
}

/// One entry a device, in the order of devices: two grants that want the same devices ask for them in the same order.
pub(crate) fn summed(portions: &[(DeviceId, Bytes)]) -> Portions {
    let mut sums = Portions::new();
    for &(device, bytes) in portions.iter().filter(|(_, bytes)| *bytes > Bytes::ZERO) {
        match sums.binary_search_by_key(&device, |(known, _)| *known) {
            Ok(at) => sums[at].1 += bytes,
            Err(at) => sums.insert(at, (device, bytes)),
        }
    }
    sums
}

/// What portions name of one device.
pub(crate) fn bytes_on(portions: &[(DeviceId, Bytes)], device: DeviceId) -> Bytes {
    portions.iter().filter(|(on, _)| *on == device).map(|(_, bytes)| *bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_have_one_entry_a_device_in_the_order_of_devices() {
        let of = |portions: &[(u16, u64)]| {
            let portions: Vec<_> = portions.iter().map(|&(device, bytes)| (DeviceId(device), Bytes(bytes))).collect();
            summed(&portions).into_iter().map(|(device, bytes)| (device.0, bytes.0)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[(2, 5), (0, 1), (2, 4), (1, 0)]), [(0, 1), (2, 9)]);
        assert_eq!(of(&[]), []);
    }
}
