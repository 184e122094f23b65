//! How many frames are under way at once: enough to keep every slot busy while results wait for their turn, and no more
//! bytes than a small machine can spare.

/// Frames under way for each slot: one that runs, one that waits for it, and as many finished ones as a device several
/// times slower than the others holds back.
const FRAMES_PER_SLOT: usize = 8;
/// Bytes of frames under way at most, as they came in and as they go out: an eighth of a small machine's memory.
const BYTES_MAX: usize = 512 << 20;
/// Frames of one run of neighbours, for each device that could work on another run meanwhile: with 16, at most a quarter
/// of the frames that lie at the seams of runs is prepared on two devices, for a chain that looks two frames around.
const RUN: usize = 16;

/// What decides how many frames are under way.
#[derive(Copy, Clone, Debug)]
pub(super) struct Load {
    pub(super) devices: usize,
    pub(super) slots: usize,
    /// Bytes of a frame as it comes in and as it goes out, together.
    pub(super) frame_bytes: usize,
    /// Frames before and after its own that a frame's result depends on.
    pub(super) around: usize,
}

impl Load {
    /// Frames under way at most. Never fewer than a frame waits for.
    pub(super) fn window(self) -> usize {
        let busy = match self.around {
            0 => self.slots * FRAMES_PER_SLOT,
            _ => (self.slots * FRAMES_PER_SLOT).max((self.devices + 1) * RUN),
        };
        busy.min(BYTES_MAX / self.frame_bytes.max(1)).max(self.around + 1).max(2)
    }

    /// Consecutive frames that stay on one device, if frames look at their neighbours: a window holds one run for each
    /// device and one more, so that a device that ends its run finds the next one waiting. One device has one endless
    /// run.
    pub(super) fn run(self) -> u64 {
        match self.devices {
            0 | 1 => u64::MAX,
            devices => (self.window() / (devices + 1)).max(1) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Load = Load { devices: 3, slots: 4, frame_bytes: 1000, around: 0 };

    #[test]
    fn slots_decide_for_small_frames_and_bytes_for_large_ones() {
        assert_eq!(SMALL.window(), 32);
        assert_eq!(Load { frame_bytes: 100 << 20, ..SMALL }.window(), 5);
        assert_eq!(Load { frame_bytes: 1 << 30, ..SMALL }.window(), 2);
    }

    #[test]
    fn a_frame_never_waits_for_one_that_has_no_room() {
        assert_eq!(Load { frame_bytes: 1 << 30, around: 3, ..SMALL }.window(), 4);
    }

    #[test]
    fn every_device_has_a_run_and_one_waits() {
        let in_time = Load { around: 2, ..SMALL };
        assert_eq!((in_time.window(), in_time.run()), (64, 16));
        assert_eq!(Load { devices: 1, ..in_time }.run(), u64::MAX);
    }
}
