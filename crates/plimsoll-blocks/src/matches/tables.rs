//! The definition of what is found, on the CPU. Looks only where the parse looks: what it never asks for is not compared.
//! Invariant: positions are asked for in rising order.

use super::{FIRST_BITS, LANE, LANE_BITS, LENGTH_MAX, LENGTH_MIN, Match, Reach, SEGMENT, WARM, hash};

/// Finds matches in one block.
pub(crate) struct Finder<'a> {
    block: &'a [u8],
    reach: Reach,
    first: &'a [u32],
    lane: &'a mut [u32],
    /// The lane that the table is of.
    lane_start: usize,
    /// Positions before this are in the table.
    inserted: usize,
}

/// Tables that are used again for the next block.
pub(crate) struct Tables {
    first: Vec<u32>,
    lane: Vec<u32>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self { first: vec![u32::MAX; 1 << FIRST_BITS], lane: vec![0; 1 << LANE_BITS] }
    }

    /// Ready to look into a block.
    pub(crate) fn finder<'a>(&'a mut self, block: &'a [u8], reach: Reach) -> Finder<'a> {
        fill_first(block, &mut self.first);
        self.lane.fill(0);
        Finder { block, reach, first: &self.first, lane: &mut self.lane, lane_start: 0, inserted: 0 }
    }
}

/// The first position of each hash.
pub(super) fn fill_first(block: &[u8], first: &mut [u32]) {
    first.fill(u32::MAX);
    for position in (0..positions(block)).rev() {
        first[hash(word(block, position), FIRST_BITS)] = position as u32;
    }
}

/// Positions at which a whole word begins.
pub(super) fn positions(block: &[u8]) -> usize {
    block.len().saturating_sub(3)
}

pub(super) fn word(block: &[u8], at: usize) -> u32 {
    block[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

impl Finder<'_> {
    /// The match at a position, if there is one worth taking.
    pub(crate) fn at(&mut self, position: usize) -> Match {
        if position >= positions(self.block) {
            return Match::default();
        }
        self.catch_up(position / SEGMENT * SEGMENT);
        let here = word(self.block, position);
        let last = self.lane[hash(here, LANE_BITS)].checked_sub(1);
        let first = Some(self.first[hash(here, FIRST_BITS)]).filter(|first| (*first as usize) < position);
        let run = position.checked_sub(1).map(|before| before as u32);
        best(self.block, position, [last, first, run], self.reach)
    }

    /// Puts everything before this segment into the table of its lane.
    fn catch_up(&mut self, segment: usize) {
        let lane = segment / LANE * LANE;
        if lane != self.lane_start {
            self.lane.fill(0);
            (self.lane_start, self.inserted) = (lane, lane.saturating_sub(WARM));
        }
        for position in self.inserted..segment {
            self.lane[hash(word(self.block, position), LANE_BITS)] = position as u32 + 1;
        }
        self.inserted = self.inserted.max(segment);
    }
}

/// The longest of the candidates, the nearest of those.
pub(super) fn best(block: &[u8], position: usize, candidates: [Option<u32>; 3], reach: Reach) -> Match {
    let mut best = Match::default();
    for candidate in candidates.into_iter().flatten() {
        let distance = position as u32 - candidate;
        if distance > reach.distance_max {
            continue;
        }
        let length = same(block, candidate as usize, position, LENGTH_MAX as usize) as u32;
        let is_better = length > best.length || (length == best.length && distance < best.distance);
        if length >= LENGTH_MIN && is_better {
            best = Match { length, distance };
        }
    }
    best
}

/// How many bytes are the same from two positions on, up to a limit and the end of the block.
pub(super) fn same(block: &[u8], from: usize, position: usize, limit: usize) -> usize {
    let limit = limit.min(block.len() - position);
    let (one, other) = (&block[from..from + limit], &block[position..position + limit]);
    let mut count = 0;
    while let (Some(a), Some(b)) = (one[count..].first_chunk::<8>(), other[count..].first_chunk::<8>()) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return count + (differ.trailing_zeros() / 8) as usize;
        }
        count += 8;
    }
    count + one[count..].iter().zip(&other[count..]).take_while(|(a, b)| a == b).count()
}
