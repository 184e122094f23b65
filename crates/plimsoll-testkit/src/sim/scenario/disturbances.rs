//! What happens beside the work: other programs, leases, handles, a card that is pulled, the end.

use plimsoll_core::{Bytes, ContentKey, DeviceId, Moment, Nanos};

use super::Scenario;
use crate::sim::world::World;

impl Scenario {
    pub(super) fn disturb(&mut self, world: &mut World) {
        for device in 0..=self.gpus as u16 {
            if self.habits.others {
                self.other_programs(world, DeviceId(device));
            }
            if self.habits.faults && self.rng.chance(0.15) {
                let at = self.soon(400);
                world.lose_at(at, DeviceId(device));
            }
        }
        if self.habits.leases {
            self.leases(world);
        }
        if self.habits.pins {
            self.pins(world);
        }
        if self.rng.chance(0.04) {
            let at = self.soon(800);
            world.shut_down_at(at);
        }
    }

    fn soon(&mut self, millis: u64) -> Moment {
        Moment(Nanos::micros(self.rng.within(0, millis * 1_000)).0)
    }

    /// They take memory and give it back, also more than we leave them.
    fn other_programs(&mut self, world: &mut World, device: DeviceId) {
        let memory = world.devices()[device.index()].gpu.memory;
        for _ in 0..self.rng.below(5) {
            let at = self.soon(3_000);
            let share = [0.0, 0.0, 0.3, 0.6, 0.95][self.rng.below(5)];
            world.others_at(at, device, memory.share(share));
        }
    }

    fn leases(&mut self, world: &mut World) {
        for _ in 0..self.rng.within(1, 6) {
            let mut portions = Vec::new();
            for _ in 0..self.rng.within(1, 3) {
                let device = DeviceId(self.rng.below(self.gpus + 1) as u16);
                let memory = world.devices()[device.index()].gpu.memory;
                let share = self.rng.within(1, 130) as f64 / 100.0;
                portions.push((device, Bytes((memory.0 as f64 * share) as u64)));
            }
            let at = self.soon(600);
            let until = at + Nanos::millis(self.rng.within(1, 3_000));
            world.lease_at(at, until, portions);
        }
    }

    fn pins(&mut self, world: &mut World) {
        for _ in 0..self.rng.within(1, 40) {
            let content = ContentKey(u128::from(self.rng.within(0, 60)));
            let at = self.soon(500);
            let until = at + Nanos::millis(self.rng.within(1, 1_000));
            world.pin_at(at, until, content);
        }
    }
}
