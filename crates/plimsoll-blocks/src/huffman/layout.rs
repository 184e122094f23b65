//! The stream but for its tokens: the header of each block, its end, and the bit at which its tokens begin.
//! All of it follows from how often each symbol occurs.

use super::GROUP;
use super::codes::{codes, lengths};
use super::tokens::{DISTANCES, END, LITERALS, as_match, distance_symbol, length_symbol};

/// A code and its length in one word.
fn entry(code: u32, length: u8) -> u32 {
    code | u32::from(length) << 16
}

/// Words of the table of one block: an entry for each literal, length and distance.
pub(crate) const TABLE: usize = LITERALS + DISTANCES;

/// What is known of a stream before its tokens are written.
pub(crate) struct Layout {
    /// Headers and ends of blocks in their places, zeros where tokens go. One word more than the stream has.
    pub(crate) words: Vec<u32>,
    /// The bit at which the tokens of each block begin.
    pub(crate) starts: Vec<u32>,
    /// The codes of each block, [`TABLE`] words for each.
    pub(crate) tables: Vec<u32>,
    pub(crate) bits: usize,
}

/// Order in which the lengths of the code for code lengths are written.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Lays out the stream of these tokens.
pub(crate) fn layout(tokens: &[u32]) -> Layout {
    let mut bits = Bits::default();
    let (mut starts, mut tables) = (Vec::new(), Vec::new());
    // Without a token there is still a block, to say so.
    let empty: [&[u32]; 1] = [&[]];
    let groups: Vec<&[u32]> = if tokens.is_empty() { empty.to_vec() } else { tokens.chunks(GROUP).collect() };
    for (at, group) in groups.iter().enumerate() {
        let (literals, distances, body) = chosen(group);
        bits.put(u32::from(at + 1 == groups.len()), 1);
        bits.put(2, 2);
        header(&mut bits, &literals, &distances);
        starts.push(bits.count as u32);
        bits.skip(body);
        let (literal_codes, distance_codes) = (codes(&literals), codes(&distances));
        bits.put(literal_codes[END], u32::from(literals[END]));
        tables.extend(literal_codes.iter().zip(&literals).map(|(code, length)| entry(*code, *length)));
        tables.extend(distance_codes.iter().zip(&distances).map(|(code, length)| entry(*code, *length)));
    }
    let count = bits.count;
    bits.words.resize(count / 32 + 2, 0);
    Layout { words: bits.words, starts, tables, bits: count }
}

/// Code lengths for a block's symbols, and the bits that its tokens take.
fn chosen(group: &[u32]) -> (Vec<u8>, Vec<u8>, usize) {
    let (mut literals, mut distances) = ([0_u32; LITERALS], [0_u32; DISTANCES]);
    literals[END] = 1;
    let mut extra = 0;
    for token in group {
        match as_match(*token) {
            None => literals[(token & 0xff) as usize] += 1,
            Some((length, distance)) => {
                let (length, distance) = (length_symbol(length), distance_symbol(distance));
                literals[length.symbol as usize] += 1;
                distances[distance.symbol as usize] += 1;
                extra += (length.extra_bits + distance.extra_bits) as usize;
            }
        }
    }
    let mut counted = literals;
    // Some readers do not take a code of a single symbol.
    counted[0] += u32::from(group.is_empty());
    let (literal_lengths, distance_lengths) = (lengths(&counted, 15), lengths(&distances, 15));
    let bits = |counts: &[u32], lengths: &[u8]| -> usize {
        counts.iter().zip(lengths).map(|(count, length)| *count as usize * usize::from(*length)).sum()
    };
    let body = bits(&literals, &literal_lengths) + bits(&distances, &distance_lengths) + extra;
    let body = body - usize::from(literal_lengths[END]);
    (literal_lengths, distance_lengths, body)
}

/// The code lengths of a block, themselves coded.
fn header(bits: &mut Bits, literals: &[u8], distances: &[u8]) {
    let used = |lengths: &[u8], least: usize| {
        lengths.iter().rposition(|length| *length > 0).map_or(least, |last| (last + 1).max(least))
    };
    let (literal_count, distance_count) = (used(literals, 257), used(distances, 1));
    let all: Vec<u8> = literals[..literal_count].iter().chain(&distances[..distance_count]).copied().collect();
    let runs = runs(&all);
    let mut counts = [0_u32; 19];
    runs.iter().for_each(|(symbol, ..)| counts[usize::from(*symbol)] += 1);
    let mut own = lengths(&counts, 7);
    if own.iter().filter(|length| **length > 0).count() == 1 {
        // Some readers do not take a code of a single symbol here.
        let other = usize::from(own[0] > 0);
        own[other] = 1;
    }
    let own_codes = codes(&own);
    let own_count = ORDER.iter().rposition(|symbol| own[*symbol] > 0).map_or(4, |last| (last + 1).max(4));
    bits.put(literal_count as u32 - 257, 5);
    bits.put(distance_count as u32 - 1, 5);
    bits.put(own_count as u32 - 4, 4);
    ORDER[..own_count].iter().for_each(|symbol| bits.put(u32::from(own[*symbol]), 3));
    for (symbol, extra, extra_bits) in runs {
        bits.put(own_codes[usize::from(symbol)], u32::from(own[usize::from(symbol)]));
        bits.put(extra, extra_bits);
    }
}

/// Code lengths with their repetitions counted: symbol, extra bits, how many.
fn runs(lengths: &[u8]) -> Vec<(u8, u32, u32)> {
    let mut runs = Vec::new();
    for run in lengths.chunk_by(|a, b| a == b) {
        let (length, mut left) = (run[0], run.len());
        if length > 0 {
            runs.push((length, 0, 0));
            left -= 1;
        }
        while left > 0 {
            let (symbol, least, most, extra_bits) = match (length, left) {
                (0, 11..) => (18, 11, 138, 7),
                (0, 3..) => (17, 3, 10, 3),
                (1.., 3..) => (16, 3, 6, 2),
                _ => {
                    runs.push((length, 0, 0));
                    left -= 1;
                    continue;
                }
            };
            let taken = left.min(most);
            runs.push((symbol, (taken - least) as u32, extra_bits));
            left -= taken;
        }
    }
    runs
}

/// Bits one after the other, the first lowest.
#[derive(Default)]
struct Bits {
    words: Vec<u32>,
    count: usize,
}

impl Bits {
    fn put(&mut self, value: u32, bits: u32) {
        self.words.resize((self.count + bits as usize) / 32 + 2, 0);
        put(&mut self.words, self.count, value, bits);
        self.count += bits as usize;
    }

    fn skip(&mut self, bits: usize) {
        self.count += bits;
    }
}

/// Writes at most 32 bits at a place that holds zeros.
pub(super) fn put(words: &mut [u32], at: usize, value: u32, bits: u32) {
    debug_assert!(bits == 32 || value >> bits == 0);
    let wide = u64::from(value) << (at % 32);
    words[at / 32] |= wide as u32;
    words[at / 32 + 1] |= (wide >> 32) as u32;
}
