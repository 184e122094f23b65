//! Damaged streams: bytes flipped, overwritten, cut out, doubled. Each gives frames or an error, never a panic, and never
//! takes more memory than a stream may on its own word.

use plimsoll_image::frames::stream::{StreamHeader, Y4mReader};
use plimsoll_image::frames::{Range, Sampling, Siting};

use crate::largest::largest_of;
use crate::made::{Dice, format, frames, y4m, yuv};

/// Damaged copies, unless a campaign asks for another number (`cargo xtask campaign streams`).
const ROUNDS: u64 = 20_000;

fn rounds() -> u64 {
    std::env::var("PLIMSOLL_CAMPAIGN_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"))
}

/// What a stream may take on the word of its header.
const TRUSTED: usize = 32 << 20;

fn damaged(whole: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    // Mostly in the header and the line before the first frame: the rest is samples.
    let reach = if dice.below(4) == 0 { bytes.len() } else { 80 };
    for _ in 0..=dice.below(4) {
        let at = dice.below(reach.min(bytes.len()));
        let length = dice.below(8).min(bytes.len() - at);
        match dice.below(6) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at] = b" \n09:WHCFAIXp"[dice.below(13)],
            2 => bytes[at] = [0, 0xff, 0x7f, 0x80][dice.below(4)],
            3 => bytes[at..at + length].fill(b'9'),
            4 => drop(bytes.drain(at..at + length)),
            _ => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

#[test]
fn damage_gives_frames_or_an_error() {
    let header = StreamHeader::new(format(8, yuv(Sampling::S420, Siting::Left, Range::Limited)));
    let whole = y4m(header, &frames(header.format, 3));
    let (mut refused, mut broken_off, mut through) = (0, 0, 0);
    for seed in 1..=rounds() {
        let bytes = damaged(&whole, &mut Dice::new(seed));
        let largest = largest_of(|| match Y4mReader::open(&bytes[..]) {
            Err(error) => refused += usize::from(!error.to_string().is_empty()),
            Ok(reader) => {
                let format = reader.header().format;
                let outcomes: Vec<_> = reader.collect();
                let (good, bad): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
                assert!(good.len() * format.frame_bytes() <= bytes.len(), "seed {seed}: frames out of nothing");
                assert!(bad.len() <= 1, "seed {seed}");
                if bad.is_empty() { through += 1 } else { broken_off += 1 }
            }
        });
        assert!(largest <= TRUSTED, "seed {seed}: {largest} bytes at once");
    }
    let some = rounds() as usize / 20;
    assert!(refused > some && broken_off > some && through > some, "{refused} {broken_off} {through}");
}

#[test]
fn a_header_alone_takes_no_memory_for_what_it_promises() {
    let promise = b"YUV4MPEG2 W16384 H16384 C444p16\nFRAME\nand little more";
    let mut outcome = None;
    let largest = largest_of(|| outcome = Y4mReader::open(&promise[..]).expect("a header").next());
    let error = outcome.expect("an error").expect_err("no frame");
    assert_eq!(
        error.to_string(),
        "the stream ends in the middle of frame 1 (15 of 1610612736 bytes); there is no frame before it"
    );
    assert!(largest <= TRUSTED, "{largest} bytes at once");
}
