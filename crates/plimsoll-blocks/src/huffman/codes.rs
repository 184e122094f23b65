//! Code lengths from counts, and the codes that follow from them.
//! Invariant: lengths fill the code space exactly, or there is one symbol of one bit; nobody has more than the limit.

/// The length of each symbol's code; 0 for symbols that do not occur.
pub(super) fn lengths(counts: &[u32], limit: u32) -> Vec<u8> {
    let mut lengths = vec![0_u8; counts.len()];
    let mut order: Vec<usize> = (0..counts.len()).filter(|symbol| counts[*symbol] > 0).collect();
    match order[..] {
        [] => return lengths,
        [only] => {
            lengths[only] = 1;
            return lengths;
        }
        _ => {}
    }
    // Equal counts in the order of their symbols: the same on every machine.
    order.sort_by_key(|symbol| (counts[*symbol], *symbol));
    let sorted: Vec<u64> = order.iter().map(|symbol| u64::from(counts[*symbol])).collect();
    for (symbol, depth) in order.iter().zip(package_merge(&sorted, limit)) {
        lengths[*symbol] = depth;
    }
    lengths
}

/// Depths in the best tree that is no deeper than the limit, for weights in rising order.
fn package_merge(weights: &[u64], limit: u32) -> Vec<u8> {
    // Of each package: its weight, and how many of the lightest leaves it holds on each level are counted below.
    let mut packages: Vec<Vec<(u64, bool)>> = Vec::new();
    let mut below: Vec<u64> = Vec::new();
    for _ in 0..limit {
        let mut row = Vec::with_capacity(weights.len() + below.len());
        let (mut leaves, mut pairs) = (weights.iter().peekable(), below.iter().peekable());
        loop {
            match (leaves.peek(), pairs.peek()) {
                (Some(leaf), Some(pair)) if leaf <= pair => row.push((*leaves.next().unwrap_or(&0), true)),
                (_, Some(_)) => row.push((*pairs.next().unwrap_or(&0), false)),
                (Some(_), None) => row.push((*leaves.next().unwrap_or(&0), true)),
                (None, None) => break,
            }
        }
        below = row.chunks_exact(2).map(|pair| pair[0].0 + pair[1].0).collect();
        packages.push(row);
    }
    // The lightest 2n - 2 of the last row, and what their pairs are made of.
    let mut depths = vec![0_u8; weights.len()];
    let mut wanted = 2 * weights.len() - 2;
    for row in packages.iter().rev() {
        let taken = &row[..wanted];
        let leaves = taken.iter().filter(|(_, is_leaf)| *is_leaf).count();
        depths[..leaves].iter_mut().for_each(|depth| *depth += 1);
        wanted = 2 * (taken.len() - leaves);
    }
    depths
}

/// The code of each symbol, its first bit lowest, as deflate writes it.
pub(super) fn codes(lengths: &[u8]) -> Vec<u32> {
    let mut counts = [0_u32; 16];
    lengths.iter().filter(|length| **length > 0).for_each(|length| counts[usize::from(*length)] += 1);
    let mut next = [0_u32; 17];
    for length in 1..16 {
        next[length + 1] = (next[length] + counts[length]) << 1;
    }
    let code = |length: &u8| {
        if *length == 0 {
            return 0;
        }
        let code = next[usize::from(*length)];
        next[usize::from(*length)] += 1;
        code.reverse_bits() >> (32 - u32::from(*length))
    };
    lengths.iter().map(code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(lengths: &[u8]) -> u32 {
        lengths.iter().filter(|length| **length > 0).map(|length| 1 << (15 - length)).sum()
    }

    #[test]
    fn lengths_fill_the_code_space_and_keep_the_limit() {
        let fibonacci: Vec<u32> =
            std::iter::successors(Some((1, 1)), |(a, b)| Some((*b, a + b))).map(|pair| pair.0).take(30).collect();
        for (counts, limit) in [(fibonacci, 15), (vec![1; 286], 15), (vec![5, 0, 0, 9, 1], 7), (vec![1, 1], 15)] {
            let lengths = lengths(&counts, limit);
            assert_eq!(space(&lengths), 1 << 15, "{lengths:?}");
            assert!(lengths.iter().all(|length| u32::from(*length) <= limit));
            assert!(counts.iter().zip(&lengths).all(|(count, length)| (*count > 0) == (*length > 0)));
        }
        assert_eq!(lengths(&[0, 7, 0], 15), [0, 1, 0]);
    }

    #[test]
    fn codes_are_those_of_the_rfc() {
        // The example of RFC 1951, 3.2.2, with its bits turned round.
        let codes = codes(&[3, 3, 3, 3, 3, 2, 4, 4]);
        assert_eq!(codes, [0b010, 0b110, 0b001, 0b101, 0b011, 0b00, 0b0111, 0b1111]);
    }
}
