//! A random box with random work and random faults, from a seed.
//! Never draws from anything but the seed's rng.
//!
//! | file | what it draws |
//! |---|---|
//! | `machine.rs` | the scheduler's limits, the devices and what goes wrong on them |
//! | `work.rs` | tasks: ladders, limits of their callers, costs |
//! | `arrivals.rs` | when tasks arrive, one by one, in sets, in sequences, in crowds |
//! | `disturbances.rs` | other programs, leases, handles, losses, the end |
//! | `grants.rs` | who holds memory for longer, and how he behaves when it is needed |
//! | `stages.rs` | items that go through stages, and the values they leave |
//! | `holds.rs` | sequences that own their session |
//! | `past.rs` | a profile of an earlier life, right or wrong |

mod arrivals;
mod disturbances;
mod grants;
mod holds;
mod machine;
mod past;
mod stages;
mod work;

use plimsoll_core::rng::Rng;
use plimsoll_core::{Nanos, WorkloadId};

use super::world::World;
use grants::Grants;
use holds::Holds;
use stages::Stages;

/// What a seed stands for.
pub struct Scenario {
    rng: Rng,
    gpus: usize,
    habits: Habits,
}

/// What a seed makes use of. Each is in a good share of the seeds, and absent in a good share, so that a rule is also
/// held where nothing else disturbs it.
#[derive(Copy, Clone, Debug)]
struct Habits {
    /// Devices fail; the CPU too if it says so.
    faults: bool,
    cpu_faults: bool,
    /// Runs take more or less than their footprint says.
    peaks: bool,
    /// Other programs take memory and give it back.
    others: bool,
    leases: bool,
    pins: bool,
    profile: bool,
    /// Callers name rungs, devices, or want no ladder.
    picky: bool,
    /// Callers accept a lower quality.
    lower_quality: bool,
    deadlines: bool,
    sets: bool,
    sequences: bool,
    /// Large tasks among very many small ones.
    crowd: bool,
    /// Nearly as many references as tasks.
    many_references: bool,
}

impl Habits {
    fn draw(rng: &mut Rng) -> Self {
        let faults = rng.chance(0.6);
        Self {
            faults,
            cpu_faults: faults && rng.chance(0.3),
            peaks: rng.chance(0.35),
            others: rng.chance(0.4),
            leases: rng.chance(0.35),
            pins: rng.chance(0.35),
            profile: rng.chance(0.3),
            picky: rng.chance(0.3),
            lower_quality: rng.chance(0.4),
            deadlines: rng.chance(0.4),
            sets: rng.chance(0.35),
            sequences: rng.chance(0.5),
            crowd: rng.chance(0.1),
            many_references: rng.chance(0.2),
        }
    }
}

impl Scenario {
    /// The scenario of this seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let gpus = rng.below(5);
        let habits = Habits::draw(&mut rng);
        Self { rng, gpus, habits }
    }

    /// The box with all its work, ready to run.
    pub fn build(&mut self, seed: u64) -> World {
        let mut config = self.config();
        let devices = self.devices();
        let mut grants = Grants::draw(seed, devices.len());
        if let Some(grants) = &mut grants {
            config = grants.hurry(config);
        }
        let mut stages = Stages::draw(seed, devices.len());
        let mut holds = Holds::draw(seed, devices.len());
        let past = if self.habits.profile { Some(self.past(&config, &devices)) } else { None };
        let mut world = World::new(config, devices, seed);
        world.check_everything();
        if let Some(past) = past {
            past.load_into(&mut world);
        }
        world.set_batches(0.2);
        world.set_planning(Nanos::millis(20));
        let workloads = register(&mut world);
        self.surprise(&mut world, &workloads);
        self.fill(&mut world, &workloads);
        self.disturb(&mut world);
        if let Some(grants) = &mut grants {
            grants.fill(&mut world);
        }
        if let Some(stages) = &mut stages {
            stages.fill(&mut world);
        }
        if let Some(holds) = &mut holds {
            holds.fill(&mut world);
        }
        world
    }
}

fn register(world: &mut World) -> Vec<WorkloadId> {
    ["score", "frame", "block"].map(|name| world.scheduler().register(name)).into()
}
