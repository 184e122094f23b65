//! The largest piece of memory that a thread asked for.
#![expect(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Watching;

#[global_allocator]
static WATCHING: Watching = Watching;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(bytes: usize) {
    LARGEST.set(LARGEST.get().max(bytes));
}

// SAFETY: passes every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as our caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as our caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: as our caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as our caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The most bytes that this thread asked for at once while `work` ran.
pub(crate) fn largest_of(work: impl FnOnce()) -> usize {
    LARGEST.set(0);
    work();
    LARGEST.get()
}

#[test]
fn what_is_asked_for_is_seen() {
    let asked = largest_of(|| drop(Vec::<u8>::with_capacity(12_345)));
    assert_eq!(asked, 12_345);
}
