//! Memory for whole frames and planes. What the system has not got is a fault like any other, not the end of the program.

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_vec;
use plimsoll_core::{Bytes, Fault, MemoryMoment};

/// So many zeros, straight from the system: they are not touched before they are written.
pub(super) fn zeros<T: Zeroable>(count: usize, moment: MemoryMoment) -> Result<Vec<T>, Fault> {
    let wanted = Bytes((count as u64).saturating_mul(size_of::<T>() as u64));
    try_zeroed_vec(count).map_err(|()| Fault::OutOfMemory { moment, wanted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_a_fault_that_says_how_much() {
        let asked = zeros::<f32>(usize::MAX / 8, MemoryMoment::Run);
        assert!(matches!(asked, Err(Fault::OutOfMemory { wanted, .. }) if wanted.0 > 1 << 60), "{asked:?}");
        assert_eq!(zeros::<u8>(3, MemoryMoment::Run).unwrap(), [0; 3]);
    }
}
