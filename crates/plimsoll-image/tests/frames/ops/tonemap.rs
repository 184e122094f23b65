//! `tonemap`: beside the published formulas in 64 bits, at the ends of each curve, and on every kind of picture.

use plimsoll_image::frames::{Chain, Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

use crate::agree::{SIZES, every_way, same};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

/// A device may differ by this share of the range: three times the two codes that were seen at 16 bits.
const BOUND: f64 = 1e-4;

#[test]
fn every_way_agrees() {
    for chain in
        ["tonemap=bt2390:from=pq", "tonemap=reinhard:from=hlg", "tonemap=hable:gamma", "yuv=709,tonemap=bt2390:gamma"]
    {
        every_way(chain, &SIZES, BOUND);
    }
}

#[test]
fn every_pixel_agrees_at_16_bits() {
    let bench = Bench::new();
    let format = Format::new(size(641, 479), 16, Colour::Yuv(HDR)).expect("a format");
    let input = frame(format, 9);
    for chain in ["tonemap=reinhard:pq", "tonemap=hable:hlg", "tonemap=bt2390:pq"] {
        let workload = bench.register(chain);
        let [cpu, twin, gpu] = [Way::Cpu, Way::Twin, Way::Gpu].map(|way| bench.run(&workload, way, &input));
        same(chain, &cpu, &twin, &gpu, BOUND);
    }
}

const HDR: Yuv =
    Yuv { matrix: Matrix::Bt2020, range: Range::Limited, sampling: Sampling::S420, siting: Siting::TopLeft };

#[test]
fn hdr_video_becomes_ordinary_video() {
    let bench = Bench::new();
    let format = Format::new(size(65, 33), 10, Colour::Yuv(HDR)).expect("a format");
    let input = frame(format, 3);
    for (chain, matrix) in [("tonemap=bt2390:pq", Matrix::Bt709), ("tonemap=bt2390:pq:to=2020", Matrix::Bt2020)] {
        let workload = bench.register(chain);
        let [cpu, twin, gpu] = [Way::Cpu, Way::Twin, Way::Gpu].map(|way| bench.run(&workload, way, &input));
        same(chain, &cpu, &twin, &gpu, BOUND);
        assert_eq!(cpu.format(), format.with_colour(Colour::Yuv(Yuv { matrix, ..HDR })), "{chain}");
    }
    let long = "tonemap=hable:pq,depth=8,yuv=709:444,gamma=1.1,rgb,levels=0.02:0.98";
    let workload = bench.register(long);
    let [cpu, twin, gpu] = [Way::Cpu, Way::Twin, Way::Gpu].map(|way| bench.run(&workload, way, &input));
    same(long, &cpu, &twin, &gpu, BOUND);
}

/// Colours through a chain, from 0 to 1 at 16 bits.
fn through(bench: &Bench, chain: &str, way: Way, colours: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let format = Format::new(size(colours.len() as u32, 1), 16, Colour::Rgb).expect("a format");
    let bytes = colours.iter().flatten().flat_map(|value| ((value * 65535.0).round() as u16).to_le_bytes());
    let input = Frame::new(format, bytes.collect::<Vec<u8>>()).expect("a frame");
    let out = codes(&bench.run(&bench.register(chain), way, &input));
    out.as_chunks().0.iter().map(|colour: &[u16; 3]| colour.map(|code| f64::from(code) / 65535.0)).collect()
}

fn pq_of(nits: f64) -> f64 {
    let y = (nits / 10_000.0).powf(0.159_301_757_812_5);
    ((0.835_937_5 + 18.851_562_5 * y) / (1.0 + 18.687_5 * y)).powf(78.843_75)
}

fn nits_of(pq: f64) -> f64 {
    let p = pq.powf(1.0 / 78.843_75);
    10_000.0 * ((p - 0.835_937_5).max(0.0) / (18.851_562_5 - 18.687_5 * p)).powf(1.0 / 0.159_301_757_812_5)
}

/// Nits of a colour as it is shown.
fn shown(from: &str, peak: f64, colour: [f64; 3]) -> [f64; 3] {
    let scene = |code: f64| match code <= 0.5 {
        true => code * code / 3.0,
        false => (((code - 0.559_910_73) / 0.178_832_77).exp() + 0.284_668_92) / 12.0,
    };
    match from {
        "pq" => colour.map(nits_of),
        "gamma" => colour.map(|code| peak * code.powf(2.4)),
        _ => {
            let [red, green, blue] = colour.map(scene);
            let luminance: f64 = 0.2627 * red + 0.678 * green + 0.0593 * blue;
            let gamma = 1.2 + 0.42 * (peak / 1000.0).log10();
            [red, green, blue].map(|light| peak * luminance.powf(gamma - 1.0) * light)
        }
    }
}

/// Nits after a curve.
fn bent(curve: &str, peak: f64, target: f64, nits: f64) -> f64 {
    let (x, white) = (nits.min(peak) / target, peak / target);
    let filmic = |x: f64| (x * (0.15 * x + 0.05) + 0.004) / (x * (0.15 * x + 0.5) + 0.06) - 0.02 / 0.3;
    match curve {
        "reinhard" => target * x * (1.0 + x / white.powi(2)) / (1.0 + x),
        "hable" => target * filmic(x) / filmic(white),
        _ => {
            let (code, highest) = (pq_of(nits.min(peak)) / pq_of(peak), pq_of(target) / pq_of(peak));
            let knee = 1.5 * highest - 0.5;
            let t = (code - knee) / (1.0 - knee);
            let spline = (2.0 * t.powi(3) - 3.0 * t.powi(2) + 1.0) * knee
                + (t.powi(3) - 2.0 * t.powi(2) + t) * (1.0 - knee)
                + (3.0 * t.powi(2) - 2.0 * t.powi(3)) * highest;
            nits_of(if code < knee { code } else { spline } * pq_of(peak))
        }
    }
}

/// Colours of all kinds, none so dark that the last bits of 16 decide.
fn colours() -> Vec<[f64; 3]> {
    let levels = [0.15, 0.3, 0.45, 0.58, 0.7, 0.85, 1.0];
    let pairs = levels.iter().flat_map(|a| levels.iter().map(move |b| [*a, *b, (a + b) / 2.0]));
    // As the codes of a frame say them.
    pairs.map(|colour| colour.map(|value| (value * 65535.0_f64).round() / 65535.0)).collect()
}

#[test]
fn codes_are_as_the_formulas_say() {
    let bench = Bench::new();
    for curve in ["reinhard", "hable", "bt2390"] {
        for (from, peak, target) in
            [("pq", 1000.0, 100.0), ("pq", 4000.0, 203.0), ("hlg", 1000.0, 100.0), ("gamma", 600.0, 100.0)]
        {
            let chain = format!("tonemap={curve}:{from}:{peak}:{target}:2020");
            let out = through(&bench, &chain, Way::Cpu, &colours());
            for (colour, got) in colours().into_iter().zip(out) {
                let light = shown(from, peak, colour);
                let brightest = light.into_iter().fold(0.0, f64::max);
                let share = bent(curve, peak, target, brightest) / brightest;
                let wanted = light.map(|nits| (nits * share / target).clamp(0.0, 1.0).powf(1.0 / 2.4));
                let apart = got.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(apart < 3e-5, "{chain}, {colour:?}: {got:?}, not {wanted:?}");
            }
        }
    }
}

/// Dark greys, and dark colours whose channels are not too far apart.
#[test]
fn near_black_it_follows_the_curve() {
    let bench = Bench::new();
    let steps = (1..=60).map(|step| f64::from(step * 64) / 65535.0);
    let dark: Vec<[f64; 3]> = steps
        .flat_map(|code| [[code; 3], [code, code * 0.75, code * 0.5].map(|code| (code * 65535.0).round() / 65535.0)])
        .collect();
    for (curve, from) in [("reinhard", "pq"), ("hable", "pq"), ("bt2390", "pq"), ("bt2390", "hlg"), ("bt2390", "gamma")]
    {
        let chain = format!("tonemap={curve}:{from}:1000:100:2020");
        for way in [Way::Cpu, Way::Gpu] {
            for (colour, got) in dark.iter().zip(through(&bench, &chain, way, &dark)) {
                let light = shown(from, 1000.0, *colour);
                let brightest = light.into_iter().fold(0.0, f64::max);
                let share = if brightest > 0.0 { bent(curve, 1000.0, 100.0, brightest) / brightest } else { 0.0 };
                let wanted = light.map(|nits| (nits * share / 100.0).clamp(0.0, 1.0).powf(1.0 / 2.4));
                let apart = got.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(apart < 3e-5, "{chain} {way:?}, {colour:?}: {got:?}, not {wanted:?}");
            }
        }
    }
}

#[test]
fn primaries_go_from_bt_2020_to_bt_709() {
    // Six places of the matrix of BT.2087, on light that lies well inside both.
    let matrix =
        [[1.660_491, -0.587_641, -0.072_850], [-0.124_550, 1.132_900, -0.008_349], [-0.018_151, -0.100_579, 1.118_730]];
    let bench = Bench::new();
    for colour in [[0.4, 0.4, 0.4], [0.4, 0.35, 0.3], [0.3, 0.4, 0.35], [0.35, 0.3, 0.4]] {
        let light = shown("gamma", 100.0, colour);
        let wanted = matrix
            .map(|row: [f64; 3]| (row.iter().zip(light).map(|(a, b)| a * b).sum::<f64>() / 100.0).powf(1.0 / 2.4));
        // A curve from 100 nits to 100 nits leaves light alone, so that only the primaries change.
        let chain = "yuv=2020:full:444,tonemap=bt2390:gamma:100:100,rgb";
        let got = through(&bench, chain, Way::Gpu, &[colour])[0];
        let apart = got.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-4, "{colour:?}: {got:?}, not {wanted:?}");
    }
}

