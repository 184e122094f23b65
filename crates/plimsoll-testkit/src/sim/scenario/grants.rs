//! Grants: who asks for how much, how he behaves when asked to step down, and how honest he is about what he gave back.
//! Draws from numbers of its own, so that a seed's work and faults are the same with and without grants.

use plimsoll_core::rng::Rng;
use plimsoll_core::scheduler::Config;
use plimsoll_core::{
    Bytes, DeviceId, GrantKind, GrantOwner, GrantRung, GrantSpec, Moment, Nanos, Priority, Quality, SequenceId,
    SharePolicy, Sharing,
};

use crate::sim::world::{Wish, World};

const PRIORITIES: [Priority; 5] =
    [Priority::Background, Priority::Low, Priority::Normal, Priority::High, Priority::Critical];

/// The grants of a seed.
pub(super) struct Grants {
    rng: Rng,
    /// Kinds, pins, batches and policies come from numbers of their own, so that the rest of a seed stays what it was.
    habits: Rng,
    shares: bool,
    devices: usize,
}

impl Grants {
    /// Nearly half of the seeds have some.
    pub(super) fn draw(seed: u64, devices: usize) -> Option<Self> {
        let mut rng = Rng::new(seed ^ 0x6772_616e_7473);
        let mut habits = Rng::new(seed ^ 0x0073_6861_7269_6e67);
        let shares = habits.chance(0.6);
        rng.chance(0.45).then_some(Self { rng, habits, shares, devices })
    }

    /// Times that are over within a seed.
    pub(super) fn hurry(&mut self, config: Config) -> Config {
        let recall_within = Nanos::millis(self.rng.within(5, 1_000));
        let return_wait_max = Nanos::millis(self.rng.within(250, 2_500));
        let sharing = Sharing { step_within: recall_within, leave_within: recall_within, ..self.sharing() };
        Config { sharing, return_wait_max, ..config }
    }

    fn sharing(&mut self) -> Sharing {
        let rng = &mut self.habits;
        if !self.shares {
            return Sharing::default();
        }
        Sharing {
            policy: SharePolicy::NAMES[rng.below(SharePolicy::NAMES.len())].1,
            leave_levels: rng.within(1, 4) as u8,
            residency_min: Nanos::millis(rng.within(0, 500)),
            rise_pause: Nanos::millis(rng.within(1, 1_500)),
            batch_wait_max: Nanos::millis(rng.within(1, 1_500)),
            stop_within: Nanos::millis(rng.within(1, 500)),
            yields_to_strangers: rng.chance(0.5),
            ..Sharing::default()
        }
    }

    pub(super) fn fill(&mut self, world: &mut World) {
        for _ in 0..self.rng.within(1, 14) {
            let wish = self.wish(world);
            let wish = if self.shares { self.as_one_of_many(wish) } else { wish };
            world.wish_for(wish);
        }
    }

    /// Gives a wish a kind, and what comes with sharing a machine.
    fn as_one_of_many(&mut self, mut wish: Wish) -> Wish {
        let rng = &mut self.habits;
        let spec = &mut wish.spec;
        spec.kind = GrantKind::NAMES[rng.below(GrantKind::NAMES.len())].1;
        spec.pinned = rng.chance(0.1);
        spec.may_be_stopped = rng.chance(0.3);
        spec.quality_target = Quality::new(if rng.chance(0.2) { 0.7 } else { 1.0 });
        if rng.chance(0.3) {
            spec.ladder.iter_mut().for_each(|rung| rung.switch_cost = Nanos::millis(rng.within(0, 300)));
        }
        wish.batch = rng.chance(0.2).then(|| (rng.within(1, 20) as u32, Nanos::millis(rng.within(1, 2_000))));
        wish.changes_to = rng.chance(0.2).then(|| {
            let at = wish.asks_at + Nanos::millis(rng.within(1, 1_500));
            (at, PRIORITIES[rng.below(PRIORITIES.len())])
        });
        wish
    }

