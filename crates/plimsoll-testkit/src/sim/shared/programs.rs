//! Programs: what they ask for, how long they stay, and how they behave when asked to step down.
//! Never looks at the scheduler.

use plimsoll_core::rng::Rng;
use plimsoll_core::{
    Bytes, DeviceId, GrantId, GrantKind, GrantOwner, GrantRung, GrantSpec, Moment, Nanos, Priority, Quality,
};

pub(super) const DEVICES: [Bytes; 2] = [Bytes::gib(12), Bytes::gib(10)];
/// Who there is: two language models, three image generators, one that makes videos, two sweeps.
pub(super) const KINDS: [GrantKind; 8] = [
    GrantKind::Llm,
    GrantKind::Llm,
    GrantKind::Image,
    GrantKind::Image,
    GrantKind::Image,
    GrantKind::Video,
    GrantKind::Batch,
    GrantKind::Batch,
];

/// How a program behaves when it is asked to give something back.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Manners {
    /// Does so at once.
    Obeys,
    /// Does so when it is too late.
    Slow,
    /// Says so at once, and frees the bytes long after.
    Lies,
    /// Never answers.
    Mute,
}

/// A program's lease, from asking to having left.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) id: GrantId,
    pub(super) spec: GrantSpec,
    pub(super) asked_at: Moment,
    pub(super) manners: Manners,
    /// How long it is held.
    pub(super) stays: Nanos,
    pub(super) rung: Option<usize>,
    /// When it came to its rung.
    pub(super) rung_since: Moment,
    /// What it was last asked for, and whether its time is over.
    pub(super) recalled: Option<(Option<usize>, bool)>,
    pub(super) items_left: u32,
    pub(super) is_being_stopped: bool,
}

/// Bytes that a program said it had freed.
#[derive(Copy, Clone, Debug)]
pub(super) struct Lingering {
    pub(super) device: DeviceId,
    pub(super) bytes: Bytes,
    pub(super) frees_at: Moment,
}

/// A program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) kind: GrantKind,
    pub(super) lease: Option<Lease>,
    /// What it really uses of what it holds.
    pub(super) used: Vec<(DeviceId, Bytes)>,
    pub(super) lingering: Vec<Lingering>,
}

impl Program {
    pub(super) fn new(kind: GrantKind) -> Self {
        Self { kind, lease: None, used: Vec::new(), lingering: Vec::new() }
    }

    /// What it really has of a device.
    pub(super) fn really_has(&self, device: DeviceId) -> Bytes {
        let used = self.used.iter().filter(|(on, _)| *on == device).map(|(_, bytes)| *bytes);
        let lingering = self.lingering.iter().filter(|left| left.device == device).map(|left| left.bytes);
        used.chain(lingering).sum()
    }

    /// It uses what a rung gives it, and frees what it had more: at once, or at a moment that it does not tell.
    pub(super) fn use_rung(&mut self, portions: &[(DeviceId, Bytes)], frees_at: Option<Moment>) {
        for (device, had) in std::mem::take(&mut self.used) {
            let more = had - portions.iter().filter(|(on, _)| *on == device).map(|(_, bytes)| *bytes).sum();
            if let Some(frees_at) = frees_at.filter(|_| more > Bytes::ZERO) {
                self.lingering.push(Lingering { device, bytes: more, frees_at });
            }
        }
        self.used = portions.to_vec();
    }
}

/// What a program asks for next.
pub(super) fn wish(rng: &mut Rng, number: usize, kind: GrantKind) -> GrantSpec {
    let gib = |tenths: u64| Bytes(Bytes::gib(1).0 / 10 * tenths);
    // In tenths of a GiB.
    let sizes: &[(u64, f32)] = match kind {
        GrantKind::Llm => &[(80, 1.0), (55, 0.7), (35, 0.45), (5, 0.1)],
        GrantKind::Image => &[(60, 1.0), (40, 0.7), (25, 0.4)],
        GrantKind::Video => &[(90, 1.0), (60, 0.6), (40, 0.3)],
        _ => &[(50, 1.0), (30, 0.5), (10, 0.25)],
    };
    let wanted = rng.within(60, 101);
    let home = DeviceId(rng.below(DEVICES.len()) as u16);
    let goes_anywhere = rng.chance(0.4);
    let spans_both = rng.chance(0.1);
    let mut ladder = Vec::new();
    for &(tenths, quality) in sizes {
        let bytes = Bytes(gib(tenths).0 / 100 * wanted);
        let mut push = |portions: &[(DeviceId, Bytes)]| {
            let cost = Nanos::millis(if number.is_multiple_of(2) { 0 } else { 1_500 });
            ladder.push(GrantRung::new(portions).with_quality(Quality::new(quality)).with_switch_cost(cost));
        };
        match (spans_both, goes_anywhere) {
            (true, _) => push(&[(DeviceId(0), bytes.share(0.5)), (DeviceId(1), bytes.share(0.5))]),
            (false, true) => (0..DEVICES.len() as u16).for_each(|device| push(&[(DeviceId(device), bytes)])),
            (false, false) => push(&[(home, bytes)]),
        }
    }
    let spec = GrantSpec {
        kind,
        priority: priority(rng),
        may_rise: rng.chance(0.8),
        may_be_stopped: rng.chance(0.3),
        quality_target: Quality::new(if rng.chance(0.2) { 0.8 } else { 1.0 }),
        ..GrantSpec::new(GrantOwner::Program(number as u64), ladder)
    };
    let said = match rng.below(8) {
        0 => Some(Nanos::ZERO),
        1 => Some(Nanos::MAX),
        _ => None,
    };
    spec.with_patience(said)
}

/// Mostly in the middle.
pub(super) fn priority(rng: &mut Rng) -> Priority {
    Priority::of_level([0, 1, 1, 2, 2, 2, 3, 3, 4][rng.below(9)])
}

pub(super) fn manners(rng: &mut Rng) -> Manners {
    match rng.below(10) {
        0 => Manners::Mute,
        1 => Manners::Slow,
        2 | 3 => Manners::Lies,
        _ => Manners::Obeys,
    }
}

/// How long a lease is held that nobody asks for.
pub(super) fn stay(rng: &mut Rng, kind: GrantKind) -> Nanos {
    Nanos::millis(match kind {
        GrantKind::Llm => rng.within(20_000, 400_000),
        GrantKind::Video => rng.within(20_000, 120_000),
        _ => rng.within(2_000, 40_000),
    })
}
