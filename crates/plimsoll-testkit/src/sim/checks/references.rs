//! References that nobody holds a handle to and no run uses are bounded on every device.

use plimsoll_core::residency::WINDOW;

use crate::sim::world::World;

pub(super) fn check(world: &World) -> Result<(), String> {
    for (at, state) in world.devices().iter().enumerate() {
        // Held by the scheduler alone.
        let idle = state.prepared.iter().filter(|prepared| prepared.bytes.strong_count() == 1);
        let unheld = idle.filter(|prepared| !world.is_pinned(prepared.key.content)).count();
        if unheld > WINDOW {
            return Err(format!("window: device {at} keeps {unheld} references that nobody holds, {WINDOW} allowed"));
        }
    }
    Ok(())
}