#[test]
fn the_eetf_is_right_at_its_knee_and_its_ends() {
    let bench = Bench::new();
    // From 1000 nits to 100 the knee lies at 0.386 in PQ: 28 nits. What is darker stays.
    let grey = |nits: f64| [pq_of(nits); 3];
    let knee = nits_of(1.5 * pq_of(100.0) - 0.5 * pq_of(1000.0));
    assert!((27.0..29.0).contains(&knee), "{knee}");
    let lights = [0.0, 5.0, 18.0, knee * 0.999, knee * 1.001, 1000.0, 4000.0];
    let out = through(&bench, "tonemap=bt2390:pq", Way::Gpu, &lights.map(grey));
    for (nits, got) in lights.into_iter().zip(out) {
        let wanted = (nits.min(if nits > 500.0 { 100.0 } else { nits }) / 100.0).powf(1.0 / 2.4);
        assert!(got.iter().all(|got| (got - wanted).abs() < 1e-4), "{nits} nits: {got:?}, not {wanted}");
    }
}

#[test]
fn whatever_comes_in_a_number_comes_out() {
    let bench = Bench::new();
    let ends: Vec<[f64; 3]> = (0..8).map(|bits| [bits & 1, bits >> 1 & 1, bits >> 2].map(f64::from)).collect();
    for curve in ["reinhard", "hable", "bt2390"] {
        for from in ["pq", "hlg", "gamma"] {
            for displays in ["1000:100", "10000:1", "10:10", "10:1", "10000:10000"] {
                for to in ["709", "2020"] {
                    let chain = format!("tonemap={curve}:{from}:{displays}:{to}");
                    // A device says so itself if something is not a number; on the CPU it would be black.
                    for way in [Way::Gpu, Way::Cpu] {
                        let out = through(&bench, &chain, way, &ends);
                        assert_eq!(out[0], [0.0; 3], "{chain}: black ({way:?})");
                        assert!(out[7].iter().all(|code| *code > 0.999), "{chain}: white is {:?} ({way:?})", out[7]);
                        assert!(out[1][0] > 0.5, "{chain}: red is {:?} ({way:?})", out[1]);
                    }
                }
            }
        }
    }
}

#[test]
fn colour_models_come_back() {
    for format in formats(size(8, 6)) {
        let chain: Chain = "tonemap=reinhard:from=gamma".parse().expect("a chain");
        assert_eq!(chain.output(format).expect("it can be done"), format);
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let wrong = ["tonemap", "tonemap=hable", "tonemap=mobius:pq", "tonemap=hable:from=srgb"];
    for wrong in wrong.into_iter().chain(["tonemap=hable:pq:peak=100:target=200"]) {
        assert!(wrong.parse::<Chain>().is_err(), "{wrong}");
    }
}
