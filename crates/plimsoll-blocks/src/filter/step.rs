//! The three steps on bytes: shuffle, bitshuffle and delta, forwards and back.
//! Invariant: undoing gives the same bytes for every length; what is left behind the last whole element stays as it is.

/// What an element of the data is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// One byte.
    U8,
    /// Two bytes, little-endian.
    U16,
    /// Four bytes, little-endian.
    U32,
    /// Eight bytes, little-endian.
    U64,
}

impl Element {
    /// Its bytes.
    pub const fn width(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
            Self::U64 => 8,
        }
    }
}

/// What a step does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// All first bytes of the elements, then all second ones, and so on.
    Shuffle,
    /// All lowest bits of the elements, then all second ones, and so on; for eight elements at a time.
    Bitshuffle,
    /// Each element less the one before it.
    Delta,
}

/// One step of a filter.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// To which elements.
    pub element: Element,
}

impl Step {
    pub(crate) fn apply(self, block: &[u8]) -> Vec<u8> {
        let mut out = block.to_vec();
        self.apply_to(block, &mut out);
        out
    }

    /// Writes the result over `out`, which is as long as the block and holds it.
    pub fn apply_to(self, block: &[u8], out: &mut [u8]) {
        let width = self.element.width();
        match self.kind {
            StepKind::Shuffle => by_width(width, Shuffle { block, out }),
            StepKind::Bitshuffle => bitshuffle(width, block, out),
            StepKind::Delta => by_width(width, Delta { block, out }),
        }
    }

    pub(crate) fn undo(self, block: &[u8]) -> Vec<u8> {
        let mut out = block.to_vec();
        self.undo_to(block, &mut out);
        out
    }

    /// Writes what it was over `out`, which is as long as the block and holds it.
    pub fn undo_to(self, block: &[u8], out: &mut [u8]) {
        let width = self.element.width();
        match self.kind {
            StepKind::Shuffle => by_width(width, Unshuffle { block, out }),
            StepKind::Bitshuffle => bitunshuffle(width, block, out),
            StepKind::Delta => by_width(width, Undelta { out }),
        }
    }
}

/// Something that is compiled for each width.
trait ForWidth {
    fn run<const W: usize>(self);
}

fn by_width(width: usize, work: impl ForWidth) {
    match width {
        1 => work.run::<1>(),
        2 => work.run::<2>(),
        4 => work.run::<4>(),
        _ => work.run::<8>(),
    }
}

/// Elements that are moved at once, so that what is read stays in the cache until all its bytes are written.
const TILE: usize = 1024;

struct Shuffle<'a> {
    block: &'a [u8],
    out: &'a mut [u8],
}

impl ForWidth for Shuffle<'_> {
    fn run<const W: usize>(self) {
        let count = self.block.len() / W;
        for (tile, elements) in self.block[..count * W].chunks(TILE * W).enumerate() {
            for byte in 0..W {
                let to = &mut self.out[byte * count + tile * TILE..][..elements.len() / W];
                let from = elements.as_chunks::<W>().0;
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from[byte]);
            }
        }
    }
}

struct Unshuffle<'a> {
    block: &'a [u8],
    out: &'a mut [u8],
}

impl ForWidth for Unshuffle<'_> {
    fn run<const W: usize>(self) {
        let count = self.block.len() / W;
        for (tile, elements) in self.out[..count * W].chunks_mut(TILE * W).enumerate() {
            for byte in 0..W {
                let from = &self.block[byte * count + tile * TILE..][..elements.len() / W];
                let to = elements.as_chunks_mut::<W>().0;
                to.iter_mut().zip(from).for_each(|(to, from)| to[byte] = *from);
            }
        }
    }
}

struct Delta<'a> {
    block: &'a [u8],
    out: &'a mut [u8],
}

impl ForWidth for Delta<'_> {
    fn run<const W: usize>(self) {
        let (from, to) = (self.block.as_chunks::<W>().0, self.out.as_chunks_mut::<W>().0);
        for (to, pair) in to.iter_mut().skip(1).zip(from.windows(2)) {
            *to = narrow(wide(pair[1]).wrapping_sub(wide(pair[0])));
        }
    }
}

struct Undelta<'a> {
    out: &'a mut [u8],
}

impl ForWidth for Undelta<'_> {
    fn run<const W: usize>(self) {
        let mut sum = 0_u64;
        for element in self.out.as_chunks_mut::<W>().0 {
            sum = sum.wrapping_add(wide(*element));
            *element = narrow(sum);
        }
    }
}

fn wide<const W: usize>(element: [u8; W]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..W].copy_from_slice(&element);
    u64::from_le_bytes(bytes)
}

fn narrow<const W: usize>(element: u64) -> [u8; W] {
    let mut bytes = [0; W];
    bytes.copy_from_slice(&element.to_le_bytes()[..W]);
    bytes
}

/// The bits of an eight by eight square, mirrored at its diagonal.
fn transpose(mut square: u64) -> u64 {
    let swap = |square: u64, by: u32, mask: u64| {
        let moved = (square ^ (square >> by)) & mask;
        square ^ moved ^ (moved << by)
    };
    square = swap(square, 7, 0x00aa_00aa_00aa_00aa);
    square = swap(square, 14, 0x0000_cccc_0000_cccc);
    swap(square, 28, 0x0000_0000_f0f0_f0f0)
}

/// Groups of eight elements, and so the bytes of a plane of bits.
fn planes(width: usize, block: &[u8]) -> usize {
    block.len() / width / 8
}

fn bitshuffle(width: usize, block: &[u8], out: &mut [u8]) {
    let plane = planes(width, block);
    for group in 0..plane {
        let elements = &block[group * 8 * width..][..8 * width];
        for byte in 0..width {
            let rows = std::array::from_fn(|row| elements[row * width + byte]);
            let bits = transpose(u64::from_le_bytes(rows)).to_le_bytes();
            for (bit, bits) in bits.into_iter().enumerate() {
                out[(byte * 8 + bit) * plane + group] = bits;
            }
        }
    }
}

fn bitunshuffle(width: usize, block: &[u8], out: &mut [u8]) {
    let plane = planes(width, block);
    for group in 0..plane {
        for byte in 0..width {
            let bits = std::array::from_fn(|bit| block[(byte * 8 + bit) * plane + group]);
            let rows = transpose(u64::from_le_bytes(bits)).to_le_bytes();
            for (row, element) in rows.into_iter().enumerate() {
                out[(group * 8 + row) * width + byte] = element;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ELEMENTS: [Element; 4] = [Element::U8, Element::U16, Element::U32, Element::U64];
    const KINDS: [StepKind; 3] = [StepKind::Shuffle, StepKind::Bitshuffle, StepKind::Delta];

    #[test]
    fn bits_go_where_the_definition_says() {
        let block: Vec<u8> = (0..64_u8).map(|n| n.wrapping_mul(37)).collect();
        let out = Step { kind: StepKind::Bitshuffle, element: Element::U16 }.apply(&block);
        for element in 0..32 {
            for bit in 0..16 {
                let was = block[element * 2 + bit / 8] >> (bit % 8) & 1;
                let is = out[bit * 4 + element / 8] >> (element % 8) & 1;
                assert_eq!(was, is, "bit {bit} of element {element}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_undone_is_what_it_was(block in proptest::collection::vec(any::<u8>(), 0..9_000)) {
            for element in ELEMENTS {
                for kind in KINDS {
                    let step = Step { kind, element };
                    prop_assert_eq!(&step.undo(&step.apply(&block)), &block, "{:?}", step);
                }
            }
        }
    }
}
