//! A profile of an earlier life: of this box, or of one that has changed since.
//! Never trusts what it saves: it goes through the shape that lies on disk.

use plimsoll_core::UnixSeconds;
use plimsoll_core::profile::{Hardware, Profile};
use plimsoll_core::scheduler::Config;

use super::{Scenario, register};
use crate::sim::world::{VirtualGpu, World};

/// When the earlier life was.
const THEN: UnixSeconds = UnixSeconds(1_700_000_000);
/// Tasks of the earlier life.
const TASKS: usize = 20;

/// What an earlier life left on disk.
pub(super) struct Past {
    profile: Profile,
    names: Vec<String>,
    today: UnixSeconds,
}

impl Past {
    pub(super) fn load_into(self, world: &mut World) {
        world.load(self.today, self.profile, self.names);
    }
}

impl Scenario {
    /// Plays an earlier life and keeps what it learnt.
    pub(super) fn past(&mut self, config: &Config, devices: &[VirtualGpu]) -> Past {
        let mut devices = devices.to_vec();
        for device in &mut devices {
            if self.rng.chance(0.4) {
                device.speed = self.rng.within(1, 40) as f64;
            }
            if self.rng.chance(0.3) {
                device.faults.out_of_memory = 0.4;
            }
        }
        let names: Vec<String> = (0..devices.len()).map(|at| format!("device {at}")).collect();
        let mut world = World::new(config.clone(), devices, self.rng.roll());
        let workloads = register(&mut world);
        self.arrivals(&mut world, &workloads, TASKS);
        // What the earlier life did wrong is another seed's to find; this one wants what it learnt.
        let _ = world.run();
        let machine = Hardware { key: "a box".into(), devices: Vec::new() };
        let mut profile = Profile::new(machine, &config.software, THEN);
        let now = world.now();
        world.scheduler().save(now, THEN, &mut profile, &names);
        let today = THEN.plus([10, 3_000, 100_000, 1_000_000][self.rng.below(4)]);
        let record = profile.to_record();
        let (profile, _) = Profile::from_record(record, today).expect("it was just written");
        Past { profile, names, today }
    }
}
