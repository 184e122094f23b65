//! Large pages for large memory. New memory costs a fault for each page that is touched first: with pages of 4 KiB that takes
//! longer than filling them. Only ever asks: where the system has no large pages to give, everything is as without.

/// Below this the call costs about what it saves.
#[cfg(target_os = "linux")]
const LEAST: usize = 4 << 20;

/// Asks for large pages under memory that was reserved and not touched yet.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no safe call for it")]
pub fn ask_for<T>(memory: &mut Vec<T>) {
    use rustix::mm::{Advice, madvise};
    let spare = memory.spare_capacity_mut();
    let (start, bytes, page) = (spare.as_mut_ptr().cast::<u8>(), size_of_val(spare), rustix::param::page_size());
    if bytes < LEAST {
        return;
    }
    // Whole pages of it: who lies beside it on the first and the last keeps them as they are.
    let before = start.addr().next_multiple_of(page) - start.addr();
    let whole = (bytes - before) / page * page;
    // SAFETY: these pages are our own, and the advice changes no byte of them. It can be refused, and then nothing happened.
    let _ = unsafe { madvise(start.add(before).cast(), whole, Advice::LinuxHugepage) };
}

/// Elsewhere the system decides alone.
#[cfg(not(target_os = "linux"))]
pub fn ask_for<T>(_: &mut Vec<T>) {}
