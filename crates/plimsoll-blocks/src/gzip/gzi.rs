//! The index that `bgzip` reads: where each member of a BGZF file begins, packed and unpacked.

/// Collects the places of members as they are written.
#[derive(Debug, Default)]
pub struct GziIndex {
    places: Vec<(u64, u64)>,
    packed: u64,
    raw: u64,
}

impl GziIndex {
    /// A member of so many bytes, which gives so many.
    pub fn add(&mut self, packed: u32, raw: u32) {
        if self.packed > 0 {
            self.places.push((self.packed, self.raw));
        }
        self.packed += u64::from(packed);
        self.raw += u64::from(raw);
    }

    /// The file's content: how many members there are but for the first, and where each of them begins.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.places.len() * 16);
        bytes.extend((self.places.len() as u64).to_le_bytes());
        for (packed, raw) in &self.places {
            bytes.extend(packed.to_le_bytes());
            bytes.extend(raw.to_le_bytes());
        }
        bytes
    }
}
