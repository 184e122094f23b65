//! Codes of eight bits to bit planes and back. The words of a level's planes lie side by side for each 32 weights, the most
//! significant first; bit i of a word belongs to weight i of the 32.

/// Eight bytes as a matrix of bits, transposed.
#[inline]
fn transposed(mut x: u64) -> u64 {
    let mut swap = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    x ^= swap ^ (swap << 7);
    swap = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    x ^= swap ^ (swap << 14);
    swap = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ swap ^ (swap << 28)
}

/// The eight bit planes of 32 codes, the most significant first.
#[inline]
pub(super) fn split(codes: &[u8; 32]) -> [u32; 8] {
    let mut words = [0_u32; 8];
    for (at, eight) in codes.as_chunks::<8>().0.iter().enumerate() {
        let bytes = transposed(u64::from_le_bytes(*eight)).to_le_bytes();
        for (plane, word) in words.iter_mut().enumerate() {
            *word |= u32::from(bytes[7 - plane]) << (8 * at);
        }
    }
    words
}

/// The codes of 32 weights from their first bit planes; bits of planes that are not there are zero.
#[inline]
pub(super) fn join(words: &[u32; 8]) -> [u8; 32] {
    let mut codes = [0; 32];
    for (at, eight) in codes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        for (plane, word) in words.iter().enumerate() {
            bytes[7 - plane] = (word >> (8 * at)) as u8;
        }
        *eight = transposed(u64::from_le_bytes(bytes)).to_le_bytes();
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_split_is_joined_again() {
        let codes: [u8; 32] = std::array::from_fn(|at| (at * 73 + 11) as u8);
        let words = split(&codes);
        assert_eq!(join(&words), codes);
        for (plane, word) in words.iter().enumerate() {
            for (at, code) in codes.iter().enumerate() {
                assert_eq!(word >> at & 1, u32::from(code >> (7 - plane) & 1));
            }
        }
    }
}
