//! The bits between two markers of a JPEG, and the Huffman codes in them. Never reads past a marker: what is missing is told.

/// The data ended before everything was there, or is not what it should be.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Short,
    Nonsense,
}

/// Bits of entropy-coded data, most significant first.
pub(super) struct Bits<'a> {
    rest: &'a [u8],
    held: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn of(rest: &'a [u8]) -> Self {
        Self { rest, held: 0, count: 0 }
    }

    /// Fills up as far as the next marker; a zero after 0xff only says that it is none.
    fn fill(&mut self) {
        while self.count <= 56 {
            let (byte, taken) = match self.rest {
                [0xff, 0x00, ..] => (0xff, 2),
                [0xff, ..] | [] => return,
                [byte, ..] => (*byte, 1),
            };
            self.held = self.held << 8 | u64::from(byte);
            self.count += 8;
            self.rest = &self.rest[taken..];
        }
    }

    /// The next few bits, at most 16, as a number.
    pub(super) fn take(&mut self, bits: u32) -> Result<u32, Fault> {
        if self.count < bits {
            self.fill();
            if self.count < bits {
                return Err(Fault::Short);
            }
        }
        self.count -= bits;
        Ok((self.held >> self.count) as u32 & ((1 << bits) - 1))
    }

    /// The symbol of the code that comes next.
    pub(super) fn symbol(&mut self, codes: &Codes) -> Result<u8, Fault> {
        if self.count < 16 {
            self.fill();
        }
        // Beyond the end there are no bits; ones stand for them, which begin no code of their own.
        let missing = 16_u32.saturating_sub(self.count);
        let next = if missing > 0 {
            (self.held << missing | ((1 << missing) - 1)) as u16
        } else {
            (self.held >> (self.count - 16)) as u16
        };
        let (symbol, length) = codes.find(next).ok_or(if missing > 0 { Fault::Short } else { Fault::Nonsense })?;
        if length > self.count {
            return Err(Fault::Short);
        }
        self.count -= length;
        Ok(symbol)
    }

    /// Drops what fills the last byte and passes the restart marker that has to stand here.
    pub(super) fn restart(&mut self) -> Result<(), Fault> {
        (self.held, self.count) = (0, 0);
        match self.rest {
            [0xff, 0xd0..=0xd7, after @ ..] => self.rest = after,
            _ => return Err(Fault::Short),
        }
        Ok(())
    }

    /// What follows the data: the next marker, and all behind it.
    pub(super) fn behind(self) -> &'a [u8] {
        let mut rest = self.rest;
        while let [first, after @ ..] = rest {
            match (first, after.first()) {
                (0xff, Some(0x00 | 0xd0..=0xd7)) => rest = &after[1..],
                (0xff, Some(_)) => return rest,
                _ => rest = after,
            }
        }
        rest
    }
}

/// A Huffman table: codes of 1 to 16 bits.
#[derive(Clone)]
pub(super) struct Codes {
    /// By the first eight bits: the symbol and the length of its code; a length of 0 for longer ones.
    short: [(u8, u8); 256],
    /// For each length the first value that is too large for it, in 16 bits.
    ends: [u32; 17],
    /// For each length what to add to a code for its place among the symbols.
    offsets: [i32; 17],
    symbols: Vec<u8>,
}

impl Codes {
    /// A table as a file has it: how many codes of each length, and their symbols.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Self {
        let mut codes = Self { short: [(0, 0); 256], ends: [0; 17], offsets: [0; 17], symbols: symbols.to_vec() };
        let (mut code, mut place) = (0_u32, 0_usize);
        for length in 1..=16_usize {
            codes.offsets[length] = place as i32 - code as i32;
            for _ in 0..counts[length - 1] {
                if length <= 8
                    && let Some(symbol) = symbols.get(place)
                {
                    let first = (code << (8 - length)) as usize;
                    let all = first..(first + (1 << (8 - length))).min(256);
                    codes.short.get_mut(all).into_iter().flatten().for_each(|known| *known = (*symbol, length as u8));
                }
                code += 1;
                place += 1;
            }
            codes.ends[length] = code << (16 - length);
            code <<= 1;
        }
        codes
    }

    /// The symbol of the code that these bits begin with, and the length of that code.
    fn find(&self, bits: u16) -> Option<(u8, u32)> {
        let (symbol, length) = self.short[usize::from(bits >> 8)];
        if length > 0 {
            return Some((symbol, length.into()));
        }
        let length = (9..=16).find(|&length| u32::from(bits) < self.ends[length])?;
        let place = (i32::from(bits) >> (16 - length)) + self.offsets[length];
        let symbol = self.symbols.get(usize::try_from(place).ok()?)?;
        Some((*symbol, length as u32))
    }
}
