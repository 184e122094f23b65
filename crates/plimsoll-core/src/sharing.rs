//! Sharing: how good what holders of grants do should be while there is less memory than they want, and how long who waits
//! is kept waiting. Formulas and tables.
//! Never looks at a scheduler: who is asked for what is `scheduler::grants`.
//! Invariant: more pressure never recommends a better quality, and none is recommended below its kind's minimum.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::grant::{GrantKind, GrantRung};
use crate::names::{self, UnknownNameError};
use crate::{Nanos, Priority, Quality};

/// How much of a quality full pressure takes away.
const TAKEN_BY_PRESSURE: f64 = 0.5;
/// Recommended qualities are multiples of this, so that 80 % is 80 % however it was computed.
const STEPS_OF_QUALITY: f64 = 1_000.0;

/// The share of a device's line that is promised, or that programs without a grant use: from 0 to 1.
#[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Pressure(f64);

impl Pressure {
    /// Nothing is promised or used.
    pub const NONE: Self = Self(0.0);
    /// Nothing is left.
    pub const FULL: Self = Self(1.0);

    /// Clamped to 0..=1; NaN counts as full.
    pub fn new(share: f64) -> Self {
        Self(if share.is_nan() { 1.0 } else { share.clamp(0.0, 1.0) })
    }

    /// The number from 0 to 1.
    pub fn value(self) -> f64 {
        self.0
    }

    /// How serious it is.
    pub fn level(self) -> PressureLevel {
        match self.0 {
            share if share >= 0.90 => PressureLevel::Critical,
            share if share >= 0.75 => PressureLevel::High,
            share if share >= 0.50 => PressureLevel::Medium,
            _ => PressureLevel::Low,
        }
    }
}

impl fmt::Display for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} %", self.0 * 100.0)
    }
}

/// How serious the pressure on a device is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PressureLevel {
    /// Below 50 %.
    Low,
    /// From 50 %.
    Medium,
    /// From 75 %.
    High,
    /// From 90 %.
    Critical,
}

impl fmt::Display for PressureLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        })
    }
}

/// Who gives way when there is less than all want.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharePolicy {
    /// Nobody's quality is lowered but by need of something more urgent: each is given the best rung that fits.
    #[default]
    Fixed,
    /// Everybody's falls with pressure, that of the less urgent further.
    Adaptive,
    /// Images and videos give way before language models do.
    LlmFirst,
    /// Language models give way before images and videos do.
    DiffusionFirst,
    /// Everybody's falls by the same share, however urgent, and holders step down in turns.
    Balanced,
}

impl SharePolicy {
    /// Every policy, and what it is called.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("fixed", Self::Fixed),
        ("adaptive", Self::Adaptive),
        ("llm-first", Self::LlmFirst),
        ("diffusion-first", Self::DiffusionFirst),
        ("balanced", Self::Balanced),
    ];

    /// The quality recommended for a grant of this kind, priority and target while its device is under this pressure:
    /// `target · (1 − 0.5 · pressure) · multiplier`, at least its kind's minimum and at most full. The pressure is what its
    /// kind feels of it by this policy.
    pub fn recommended(self, kind: GrantKind, priority: Priority, target: Quality, pressure: Pressure) -> Quality {
        let multiplier = match self {
            Self::Fixed => return Quality::FULL,
            Self::Balanced => 1.0,
            Self::Adaptive | Self::LlmFirst | Self::DiffusionFirst => multiplier(priority),
        };
        let kept = 1.0 - TAKEN_BY_PRESSURE * self.felt(kind, pressure).value();
        let quality = f64::from(target.value()) * kept * multiplier;
        let quality = (quality * STEPS_OF_QUALITY).round() / STEPS_OF_QUALITY;
        Quality::new(quality as f32).max(quality_min(kind))
    }

    /// What a kind feels of the pressure: one that others give way to only what is above 75 %, one that gives way twice as
    /// much.
    fn felt(self, kind: GrantKind, pressure: Pressure) -> Pressure {
        match self.place_in_giving_way(kind) {
            0 => Pressure::new(2.0 * pressure.value()),
            1 => pressure,
            _ => Pressure::new((pressure.value() - 0.75) / 0.25),
        }
    }

    /// Who of equally urgent holders is asked first: the lowest number.
    pub(crate) fn place_in_giving_way(self, kind: GrantKind) -> u8 {
        let (first, last) = (0, 2);
        match (self, kind) {
            (Self::LlmFirst, GrantKind::Llm) => last,
            (Self::LlmFirst, GrantKind::Image | GrantKind::Video) => first,
            (Self::DiffusionFirst, GrantKind::Image | GrantKind::Video) => last,
            (Self::DiffusionFirst, GrantKind::Llm) => first,
            _ => 1,
        }
    }
}

