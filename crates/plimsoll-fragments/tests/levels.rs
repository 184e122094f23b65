//! Errors of levels: measured, monotone, and beside plain quantisation at the same bits and the same grouping.

mod weights;

use plimsoll_fragments::data_type::Float;
use plimsoll_fragments::quant::{Bits, Sums, decode, decode_exact, encode};
use weights::{Kind, plain, to_bytes};

fn error(sums: Sums) -> f64 {
    sums.error()
}

/// The table that the README quotes: `cargo test -p plimsoll-fragments --test levels -- --nocapture`.
#[test]
fn each_level_is_as_good_as_plain_quantisation_at_its_bits() {
    let bits = Bits::default();
    for kind in Kind::ALL {
        let weights = kind.weights(1 << 20, 16);
        let encoded = encode(&to_bytes(&weights, Float::F32), Float::F32, &bits, false);
        let mut before = f64::INFINITY;
        for (level, known) in bits.as_slice().iter().enumerate() {
            let levels: Vec<&[u8]> = encoded.levels[..=level].iter().map(Vec::as_slice).collect();
            let mut decoded = vec![0.0; weights.len()];
            decode(&levels, &bits, &mut decoded).unwrap();
            let ours = error(Sums::of(&weights, &decoded));
            assert_eq!(ours, encoded.sums[level].error(), "the stated error is the measured one, to the last bit");
            let plain: Vec<(&str, f64)> = plain::ALL
                .iter()
                .map(|(name, quantise)| (*name, error(Sums::of(&weights, &quantise(&weights, *known)))))
                .collect();
            let bytes: usize = levels.iter().map(|level| level.len()).sum();
            let columns: Vec<String> =
                plain.iter().map(|(name, error)| format!("{name} {error:.5} ({:.3})", ours / error)).collect();
            println!(
                "{kind:?} {known} bits, {:.3} with scales and tables: ours {ours:.5}, {}",
                bytes as f64 * 8.0 / weights.len() as f64,
                columns.join(", ")
            );
            for (name, error) in &plain {
                assert!(ours <= error * 1.05, "{kind:?} at {known} bits: {ours} beside {error} of {name}");
            }
            assert!(ours < before, "{kind:?}: level {level} is no better than the one before it");
            before = ours;
        }
    }
}

#[test]
fn the_very_bytes_come_back() {
    let bits = Bits::default();
    for float in [Float::F16, Float::BF16, Float::F32] {
        for kind in Kind::ALL {
            let mut bytes = to_bytes(&kind.weights(70_001, 3), float);
            // Bytes that are no numbers at all, too.
            bytes[..40_000].iter_mut().enumerate().for_each(|(at, byte)| *byte = ((at * 2_654_435_761) >> 13) as u8);
            let encoded = encode(&bytes, float, &bits, true);
            let levels: Vec<&[u8]> = encoded.levels.iter().map(Vec::as_slice).collect();
            let restored = decode_exact(&levels, encoded.exact.as_deref().unwrap(), &bits, float, 70_001).unwrap();
            assert!(restored == bytes, "{float:?} {kind:?}");
            assert!(encoded.sums.iter().all(|sums| sums.error().is_finite()));
        }
    }
}

#[test]
fn few_levels_and_odd_lengths() {
    for bits in ["1", "8", "1,8", "3,5,7", "1,2,3,4,5"] {
        let bits: Bits = bits.parse().unwrap();
        for count in [1, 31, 32, 33, 63, 64, 65, 127, 4_097] {
            let weights = Kind::Gaussian.weights(count, 9);
            let encoded = encode(&to_bytes(&weights, Float::F32), Float::F32, &bits, true);
            for level in 1..=encoded.levels.len() {
                let levels: Vec<&[u8]> = encoded.levels[..level].iter().map(Vec::as_slice).collect();
                let mut decoded = vec![f32::NAN; count];
                decode(&levels, &bits, &mut decoded).unwrap();
                assert_eq!(Sums::of(&weights, &decoded), encoded.sums[level - 1], "{bits} {count}");
            }
        }
    }
    for wrong in ["", "0", "9", "4,2", "2,2", "1,2,3,4,5,6", "x"] {
        assert!(wrong.parse::<Bits>().is_err(), "{wrong}");
    }
}
