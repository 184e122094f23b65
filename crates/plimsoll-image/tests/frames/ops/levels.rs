//! `levels` and `gamma`

use plimsoll_image::frames::{Chain, Colour, Format, Frame, Range};

use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

/// A device may differ by this share of the range: three times the one code that was seen at 16 bits.
const BOUND: f64 = 5e-5;

#[test]
fn every_way_agrees() {
    every_way("levels=0.1:0.8", &SIZES, 0.0);
    for chain in ["gamma=2.2", "gamma=0.45", "levels=0.1:0.8:1.8:0.2:0.9", "gamma=10,levels=0:1:0.1:1:0"] {
        every_way(chain, &SIZES, BOUND);
    }
}

/// Every eighth code of a plane without colour, through a chain on the CPU: code in, code out.
fn ramp(chain: &str, depth: u8, range: Range) -> Vec<(u16, u16)> {
    let width = 1_u32 << (depth - 3);
    let format = Format::new(size(width, 1), depth, Colour::Mono(range)).expect("a format");
    let into: Vec<u16> = (0..width).map(|step| (step * 8) as u16).collect();
    let bytes: Vec<u8> = into.iter().flat_map(|code| code.to_le_bytes()[..format.sample_bytes()].to_vec()).collect();
    let bench = Bench::new();
    let out = bench.run(&bench.register(chain), Way::Cpu, &Frame::new(format, bytes).expect("a frame"));
    into.into_iter().zip(codes(&out)).collect()
}

#[test]
fn codes_are_as_the_formula_says() {
    for (chain, [black, white, gamma, out_black, out_white]) in [
        ("levels=0.1:0.8:1.8:0.2:0.9", [0.1, 0.8, 1.8, 0.2, 0.9]),
        ("levels=0.25:0.75", [0.25, 0.75, 1.0, 0.0, 1.0]),
        ("gamma=2.2", [0.0, 1.0, 2.2, 0.0, 1.0]),
        ("levels=0:1:0.5:1:0", [0.0, 1.0, 0.5, 1.0, 0.0]),
    ] {
        for (depth, range, lowest, nominal) in
            [(16, Range::Full, 0.0, 65535.0), (10, Range::Limited, 64.0, 876.0), (8, Range::Limited, 16.0, 219.0)]
        {
            for (into, out) in ramp(chain, depth, range) {
                let value = (f64::from(into) - lowest) / nominal;
                let bent = ((value - black) / (white - black)).clamp(0.0, 1.0_f64).powf(1.0 / gamma);
                let wanted = lowest + nominal * (out_black + (out_white - out_black) * bent);
                let allowed = 0.5 + 1e-5 * f64::from(2_u32.pow(u32::from(depth)));
                let apart = (f64::from(out) - wanted).abs();
                assert!(apart < allowed, "{chain}, {depth} bits {range}: {into} became {out}, not {wanted}");
            }
        }
    }
}

#[test]
fn black_and_white_stay_where_they_are() {
    for (range, black, white) in [(Range::Limited, 16 * 256, 235 * 256), (Range::Full, 0, 65535)] {
        let format = Format::new(size(2, 1), 16, Colour::Mono(range)).expect("a format");
        let bytes: Vec<u8> = [black, white].into_iter().flat_map(u16::to_le_bytes).collect();
        let input = Frame::new(format, bytes).expect("a frame");
        let bench = Bench::new();
        for way in [Way::Cpu, Way::Gpu] {
            assert_eq!(bench.run(&bench.register("gamma=5"), way, &input), input, "{range} ({way:?})");
        }
    }
}

#[test]
fn chroma_is_left_alone() {
    let bench = Bench::new();
    let input = frame(formats(size(20, 10))[0], 7);
    let out = bench.run(&bench.register("gamma=3"), Way::Gpu, &input);
    assert_ne!(out.bytes()[..200], input.bytes()[..200]);
    assert_eq!(out.bytes()[200..], input.bytes()[200..]);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for wrong in ["levels", "levels=0.5:0.5", "levels=0.9:0.1", "levels=0:2", "levels=0:nan", "gamma", "gamma=0"] {
        assert!(wrong.parse::<Chain>().is_err(), "{wrong}");
    }
}
