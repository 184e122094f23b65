//! A stream of equal frames through the real core in virtual time, in an ordered window: a frame's place is free only
//! when it and all before it have ended. Simulated: devices take what they are said to take, and nothing else.
//! Never has more frames under way than the window that `plimsoll_core::window` gives from what was measured so far.

use std::ops::Range;

use plimsoll_core::balancer::Strategy;
use plimsoll_core::scheduler::Config;
use plimsoll_core::stats::DeviceReport;
use plimsoll_core::window::{StreamDevice, WindowLimits, window};
use plimsoll_core::{Bytes, DeviceId, DeviceKind, Footprint, Ladder, Nanos, Place, Rung, TaskSpec, WorkloadId};

use super::world::{Cost, VirtualGpu, World};

/// What a frame takes on a device of speed 1.
pub const FRAME: Nanos = Nanos::millis(40);
/// The bytes of a frame: 1080p, four bytes a pixel.
const FRAME_BYTES: Bytes = Bytes(1920 * 1080 * 4);
const LIMITS: WindowLimits = WindowLimits { frames: 256, bytes: Bytes::gib(2) };

/// A stream to play.
#[derive(Clone, Debug)]
pub struct Stream {
    /// How many frames.
    pub frames: usize,
    /// How they are shared out.
    pub strategy: Strategy,
    /// On what.
    pub devices: Vec<VirtualGpu>,
    /// This device is lost when this many frames have been delivered.
    pub lose: Option<(usize, DeviceId)>,
    /// This device has this speed while so many frames have been delivered.
    pub slow: Option<(Range<usize>, DeviceId, f64)>,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct Played {
    /// Frames done by each device.
    pub shares: Vec<usize>,
    /// Which device did each frame.
    pub done_by: Vec<DeviceId>,
    /// From the first frame in to the last one out.
    pub took: Nanos,
    /// The widest window that was asked for.
    pub window_max: usize,
    /// Every device's figures in the end.
    pub reports: Vec<DeviceReport>,
}

impl Stream {
    /// GPUs of these speeds with one slot each; the speed is also the weight.
    pub fn new(strategy: Strategy, frames: usize, speeds: &[f64]) -> Self {
        let device = |&speed: &f64| {
            let mut gpu = VirtualGpu::new(DeviceKind::Gpu, 1, speed, Bytes::gib(2));
            gpu.weight = Some(speed);
            gpu
        };
        Self { frames, strategy, devices: speeds.iter().map(device).collect(), lose: None, slow: None }
    }

    /// Plays it to the end.
    ///
    /// # Errors
    /// A broken invariant, a frame without a result, or a frame that ended more than once, in words.
    pub fn play(&self) -> Result<Played, String> {
        let config = Config { strategy: self.strategy, ..Config::default() };
        let mut world = World::new(config, self.devices.clone(), 5);
        let mut source = Source::new(&mut world);
        let (mut delivered, mut window_max) = (0, 0);
        loop {
            delivered += world.tasks()[delivered..].iter().take_while(|task| task.end.is_some()).count();
            if let Some((_, device)) = self.lose.filter(|(at, _)| delivered >= *at && !source.has_lost) {
                source.has_lost = true;
                world.lose_at(world.now(), device);
            }
            if let Some((while_delivered, device, slow)) = &self.slow {
                let usual = self.devices[device.index()].speed;
                world.set_speed(*device, if while_delivered.contains(&delivered) { *slow } else { usual });
            }
            let window = self.window(&mut world);
            window_max = window_max.max(window);
            source.feed(&mut world, self.frames.min(delivered + window));
            if !world.step()? {
                break;
            }
        }
        world.check_all_ended()?;
        self.judge(&mut world, window_max)
    }

    /// As the facade asks for it: from what each device has shown so far.
    fn window(&self, world: &mut World) -> usize {
        let now = world.now();
        let devices = self.devices.iter().zip(0..).map(|(gpu, at)| {
            let report = world.scheduler().report(now, DeviceId(at));
            StreamDevice { slots: gpu.slots, frame: report.p50 }
        });
        window(&devices.collect::<Vec<_>>(), FRAME_BYTES, LIMITS)
    }

    fn judge(&self, world: &mut World, window_max: usize) -> Result<Played, String> {
        let (mut shares, mut done_by) = (vec![0; self.devices.len()], Vec::new());
        for (frame, task) in world.tasks().iter().enumerate() {
            match &task.end {
                Some(Ok(device)) => {
                    shares[device.index()] += 1;
                    done_by.push(*device);
                }
                other => return Err(format!("frame {frame} ended as {other:?}")),
            }
        }
        let ids = (0..self.devices.len()).map(|at| DeviceId(at as u16));
        let now = world.now();
        let reports = ids.map(|device| world.scheduler().report(now, device)).collect();
        let took = world.makespan();
        Ok(Played { shares, done_by, took, window_max, reports })
    }
}

impl Played {
    /// Frames a second, as a multiple of what a device of speed 1 gives.
    pub fn speed(&self) -> f64 {
        let frames: usize = self.shares.iter().sum();
        frames as f64 * FRAME.0 as f64 / self.took.0.max(1) as f64
    }
}

/// Where the frames come from.
struct Source {
    workload: WorkloadId,
    ladder: Ladder,
    has_lost: bool,
}

impl Source {
    fn new(world: &mut World) -> Self {
        let workload = world.scheduler().register("frame");
        let footprint = Footprint { session: FRAME_BYTES, ..Footprint::task(FRAME_BYTES) };
        let ladder = Ladder::from(vec![Rung::new("gpu", Place::On(DeviceKind::Gpu), footprint)]);
        Self { workload, ladder, has_lost: false }
    }

    /// Hands in frames until this many have been.
    fn feed(&self, world: &mut World, until: usize) {
        while world.tasks().len() < until {
            let spec = TaskSpec::new(self.workload, self.ladder.clone(), FRAME_BYTES.0);
            let now = world.now();
            world.arrive(now, spec, Cost { gpu: FRAME, open: FRAME, ..Cost::default() }, Vec::new());
        }
    }
}
