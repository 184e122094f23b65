//! Faults on purpose, so that tests see a real device's paths for them. Software drivers do not enforce their memory,
//! so running out is played in our own allocator.
//! Never active unless a test asked for it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Faults that one device is to play.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct FaultInjection {
    out_of_memory: Countdown,
    wrong_answer: Countdown,
}

impl FaultInjection {
    /// The `n`-th allocation from now (1 is the next) is refused as out of memory.
    pub fn out_of_memory_in(&self, n: u64) {
        self.out_of_memory.0.store(n, Relaxed);
    }

    /// The `n`-th read from now (1 is the next) gives a wrong first word.
    pub fn wrong_answer_in(&self, n: u64) {
        self.wrong_answer.0.store(n, Relaxed);
    }

    pub(crate) fn allocation_fails(&self) -> bool {
        self.out_of_memory.tick()
    }

    pub(crate) fn tamper(&self, read: &mut [u8]) {
        if self.wrong_answer.tick()
            && let Some(byte) = read.first_mut()
        {
            *byte ^= 0x40;
        }
    }
}

/// Counts down to its event; 0 is none.
#[derive(Debug, Default)]
struct Countdown(AtomicU64);

impl Countdown {
    fn tick(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) == Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_event_and_no_other() {
        let inject = FaultInjection::default();
        assert!(!inject.allocation_fails());
        inject.out_of_memory_in(2);
        assert_eq!([(); 4].map(|()| inject.allocation_fails()), [false, true, false, false]);
    }
}