impl fmt::Display for SharePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(names::name_of(&Self::NAMES, *self))
    }
}

impl FromStr for SharePolicy {
    type Err = UnknownNameError;

    fn from_str(text: &str) -> Result<Self, UnknownNameError> {
        names::parse("policy", &Self::NAMES, text)
    }
}

/// How much better than the target something urgent may be, and how much worse something that can wait.
fn multiplier(priority: Priority) -> f64 {
    match priority {
        Priority::Background => 0.6,
        Priority::Low => 0.8,
        Priority::Normal => 1.0,
        Priority::High => 1.1,
        Priority::Critical => 1.2,
    }
}

/// The quality below which what a kind makes is of no use. The items of a batch are looked at later, like a video's
/// frames; what the rungs of others mean nobody knows here, so they have none.
pub fn quality_min(kind: GrantKind) -> Quality {
    Quality::new(match kind {
        GrantKind::Llm => 0.4,
        GrantKind::Image => 0.3,
        GrantKind::Video | GrantKind::Batch => 0.25,
        GrantKind::Other => 0.0,
    })
}

/// How long a grant waits whose owner does not say: a language model's 30 s, an image's 60 s, a video's 120 s, a batch's
/// like a video's, others' like an image's. Twice as long for each level below normal; three quarters of it for high,
/// half for critical: whoever is waited for has to hear soon that it will not be.
pub fn patience(kind: GrantKind, priority: Priority) -> Nanos {
    let usual = match kind {
        GrantKind::Llm => Nanos::seconds(30),
        GrantKind::Image | GrantKind::Other => Nanos::seconds(60),
        GrantKind::Video | GrantKind::Batch => Nanos::seconds(120),
    };
    match priority {
        Priority::Background => Nanos(usual.0 * 4),
        Priority::Low => Nanos(usual.0 * 2),
        Priority::Normal => usual,
        Priority::High => Nanos(usual.0 / 4 * 3),
        Priority::Critical => Nanos(usual.0 / 2),
    }
}

/// Which rungs of a ladder a grant should have, as bits, the lowest for the best rung: those of use (not below the minimum)
/// whose quality is not above what is recommended for them. If there are none, those of the lowest quality that is of use; and
/// if none is of use, all.
pub(crate) fn rungs_to_have(
    ladder: &[GrantRung],
    minimum: Quality,
    recommended: impl Fn(&GrantRung) -> Quality,
) -> RungSet {
    let is_useful = |rung: &&GrantRung| rung.quality >= minimum;
    let not_above = RungSet::of(ladder, |rung| is_useful(&rung) && rung.quality <= recommended(rung));
    if not_above != RungSet::NONE {
        return not_above;
    }
    match ladder.iter().filter(is_useful).map(|rung| rung.quality).min() {
        Some(lowest) => RungSet::of(ladder, |rung| rung.quality == lowest),
        None => RungSet::of(ladder, |_| true),
    }
}

/// Some rungs of a ladder.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct RungSet(u32);

impl RungSet {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ALL: Self = Self(u32::MAX);

    fn of(ladder: &[GrantRung], is_meant: impl Fn(&GrantRung) -> bool) -> Self {
        let bits = ladder.iter().enumerate().filter(|(_, rung)| is_meant(rung)).map(|(at, _)| 1 << at);
        Self(bits.fold(0, |bits, bit| bits | bit))
    }

    pub(crate) fn contains(self, rung: usize) -> bool {
        self.0 & (1 << rung) != 0
    }

    /// The best quality among them.
    pub(crate) fn best_quality(self, ladder: &[GrantRung]) -> Quality {
        let rungs = ladder.iter().enumerate().filter(|(at, _)| self.contains(*at));
        rungs.map(|(_, rung)| rung.quality).max().unwrap_or_default()
    }
}

