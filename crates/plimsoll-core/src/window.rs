//! How many frames of an ordered stream should be under way at once.
//! Never measures: whoever feeds the stream says how long a frame takes where, and asks again as that becomes known.

use crate::{Bytes, Nanos};

/// Frames that leave a device waiting for one of its slots: one runs, one is ready behind it.
const FRAMES_PER_SLOT: f64 = 2.0;

/// A device as a stream sees it.
#[derive(Copy, Clone, Debug)]
pub struct StreamDevice {
    /// Frames at once at the most.
    pub slots: usize,
    /// How long a frame is in a slot; `None` while that is not known.
    pub frame: Option<Nanos>,
}

/// What a stream may have under way, however many would help.
#[derive(Copy, Clone, Debug)]
pub struct WindowLimits {
    /// Frames.
    pub frames: usize,
    /// Bytes of all frames together, as they come in and go out.
    pub bytes: Bytes,
}

/// How many frames to have under way at once, if each place is free again only when its frame and all before it ended.
///
/// While the slowest device works on one frame, every other one must find enough to do: its slots times the skew, by how
/// much the slowest takes longer. Of all these each slot has one running and one ready. A device of which nothing is
/// known counts as being as slow as the slowest.
///
/// ```
/// use plimsoll_core::{Bytes, Nanos};
/// use plimsoll_core::window::{StreamDevice, WindowLimits, window};
///
/// let device = |ms| StreamDevice { slots: 1, frame: Some(Nanos::millis(ms)) };
/// let limits = WindowLimits { frames: 256, bytes: Bytes::gib(1) };
/// assert_eq!(window(&[device(40), device(20), device(10)], Bytes::mib(8), limits), 2 * (1 + 2 + 4));
/// assert_eq!(window(&[device(40), device(40)], Bytes::mib(8), limits), 4);
/// assert_eq!(window(&[device(40), device(1)], Bytes::mib(64), limits), 16, "the bytes are the limit");
/// ```
pub fn window(devices: &[StreamDevice], frame_bytes: Bytes, limits: WindowLimits) -> usize {
    let slowest = devices.iter().filter_map(|device| device.frame).max();
    let skew = |device: &StreamDevice| match (slowest, device.frame) {
        (Some(slowest), Some(frame)) => slowest.0 as f64 / frame.0.max(1) as f64,
        _ => 1.0,
    };
    let at_once: f64 = devices.iter().map(|device| device.slots as f64 * skew(device)).sum();
    let wanted = (FRAMES_PER_SLOT * at_once).ceil() as usize;
    let in_bytes = limits.bytes.0.checked_div(frame_bytes.0).map_or(usize::MAX, |frames| frames as usize);
    wanted.min(limits.frames).min(in_bytes).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WindowLimits = WindowLimits { frames: 256, bytes: Bytes::gib(1) };

    fn device(slots: usize, ms: Option<u64>) -> StreamDevice {
        StreamDevice { slots, frame: ms.map(Nanos::millis) }
    }

    #[test]
    fn before_anything_is_known_each_slot_has_one_running_and_one_ready() {
        assert_eq!(window(&[device(4, None), device(2, None)], Bytes::mib(1), LIMITS), 12);
        assert_eq!(window(&[device(1, Some(30)), device(3, None)], Bytes::mib(1), LIMITS), 8);
    }

    #[test]
    fn it_stays_within_its_limits_and_is_never_none() {
        assert_eq!(window(&[device(1, Some(1_000)), device(4, Some(1))], Bytes::mib(1), LIMITS), 256);
        assert_eq!(
            window(&[device(4, Some(1))], Bytes::gib(3), LIMITS),
            1,
            "one frame larger than all that is allowed"
        );
        assert_eq!(window(&[], Bytes::ZERO, LIMITS), 1);
    }
}
