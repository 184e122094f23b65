//! How many frames are under way at once, and how many consecutive ones stay together: from how long a frame takes on each
//! device, as far as that is known, and never more bytes than a small machine can spare.

use plimsoll_core::Bytes;
use plimsoll_core::window::{StreamDevice, WindowLimits, window};

/// Frames under way at most: devices of such different speed that this is too little gain nothing from each other.
const FRAMES_MAX: usize = 256;
/// Bytes of frames under way at most, as they came in and as they go out: an eighth of a small machine's memory.
const BYTES_MAX: Bytes = Bytes::mib(512);
/// Frames for each slot that may be done and wait, beside those that keep devices busy: who takes frames and who gives them
/// do so in bursts. Into an ffmpeg that shares the cores, 500 frames a second with this and 330 without.
const DONE_PER_SLOT: usize = 6;
/// Consecutive frames that stay on one device, if frames look at their neighbours. Those at the seams of runs are prepared
/// on two devices: with 16, at most a quarter of all, for a chain that looks two frames around.
const RUN: usize = 16;

/// What decides how many frames are under way.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) devices: Vec<StreamDevice>,
    /// Bytes of a frame as it comes in and as it goes out, together.
    pub(super) frame_bytes: usize,
    /// Frames before and after its own that a frame's result depends on.
    pub(super) around: usize,
    /// What a frame keeps on its device while others look at it, and what the smallest such device may hold.
    pub(super) kept: Option<(Bytes, Bytes)>,
}

impl Load {
    /// Frames under way at most. Never fewer than a frame waits for.
    pub(super) fn window(&self) -> usize {
        let frames = match self.around {
            0 => self.alone() + DONE_PER_SLOT * self.devices.iter().map(|device| device.slots).sum::<usize>(),
            _ => self.runs() * RUN,
        };
        let in_bytes = BYTES_MAX.0 as usize / self.frame_bytes.max(1);
        // The other half is for the work itself.
        let on_device = self.kept.map_or(usize::MAX, |(kept, line)| (line.0 / 2 / kept.0.max(1)) as usize);
        let in_bytes = in_bytes.min(on_device);
        frames.min(FRAMES_MAX.max((self.devices.len() + 1) * RUN)).min(in_bytes).max(self.around + 1).max(2)
    }

    /// Consecutive frames that stay on one device, if frames look at their neighbours: so many that a window holds a run
    /// for each device, as many more for the faster ones as they are faster, and one that waits. One device has one
    /// endless run.
    pub(super) fn run(&self) -> u64 {
        match self.devices.len() {
            0 | 1 => u64::MAX,
            _ => (self.window() / self.runs()).clamp(1, RUN) as u64,
        }
    }

    /// Frames that keep all devices busy if each is for itself.
    fn alone(&self) -> usize {
        window(&self.devices, Bytes::ZERO, WindowLimits { frames: FRAMES_MAX, bytes: Bytes::MAX })
    }

    /// Runs that keep all devices busy: half as many as frames, for frames of one run wait behind each other, and one
    /// that waits.
    fn runs(&self) -> usize {
        self.alone().div_ceil(2) + 1
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Nanos;

    use super::*;

    fn load(slots: &[usize]) -> Load {
        let devices = slots.iter().map(|slots| StreamDevice { slots: *slots, frame: None }).collect();
        Load { devices, frame_bytes: 1000, around: 0, kept: None }
    }

    #[test]
    fn slots_decide_for_small_frames_and_bytes_for_large_ones() {
        assert_eq!(load(&[2, 1, 1]).window(), 8 + 24);
        assert_eq!(Load { frame_bytes: 100 << 20, ..load(&[2, 1, 1]) }.window(), 5);
        assert_eq!(Load { frame_bytes: 1 << 30, ..load(&[2, 1, 1]) }.window(), 2);
    }

    #[test]
    fn a_device_that_is_slower_asks_for_more() {
        let mut uneven = load(&[1, 1]);
        uneven.devices[0].frame = Some(Nanos::millis(40));
        uneven.devices[1].frame = Some(Nanos::millis(10));
        assert_eq!(uneven.window(), 10 + 12);
        uneven.devices[1].frame = Some(Nanos::micros(10));
        assert_eq!(uneven.window(), FRAMES_MAX);
    }

    #[test]
    fn a_frame_never_waits_for_one_that_has_no_room() {
        assert_eq!(Load { frame_bytes: 1 << 30, around: 3, ..load(&[1]) }.window(), 4);
    }

    #[test]
    fn every_device_has_a_run_and_one_waits() {
        let in_time = Load { around: 2, ..load(&[1, 1, 1]) };
        assert_eq!((in_time.window(), in_time.run()), (64, 16));
        let large = Load { frame_bytes: 32 << 20, around: 2, ..load(&[1, 1, 1]) };
        assert_eq!((large.window(), large.run()), (16, 4));
        assert_eq!(Load { around: 2, ..load(&[4]) }.run(), u64::MAX);
        let tight = Load { kept: Some((Bytes::mib(4), Bytes::mib(64))), ..in_time };
        assert_eq!((tight.window(), tight.run()), (8, 2), "half of the smallest device");
    }
}
