//! The line: the bytes of a device that may be promised, from what was read of its memory.
//! Never reads memory itself; the runtime hands in each reading.
//!
//! Our own use must not lower the line, because it is promised already. A device counts its buffers exactly. What host
//! code has on the heap nobody counts: there the process as a whole is measured, and [`OwnHeap`] tells what of it is
//! ours. Invariant: what counts as ours is never more than what is promised (or counted exactly), so that the line is
//! too high by at most what is promised and not really allocated.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// A device's memory as last read.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All the memory there is for anyone.
    pub capacity: Bytes,
    /// What is free now, counting every program.
    pub free: Bytes,
    /// What we allocated ourselves, as far as it is counted.
    pub ours: Bytes,
    /// What this process holds of it, whoever in it allocated it; `None` where all of ours is counted or nobody can tell.
    pub resident: Option<Bytes>,
}

/// Tells what our tasks have on the heap from what the program around them has, where only both together are measured.
///
/// What is resident while nothing is promised is the program's. What comes on top while something is promised counts as
/// ours, up to what is promised; the rest is the program's again. Memory that the allocator keeps after a task freed it
/// counts as the program's: the line is then too low, never too high.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnHeap {
    /// What was resident when nothing was promised, or the least since.
    program: Option<Bytes>,
}

impl OwnHeap {
    /// What of the memory is ours as the line is drawn: the exact count, or our part of what is resident. `promised` is
    /// what was promised while the reading was taken.
    pub fn ours(&mut self, memory: Memory, promised: Bytes) -> Bytes {
        let Some(resident) = memory.resident else { return memory.ours };
        let program = match self.program {
            Some(before) if promised > Bytes::ZERO => before.min(resident),
            _ => resident,
        };
        self.program = Some(program);
        memory.ours.max(promised.min(resident - program))
    }
}

/// How much of the memory that others leave us may be promised.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    /// The share of what others leave us, from 0 to 1.
    pub share: f64,
    /// Never promise more than this, whatever is free.
    pub limit: Option<Bytes>,
}

impl Default for Margin {
    /// 85 %: drivers fragment, allocators round up, and other programs grow between two readings.
    fn default() -> Self {
        Self { share: 0.85, limit: None }
    }
}

impl Margin {
    /// The highest that the line can ever be: what it would be if nobody else used the device.
    pub fn ceiling(self, memory: Memory) -> Bytes {
        self.line(Memory { free: memory.capacity, ..memory })
    }

    /// The line: capacity − what others use now, less the margin, under the limit.
    ///
    /// A limit is a size somebody chose on purpose, so the margin is not taken off it again.
    pub fn line(self, memory: Memory) -> Bytes {
        let left_to_us = (memory.free + memory.ours).min(memory.capacity);
        let line = left_to_us.share(self.share);
        self.limit.map_or(line, |limit| line.min(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_count_and_we_do_not_count_twice() {
        let margin = Margin { share: 0.5, limit: None };
        let memory = Memory { capacity: Bytes(100), free: Bytes(40), ours: Bytes(20), resident: None };
        assert_eq!(margin.line(memory), Bytes(30), "half of the 60 that others leave us");
        let after_we_grew = Memory { free: Bytes(10), ours: Bytes(50), ..memory };
        assert_eq!(margin.line(after_we_grew), Bytes(30), "our own growth does not move the line");
    }

    #[test]
    fn the_ceiling_is_the_line_of_a_device_that_nobody_else_uses() {
        let memory = Memory { capacity: Bytes(100), free: Bytes(10), ours: Bytes(5), resident: None };
        assert_eq!(Margin { share: 0.85, limit: None }.ceiling(memory), Bytes(85));
        assert_eq!(Margin { share: 0.85, limit: Some(Bytes(64)) }.ceiling(memory), Bytes(64));
    }

    #[test]
    fn a_limit_lowers_the_line_and_never_raises_it() {
        let memory = Memory { capacity: Bytes(100), free: Bytes(100), ..Memory::default() };
        assert_eq!(Margin { share: 0.85, limit: Some(Bytes(64)) }.line(memory), Bytes(64));
        assert_eq!(Margin { share: 0.85, limit: Some(Bytes(200)) }.line(memory), Bytes(85));
    }

    /// The line of a machine of 1000 whose process holds so much, other programs so much, and so much is promised.
    fn line(heap: &mut OwnHeap, resident: u64, others: u64, promised: u64) -> u64 {
        let (capacity, resident) = (Bytes(1000), Bytes(resident));
        let memory =
            Memory { capacity, free: capacity - resident - Bytes(others), ours: Bytes::ZERO, resident: Some(resident) };
        let ours = heap.ours(memory, Bytes(promised));
        Margin { share: 1.0, limit: None }.line(Memory { ours, ..memory }).0
    }

    #[test]
    fn what_our_tasks_have_on_the_heap_does_not_move_the_line() {
        let mut heap = OwnHeap::default();
        assert_eq!(line(&mut heap, 100, 0, 0), 900, "the program's own is not ours to promise");
        for used in [0, 150, 300] {
            assert_eq!(line(&mut heap, 100 + used, 0, 300), 900, "{used} of 300 used");
        }
        assert_eq!(line(&mut heap, 400, 200, 300), 700, "others still count");
        assert_eq!(line(&mut heap, 100, 0, 0), 900, "and all of it comes back");
    }

    #[test]
    fn what_the_program_takes_is_not_promised() {
        let mut heap = OwnHeap::default();
        line(&mut heap, 100, 0, 0);
        assert_eq!(line(&mut heap, 500, 0, 300), 800, "300 of the 400 that came on top may be ours, 100 cannot be");
        assert_eq!(line(&mut heap, 250, 0, 0), 750, "nothing is promised: all of it is the program's");
        assert_eq!(line(&mut heap, 350, 0, 300), 750);
        assert_eq!(line(&mut heap, 200, 0, 300), 800, "the program gave 50 back while ours ran");
        assert_eq!(line(&mut heap, 300, 0, 300), 800, "and that is where ours is counted from");
    }

    /// How far off it can be: by what is promised and not used, and never by more.
    #[test]
    fn the_line_is_never_too_high_by_more_than_is_promised_and_unused() {
        for (program, grown, used, promised) in
            [(100, 0, 0, 300), (100, 50, 100, 300), (0, 400, 300, 300), (100, 900, 0, 5), (200, 100, 50, 60)]
        {
            let mut heap = OwnHeap::default();
            line(&mut heap, program, 0, 0);
            let drawn = line(&mut heap, program + grown + used, 0, promised);
            let right = 1000_u64.saturating_sub(program + grown).max(used);
            assert!(drawn <= right + (promised - used), "{drawn} drawn, {right} would be right");
            assert!(drawn + used >= right.min(1000 - program - grown), "{drawn} drawn, {right} would be right");
        }
    }

    #[test]
    fn a_first_reading_that_comes_late_counts_all_as_the_programs() {
        let mut heap = OwnHeap::default();
        assert_eq!(line(&mut heap, 400, 0, 300), 600, "too low, and safe");
        assert_eq!(line(&mut heap, 100, 0, 300), 900, "right once it was seen smaller");
    }

    #[test]
    fn what_is_counted_exactly_stands() {
        let mut heap = OwnHeap::default();
        let memory = Memory { capacity: Bytes(100), free: Bytes(40), ours: Bytes(20), resident: None };
        assert_eq!(heap.ours(memory, Bytes(50)), Bytes(20));
        let memory = Memory { resident: Some(Bytes(30)), ..memory };
        assert_eq!(heap.ours(memory, Bytes(50)), Bytes(20), "the buffers counted are more than came on top");
    }
}
