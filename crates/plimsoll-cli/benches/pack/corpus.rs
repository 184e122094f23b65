//! Bytes to pack, made up from fixed seeds: text, machine code, numbers, noise and repetition.

/// A kind of data.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    make: fn(&mut Dice, &mut Vec<u8>),
}

pub(crate) const KINDS: [Kind; 5] = [
    Kind { name: "text", make: text },
    Kind { name: "binary", make: binary },
    Kind { name: "numeric", make: numeric },
    Kind { name: "noise", make: |dice, out| out.extend(dice.roll().to_le_bytes()) },
    Kind {
        name: "repetitive",
        make: |dice, out| {
            out.extend(format!("{{\"sensor\":17,\"status\":\"ok\",\"value\":{}}}\n", dice.roll() % 3).bytes())
        },
    },
];

impl Kind {
    /// So many bytes of it.
    pub(crate) fn bytes(&self, size: usize) -> Vec<u8> {
        if self.name == "binary"
            && let Some(bytes) = own_binary(size)
        {
            return bytes;
        }
        let (mut dice, mut bytes) = (Dice(0x9e37_79b9_7f4a_7c15), Vec::with_capacity(size + 256));
        while bytes.len() < size {
            (self.make)(&mut dice, &mut bytes);
        }
        bytes.truncate(size);
        bytes
    }
}

/// Machine code: the program under test, as often as needed, each time another part first. It is larger than any window
/// that is used here, so that no side finds the same part twice.
fn own_binary(size: usize) -> Option<Vec<u8>> {
    let code = std::fs::read(env!("CARGO_BIN_EXE_plimsoll")).ok()?;
    let parts = size.div_ceil(code.len().max(1)).max(1);
    let turned = (0..parts).flat_map(|part| {
        let at = part * 4_099 % code.len();
        code[at..].iter().chain(&code[..at]).copied()
    });
    Some(turned.take(size).collect())
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

const SYLLABLES: [&str; 24] = [
    "an", "ber", "col", "dra", "el", "fin", "gar", "hul", "in", "kel", "lor", "mast", "na", "or", "port", "que", "rud",
    "sail", "tide", "un", "ver", "wind", "yar", "zeph",
];

/// Words of a made-up language: a few thousand of them, most of them rare.
fn text(dice: &mut Dice, out: &mut Vec<u8>) {
    let rank = (dice.roll() % 4_000) * (dice.roll() % 4_000) / 4_000;
    let mut word = Dice(rank * 2 + 1);
    for _ in 0..=word.roll() % 3 {
        out.extend(SYLLABLES[(word.roll() % 24) as usize].bytes());
    }
    out.extend(if dice.roll().is_multiple_of(12) { &b".\n"[..] } else { b" " });
}

fn binary(dice: &mut Dice, out: &mut Vec<u8>) {
    out.extend((dice.roll() as u32 & 0x00ff_03ff).to_le_bytes());
}

/// Samples of a slow wave with some noise, as 32-bit floats.
fn numeric(dice: &mut Dice, out: &mut Vec<u8>) {
    let at = out.len() as f32 / 4.0;
    let noise = (dice.roll() % 1_000) as f32 / 1e5;
    out.extend(((at / 500.0).sin() * 20.0 + noise).to_le_bytes());
}
