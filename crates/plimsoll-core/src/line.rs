//! The line: the bytes of a device that may be promised, from what was read of its memory.
//! Never reads memory itself; the runtime hands in each reading.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// A device's memory as last read.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All the memory there is for anyone.
    pub capacity: Bytes,
    /// What is free now, counting every program.
    pub free: Bytes,
    /// What we allocated ourselves.
    pub ours: Bytes,
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
        let memory = Memory { capacity: Bytes(100), free: Bytes(40), ours: Bytes(20) };
        assert_eq!(margin.line(memory), Bytes(30), "half of the 60 that others leave us");
        let after_we_grew = Memory { free: Bytes(10), ours: Bytes(50), ..memory };
        assert_eq!(margin.line(after_we_grew), Bytes(30), "our own growth does not move the line");
    }

    #[test]
    fn the_ceiling_is_the_line_of_a_device_that_nobody_else_uses() {
        let memory = Memory { capacity: Bytes(100), free: Bytes(10), ours: Bytes(5) };
        assert_eq!(Margin { share: 0.85, limit: None }.ceiling(memory), Bytes(85));
        assert_eq!(Margin { share: 0.85, limit: Some(Bytes(64)) }.ceiling(memory), Bytes(64));
    }

    #[test]
    fn a_limit_lowers_the_line_and_never_raises_it() {
        let memory = Memory { capacity: Bytes(100), free: Bytes(100), ours: Bytes::ZERO };
        assert_eq!(Margin { share: 0.85, limit: Some(Bytes(64)) }.line(memory), Bytes(64));
        assert_eq!(Margin { share: 0.85, limit: Some(Bytes(200)) }.line(memory), Bytes(85));
    }
}
