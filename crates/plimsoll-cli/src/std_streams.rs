//! Whether stdout was closed when the program started. Rust's runtime puts /dev/null in the place of a closed one before
//! `main`, so that later nobody can tell: what is written there vanishes without an error.
//! Never writes anything. Where that cannot be found out, it counts as open.

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether nobody gave us a stdout.
pub(crate) fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// The loader calls what stands in this section before anything else of the program runs.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the only code that runs before the runtime replaces what is closed")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_FIRST: extern "C" fn() = look;

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no name for a descriptor that may be closed")]
extern "C" fn look() {
    // SAFETY: it asks for the flags of a descriptor, which changes nothing; of a closed one it gets an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STDOUT_WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}