/// How holders of grants share a device when there is less than they want.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Who gives way.
    pub policy: SharePolicy,
    /// How many levels more urgent somebody must be to make a holder leave, or go below the quality that is of use,
    /// rather than step down; at least 1.
    pub leave_levels: u8,
    /// How long a holder stays on a rung before it is asked to leave it for somebody fewer than
    /// [`Sharing::leave_levels`] above, or told to rise.
    pub residency_min: Nanos,
    /// How long a holder that stepped down is not told that it may rise: whoever made it step down may be back at once.
    pub rise_pause: Nanos,
    /// How long even somebody [`Sharing::leave_levels`] above waits for a batch that has items left.
    pub batch_wait_max: Nanos,
    /// Whether holders step down and leave when programs without a grant take so much that the line sinks below what is
    /// held.
    pub yields_to_strangers: bool,
    /// How long an owner has to step down.
    pub step_within: Nanos,
    /// How long an owner has to leave.
    pub leave_within: Nanos,
    /// How long an owner has to be gone that is stopped.
    pub stop_within: Nanos,
}

impl Default for Sharing {
    /// For grants of one process, whose owners know of each other.
    fn default() -> Self {
        Self {
            policy: SharePolicy::Fixed,
            leave_levels: 1,
            residency_min: Nanos::ZERO,
            rise_pause: Nanos::seconds(1),
            batch_wait_max: Nanos::seconds(60),
            yields_to_strangers: false,
            step_within: Nanos::seconds(10),
            leave_within: Nanos::seconds(10),
            stop_within: Nanos::seconds(10),
        }
    }
}

