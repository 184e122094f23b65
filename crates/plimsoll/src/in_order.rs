//! Results that came before their turn.
//! Invariant: what is taken out is in the order of the numbers, without a gap.

use std::collections::VecDeque;

/// Results by their numbers, from the next that is due.
#[derive(Debug)]
pub(crate) struct InOrder<T> {
    results: VecDeque<Option<T>>,
    next: u64,
}

impl<T> InOrder<T> {
    pub(crate) fn new() -> Self {
        Self { results: VecDeque::new(), next: 0 }
    }

    /// A result that was not taken out yet.
    pub(crate) fn put(&mut self, number: u64, result: T) {
        let at = (number - self.next) as usize;
        if self.results.len() <= at {
            self.results.resize_with(at + 1, || None);
        }
        self.results[at] = Some(result);
    }

    /// The next result, if it is there, with its number.
    pub(crate) fn take(&mut self) -> Option<(u64, T)> {
        let result = self.results.front_mut()?.take()?;
        self.results.pop_front();
        self.next += 1;
        Some((self.next - 1, result))
    }

    /// Results taken out so far.
    #[cfg(any(feature = "pack", feature = "array", test))]
    pub(crate) fn taken(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_out_by_their_numbers() {
        let mut order = InOrder::new();
        order.put(2, 'c');
        order.put(0, 'a');
        assert_eq!((order.take(), order.take()), (Some((0, 'a')), None));
        order.put(1, 'b');
        assert_eq!((order.take(), order.take(), order.take()), (Some((1, 'b')), Some((2, 'c')), None));
        #[cfg(feature = "pack")]
        assert_eq!(order.taken(), 3);
    }
}
