//! Widths: tells each device's `Width` what ended, and the rest of the scheduler when it changes.
//! Never decides how wide: `width.rs` does, from what it is told here.

use super::state::Run;
use super::{Host, Scheduler};
use crate::event::What;
use crate::width::SlotRun;
use crate::{DeviceId, Moment};

impl<H: Host> Scheduler<H> {
    /// A run that gave results for so many tasks has just left its slot. One that opened its session says nothing of the
    /// next.
    pub(super) fn measure_width(&mut self, now: Moment, run: &Run, done: u64, opened: bool) {
        if opened {
            return;
        }
        let on = &mut self.devices[run.device.index()];
        let before = on.width.slots();
        let saturated = !on.queue.is_empty() && on.running + 1 >= before;
        let units = run.units.saturating_mul(done);
        let ended = SlotRun { key: run.session.key, units, started_at: run.started_at, saturated };
        if on.width.settled(now, ended) {
            self.width_changed(now, run.device, before);
        }
    }

    /// The device is another one than before, or new: how wide it should be is asked again.
    pub(super) fn measure_width_anew(&mut self, now: Moment, device: DeviceId) {
        let width = &mut self.device_mut(device).width;
        let before = width.slots();
        width.look_again();
        if width.slots() != before {
            self.width_changed(now, device, before);
        }
    }

    fn width_changed(&mut self, now: Moment, device: DeviceId, before: usize) {
        let elapsed = now.since(self.since);
        let on = self.device_mut(device);
        on.stats.width_was(elapsed, before);
        let slots = on.width.slots();
        // Whoever settles a run or opens a device wakes its slots after this.
        self.note(now, || What::WidthChanged { device, slots: slots as u16 });
    }
}