    fn wish(&mut self, world: &World) -> Wish {
        let asks_at = Moment(Nanos::micros(self.rng.within(0, 800_000)).0);
        let leaves_at = asks_at + Nanos::millis(self.rng.within(1, 4_000));
        let spec = self.spec(world, asks_at);
        let recalled_at = self.rng.chance(0.15).then(|| {
            let to = self.rng.below(spec.ladder.len() + 1);
            (asks_at + Nanos::millis(self.rng.within(1, 1_500)), Some(to).filter(|to| *to < spec.ladder.len()))
        });
        Wish {
            uses: [1.0, 1.0, 0.5, 0.0][self.rng.below(4)],
            answers_after: self.answer(),
            hesitates: self.rng.chance(0.3),
            leaves_when_overdue: self.rng.chance(0.5),
            frees_after: self.honesty(),
            recalled_at,
            ..Wish::new(spec, asks_at, leaves_at)
        }
    }

    /// Soon, late, or never.
    fn answer(&mut self) -> Option<Nanos> {
        match self.rng.below(6) {
            0 => None,
            1 => Some(Nanos::millis(self.rng.within(500, 3_000))),
            _ => Some(Nanos::micros(self.rng.within(0, 50_000))),
        }
    }

    /// At once, a little later than it says, or so late that nobody waits for it.
    fn honesty(&mut self) -> Nanos {
        match self.rng.below(5) {
            0 => Nanos::ZERO,
            1 => Nanos::millis(self.rng.within(2_000, 6_000)),
            _ => Nanos::micros(self.rng.within(1, 400_000)),
        }
    }

    fn spec(&mut self, world: &World, asks_at: Moment) -> GrantSpec {
        let owner = match self.rng.below(5) {
            0 => GrantOwner::Sequence(SequenceId(self.rng.within(0, 4))),
            1 | 2 => GrantOwner::Program(self.rng.within(1, 9)),
            _ => GrantOwner::Caller,
        };
        let deadline = self.rng.chance(0.2).then(|| asks_at + Nanos::millis(self.rng.within(1, 2_000)));
        let patience = match self.rng.below(4) {
            0 => Nanos::ZERO,
            1 => Nanos::millis(self.rng.within(1, 2_000)),
            _ => Nanos::MAX,
        };
        let priority = PRIORITIES[self.rng.below(PRIORITIES.len())];
        let may_rise = self.rng.chance(0.5);
        GrantSpec { priority, deadline, patience, may_rise, ..GrantSpec::new(owner, self.ladder(world)) }
    }

    /// Fewer and fewer bytes on the same devices; sometimes the last rung is on another.
    fn ladder(&mut self, world: &World) -> Vec<GrantRung> {
        let mut devices: Vec<DeviceId> = Vec::new();
        for _ in 0..self.rng.within(1, 4) {
            let device = DeviceId(self.rng.below(self.devices) as u16);
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        let mut share = self.rng.within(5, 115) as f64 / 100.0;
        let mut ladder = Vec::new();
        for below in 0..self.rng.within(1, 5) {
            if below > 0 && self.rng.chance(0.2) {
                devices = vec![DeviceId(self.rng.below(self.devices) as u16)];
            }
            let quality = Quality::new(1.0 - 0.2 * below as f32);
            ladder.push(self.rung(world, &devices, share).with_quality(quality));
            share *= self.rng.within(20, 95) as f64 / 100.0;
        }
        ladder
    }

    fn rung(&mut self, world: &World, devices: &[DeviceId], share: f64) -> GrantRung {
        let portion = |device: &DeviceId| {
            let memory = world.devices()[device.index()].gpu.memory;
            (*device, Bytes((memory.0 as f64 * share) as u64))
        };
        GrantRung::new(&devices.iter().map(portion).collect::<Vec<_>>())
    }
}
