//! What graphics drivers read from the environment when they are loaded, where their own defaults do not suit us.
//! Never overrides what the user has set. Invariant: runs before the first thread and before any driver is loaded.

use std::env;

use crate::machine_args::MachineArgs;

/// Mesa's layer that puts the desktop's card first asks the display server for it, and complains on stderr where there
/// is none. We order cards ourselves.
const NO_DEVICE_SELECT: &str = "NODEVICE_SELECT";

/// Who uses that layer on purpose sets one of these.
const DEVICE_CHOSEN: [&str; 2] = ["MESA_VK_DEVICE_SELECT", "DRI_PRIME"];

/// Threads of each connection to Mesa's software GPU. With one, its logical parts behave like cards of their own
/// instead of waiting for each other's threads.
const SOFTWARE_GPU_THREADS: &str = "LP_NUM_THREADS";

pub(crate) fn prepare(machine: &MachineArgs) {
    if DEVICE_CHOSEN.iter().all(|name| env::var_os(name).is_none()) {
        set_if_unset(NO_DEVICE_SELECT, "1");
    }
    if machine.divides_gpus() {
        set_if_unset(SOFTWARE_GPU_THREADS, "1");
    }
}

#[expect(unsafe_code, reason = "drivers read the environment of their own process; there is no other way to tell them")]
fn set_if_unset(name: &str, value: &str) {
    if env::var_os(name).is_none() {
        // SAFETY: main calls this before it starts any thread, so nothing reads the environment meanwhile.
        unsafe { env::set_var(name, value) };
    }
}
