//! Which matches are taken: at each position the match there, unless the one a byte later is clearly longer.
//! One piece of code for every device: it asks for matches and does not know who found them.
//! Invariant: every match that it takes was checked against the block, so what follows never copies wrong bytes.

use super::tables::same;
use super::{LENGTH_MIN, Match};

/// So many bytes as they are, then a match; of the last one, only the bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) literals: u32,
    pub(crate) length: u32,
    pub(crate) distance: u32,
}

/// A match was given that is none.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a match at {position} that is none")]
pub(crate) struct NoMatch {
    position: usize,
}

/// Takes matches through a block. `extend` goes on where the finder stopped comparing.
pub(crate) fn sequences(
    block: &[u8],
    extend: bool,
    mut match_at: impl FnMut(usize) -> Match,
) -> Result<Vec<Sequence>, NoMatch> {
    let mut taken = Vec::with_capacity(block.len() / 16 + 1);
    let (mut position, mut literals_from) = (0, 0);
    while position + (LENGTH_MIN as usize) <= block.len() {
        let mut found = match_at(position);
        if found.length == 0 {
            position += 1;
            continue;
        }
        // A longer match a byte later is worth a literal more.
        let later = match_at(position + 1);
        if later.length > found.length + 1 {
            (position, found) = (position + 1, later);
        }
        let from = position.checked_sub(found.distance as usize).ok_or(NoMatch { position })?;
        let limit = if extend { block.len() } else { found.length as usize };
        let length = same(block, from, position, limit);
        if length < found.length as usize || found.distance == 0 {
            return Err(NoMatch { position });
        }
        let literals = (position - literals_from) as u32;
        taken.push(Sequence { literals, length: length as u32, distance: found.distance });
        position += length;
        literals_from = position;
    }
    let literals = (block.len() - literals_from) as u32;
    taken.push(Sequence { literals, length: 0, distance: 0 });
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::super::tables::Tables;
    use super::super::{BLOCK_MAX, Reach};
    use super::*;

    fn expanded(block: &[u8], sequences: &[Sequence]) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::new();
        for Sequence { literals, length, distance } in sequences {
            out.extend(&block[out.len()..out.len() + *literals as usize]);
            for _ in 0..*length {
                out.push(out[out.len() - *distance as usize]);
            }
        }
        out
    }

    #[test]
    fn sequences_give_the_block_again() {
        let text: Vec<u8> = (0..60_000_u32).flat_map(|n| format!("{} bottles, ", n * n % 777).into_bytes()).collect();
        let mut tables = Tables::new();
        for length in [0, 1, 3, 4, 5, 300, 70_000, 200_000] {
            let block = &text[..length.min(BLOCK_MAX)];
            for (reach, extend) in [(Reach::BLOCK, true), (Reach::DEFLATE, false)] {
                let mut finder = tables.finder(block, reach);
                let taken = sequences(block, extend, |position| finder.at(position)).unwrap();
                assert!(expanded(block, &taken) == block, "{length} bytes");
                assert!(taken.iter().all(|taken| taken.distance <= reach.distance_max));
                assert!(length < 1_000 || taken.len() < length / 8, "{} of {length}", taken.len());
            }
        }
    }

    #[test]
    fn a_match_that_is_none_is_noticed() {
        let block = b"abcdefghijklmnop";
        let wrong = |position| Match { length: if position == 8 { 4 } else { 0 }, distance: 8 };
        assert_eq!(sequences(block, false, wrong), Err(NoMatch { position: 8 }));
    }
}
