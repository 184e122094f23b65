//! Memory under a limit. The C library keeps freed buffers of up to 32 MiB in each thread's heap, because new memory is slower:
//! a run with a limit of 64 MiB held 137. And each of these heaps takes 64 MiB of addresses, used or not: where those are limited
//! (`ulimit -v`), they were gone before any memory was short, and a few kilobytes could not be had.
//! Never changes what is allocated, only where from and what becomes of it; without a limit nothing is changed.

use crate::machine_args::MachineArgs;

/// Buffers of at least this many bytes go back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const GIVEN_BACK_FROM: libc::c_int = 1 << 20;

/// Call before the first thread starts.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library has no safe call for it")]
pub(crate) fn prepare(machine: &MachineArgs) {
    if machine.has_memory_limit() {
        // SAFETY: a setting of the allocator, before there is any other thread. It can be refused, and then nothing happened.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK_FROM) };
    }
    if addresses_are_limited() {
        // SAFETY: as above.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library has no safe call for it")]
fn addresses_are_limited() -> bool {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it writes into what it is given, which has the type that it wants.
    let said = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    said == 0 && limit.rlim_cur != libc::RLIM_INFINITY
}

/// Other allocators give large buffers back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn prepare(_: &MachineArgs) {}
