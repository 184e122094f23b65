//! Where table, scales and planes lie in the bytes of a level. Everything is 32-bit words, so that a device reads the same
//! bytes that lie on disk.
//! Invariant: the size of a level follows from the number of weights and the bits alone.

use super::bits::Bits;
use super::groups::classes_of;
use crate::limits::GROUP;

/// The parts of one level of a piece, in words.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LevelLayout {
    /// Bits of a code that are known with this level.
    pub bits: u8,
    /// Bits that it adds: words for each 32 weights.
    pub added: u8,
    /// Classes of groups in its table.
    pub classes: usize,
    /// Words of the table, which comes first.
    pub table: usize,
    /// Words of the groups' scales behind it: in the coarsest level only.
    pub scales: usize,
    /// Words of the bit planes behind those.
    pub planes: usize,
}

impl LevelLayout {
    /// Of a level of a piece of so many weights.
    pub fn new(weights: usize, bits: &Bits, level: usize) -> Self {
        let (known, added, classes) = (bits.as_slice()[level], bits.added(level), classes_of(weights));
        let groups = weights.div_ceil(GROUP);
        Self {
            bits: known,
            added,
            classes,
            table: classes << known,
            scales: if level == 0 { groups.div_ceil(2) } else { 0 },
            planes: groups * (GROUP / 32) * usize::from(added),
        }
    }

    /// Bytes of the level.
    pub fn bytes(&self) -> u64 {
        4 * (self.table + self.scales + self.planes) as u64
    }

    /// Where its planes begin, in words.
    pub fn planes_begin(&self) -> usize {
        self.table + self.scales
    }
}