impl Sharing {
    /// For programs that know nothing of each other. Preemption needs two levels; what is moved, a model of gigabytes, is
    /// moved seldom.
    pub fn between_programs() -> Self {
        Self {
            policy: SharePolicy::Adaptive,
            leave_levels: 2,
            residency_min: Nanos::seconds(10),
            rise_pause: Nanos::seconds(5),
            yields_to_strangers: true,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, DeviceId};

    const PRIORITIES: [Priority; 5] =
        [Priority::Background, Priority::Low, Priority::Normal, Priority::High, Priority::Critical];

    fn recommended(policy: SharePolicy, kind: GrantKind, priority: Priority, pressure: f64) -> f32 {
        policy.recommended(kind, priority, Quality::FULL, Pressure::new(pressure)).value()
    }

    #[test]
    fn levels_begin_at_50_75_and_90_percent() {
        let level = |share| Pressure::new(share).level();
        assert_eq!([0.0, 0.499].map(level), [PressureLevel::Low; 2]);
        assert_eq!([0.5, 0.749].map(level), [PressureLevel::Medium; 2]);
        assert_eq!([0.75, 0.899].map(level), [PressureLevel::High; 2]);
        assert_eq!([0.9, 7.0, f64::NAN].map(level), [PressureLevel::Critical; 3]);
    }

    #[test]
    fn the_formula() {
        let adaptive = |priority, pressure| recommended(SharePolicy::Adaptive, GrantKind::Other, priority, pressure);
        assert_eq!(PRIORITIES.map(|priority| adaptive(priority, 0.0)), [0.6, 0.8, 1.0, 1.0, 1.0]);
        assert_eq!(PRIORITIES.map(|priority| adaptive(priority, 1.0)), [0.3, 0.4, 0.5, 0.55, 0.6]);
        assert_eq!(adaptive(Priority::Normal, 0.4), 0.8);
        let half =
            SharePolicy::Adaptive.recommended(GrantKind::Other, Priority::Normal, Quality::new(0.5), Pressure::FULL);
        assert_eq!(half, Quality::new(0.25));
    }

    #[test]
    fn no_kind_goes_below_its_minimum() {
        let lowest = |kind| recommended(SharePolicy::Adaptive, kind, Priority::Background, 1.0);
        assert_eq!(lowest(GrantKind::Llm), 0.4);
        assert_eq!([GrantKind::Image, GrantKind::Video, GrantKind::Batch, GrantKind::Other].map(lowest), [0.3; 4]);
        let lowest = |kind| {
            let target = Quality::new(0.1);
            SharePolicy::Adaptive.recommended(kind, Priority::Normal, target, Pressure::FULL).value()
        };
        let kinds = [GrantKind::Llm, GrantKind::Image, GrantKind::Video, GrantKind::Batch, GrantKind::Other];
        assert_eq!(kinds.map(lowest), [0.4, 0.3, 0.25, 0.25, 0.05]);
    }

    #[test]
    fn policies_shift_the_shortage_between_kinds() {
        let at = |policy, kind| recommended(policy, kind, Priority::Normal, 0.6);
        let all =
            |policy| [GrantKind::Llm, GrantKind::Image, GrantKind::Video, GrantKind::Batch].map(|k| at(policy, k));
        assert_eq!(all(SharePolicy::Fixed), [1.0; 4]);
        assert_eq!(all(SharePolicy::Adaptive), [0.7; 4]);
        assert_eq!(all(SharePolicy::LlmFirst), [1.0, 0.5, 0.5, 0.7]);
        assert_eq!(all(SharePolicy::DiffusionFirst), [0.5, 1.0, 1.0, 0.7]);
        assert_eq!(all(SharePolicy::Balanced), [0.7; 4]);
        let balanced = |priority| recommended(SharePolicy::Balanced, GrantKind::Other, priority, 0.6);
        assert_eq!(PRIORITIES.map(balanced), [0.7; 5], "the same share for everybody");
    }

    #[test]
    fn more_pressure_never_recommends_more() {
        for (_, policy) in SharePolicy::NAMES {
            for (_, kind) in GrantKind::NAMES {
                for priority in PRIORITIES {
                    let at = |hundredths: u32| recommended(policy, kind, priority, f64::from(hundredths) / 100.0);
                    assert!((0..100).all(|share| at(share) >= at(share + 1)), "{policy} {kind} {priority}");
                }
            }
        }
    }

    #[test]
    fn the_rung_to_have_is_the_best_not_above_and_of_use() {
        let best = |qualities: &[f32], recommended: f32| {
            let rung = |quality: &f32| GrantRung::new(&[(DeviceId(0), Bytes(1))]).with_quality(Quality::new(*quality));
            let ladder: Vec<_> = qualities.iter().map(rung).collect();
            rungs_to_have(&ladder, Quality::new(0.4), |_| Quality::new(recommended)).best_quality(&ladder).value()
        };
        assert_eq!(best(&[1.0, 0.8, 0.5], 0.8), 0.8);
        assert_eq!(best(&[1.0, 0.8, 0.5], 0.79), 0.5);
        assert_eq!(best(&[1.0, 0.8, 0.3], 0.6), 0.8, "the lowest of use: 0.3 is below the minimum");
        assert_eq!(best(&[1.0, 1.0], 0.5), 1.0, "a ladder of one quality has no other");
        assert_eq!(best(&[0.3, 0.2], 0.9), 0.3, "there is nothing else");
    }

    #[test]
    fn each_rung_counts_by_what_is_recommended_where_it_is() {
        let rung =
            |device, quality| GrantRung::new(&[(DeviceId(device), Bytes(1))]).with_quality(Quality::new(quality));
        let ladder = [rung(0, 1.0), rung(1, 1.0), rung(0, 0.5), rung(1, 0.5)];
        let crowded = |rung: &GrantRung| Quality::new(if rung.on(DeviceId(0)) > Bytes::ZERO { 0.6 } else { 1.0 });
        let rungs = rungs_to_have(&ladder, Quality::ANY, crowded);
        assert_eq!([0, 1, 2, 3].map(|rung| rungs.contains(rung)), [false, true, true, true]);
    }

    #[test]
    fn how_long_who_does_not_say_waits() {
        let seconds = |kind, priority| patience(kind, priority).0 as f64 / 1e9;
        let normal = |kind| seconds(kind, Priority::Normal);
        let kinds = [GrantKind::Llm, GrantKind::Image, GrantKind::Video, GrantKind::Batch, GrantKind::Other];
        assert_eq!(kinds.map(normal), [30.0, 60.0, 120.0, 120.0, 60.0]);
        assert_eq!(PRIORITIES.map(|priority| seconds(GrantKind::Llm, priority)), [120.0, 60.0, 30.0, 22.5, 15.0]);
    }
}
