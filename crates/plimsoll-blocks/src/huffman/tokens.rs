//! Tokens: a byte as it is, or a match. And the tables of RFC 1951 that give their symbols and extra bits.

use crate::matches::parse::Sequence;

/// Symbols of literals and lengths, and of distances.
pub(crate) const LITERALS: usize = 286;
pub(crate) const DISTANCES: usize = 30;
/// The symbol that ends a block.
pub(crate) const END: usize = 256;
/// Set in a token that is a match: the length less 3 below it, the distance less 1 below that.
pub(crate) const MATCH: u32 = 1 << 31;

const LENGTH_BASES: [u16; 29] =
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_EXTRAS: [u8; 29] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/// A symbol, and the bits that come after it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) symbol: u32,
    pub(crate) extra: u32,
    pub(crate) extra_bits: u32,
}

/// The symbol of a length less 3.
pub(crate) fn length_symbol(length: u32) -> Symbol {
    let length = length + 3;
    let at = LENGTH_BASES.partition_point(|base| u32::from(*base) <= length) - 1;
    let extra = length - u32::from(LENGTH_BASES[at]);
    Symbol { symbol: 257 + at as u32, extra, extra_bits: u32::from(LENGTH_EXTRAS[at]) }
}

/// The symbol of a distance less 1.
pub(crate) fn distance_symbol(distance: u32) -> Symbol {
    if distance < 4 {
        return Symbol { symbol: distance, extra: 0, extra_bits: 0 };
    }
    // Each power of two is halved.
    let log = distance.ilog2();
    let extra_bits = log - 1;
    let symbol = 2 * log + (distance >> extra_bits & 1);
    Symbol { symbol, extra: distance & ((1 << extra_bits) - 1), extra_bits }
}

/// The tokens of a block's sequences.
pub(crate) fn tokens(block: &[u8], sequences: &[Sequence]) -> Vec<u32> {
    let mut tokens = Vec::with_capacity(sequences.len() * 4);
    let mut position = 0;
    for Sequence { literals, length, distance } in sequences {
        let end = position + *literals as usize;
        tokens.extend(block[position..end].iter().map(|byte| u32::from(*byte)));
        if *length > 0 {
            tokens.push(MATCH | (length - 3) << 16 | (distance - 1));
        }
        position = end + *length as usize;
    }
    tokens
}

/// A token's length less 3 and distance less 1, if it is a match.
pub(crate) fn as_match(token: u32) -> Option<(u32, u32)> {
    (token & MATCH != 0).then_some((token >> 16 & 0xff, token & 0xffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_those_of_the_rfc() {
        let symbol = |symbol, extra, extra_bits| Symbol { symbol, extra, extra_bits };
        assert_eq!(length_symbol(0), symbol(257, 0, 0));
        assert_eq!(
            (length_symbol(9), length_symbol(254), length_symbol(255)),
            (symbol(265, 1, 1), symbol(284, 30, 5), symbol(285, 0, 0))
        );
        assert_eq!(
            (distance_symbol(3), distance_symbol(4), distance_symbol(6)),
            (symbol(3, 0, 0), symbol(4, 0, 1), symbol(5, 0, 1))
        );
        assert_eq!(distance_symbol(32_767), symbol(29, 8_191, 13));
    }
}
