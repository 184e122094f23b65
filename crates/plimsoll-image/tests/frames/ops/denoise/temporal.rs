//! `denoise=temporal`

use plimsoll_image::frames::{Colour, Format, Frame, Range};

use super::super::naive::{Plane, near, planes};
use crate::agree::same;
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

/// The weights are within 3e-6 of themselves, and weigh differences that count only while they are small.
const BOUND: f64 = 2e-6;
/// The usual strength.
const STRENGTH: f64 = 0.04;

/// Frames that differ by noise here and by more there.
fn sequence(format: Format, count: u64) -> Vec<Frame> {
    let still = codes(&frame(format, 1));
    let moved = |number: u64| codes(&frame(format, 100 + number));
    let noise_max = u64::from(format.code_max()) / 20;
    (0..count)
        .map(|number| {
            let mut noise = Hash(number);
            let codes = still.iter().zip(moved(number)).enumerate().map(|(at, (still, moved))| {
                let noisy = u64::from(*still) + noise.next() % (noise_max + 1);
                if at % 97 < 60 { noisy.min(u64::from(format.code_max())) as u16 } else { moved }
            });
            frame_of(format, codes)
        })
        .collect()
}

struct Hash(u64);

impl Hash {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 31
    }

    /// Of a deviation of about 1: twelve even ones added.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| (self.next() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }
}

fn frame_of(format: Format, codes: impl Iterator<Item = u16>) -> Frame {
    let bytes = codes.flat_map(|code| code.to_le_bytes()[..format.sample_bytes()].to_vec()).collect();
    Frame::new(format, bytes).unwrap()
}

fn every_way(bench: &Bench, chain: &str, frames: &[Frame], own: usize) -> Frame {
    let workload = bench.register(chain);
    let [cpu, twin, gpu] = [Way::Cpu, Way::Twin, Way::Gpu].map(|way| bench.run_among(&workload, way, frames, own));
    let what = format!("{chain} on frame {own} of {} of {}", frames.len(), cpu.format());
    same(&what, &cpu, &twin, &gpu, BOUND);
    cpu
}

#[test]
fn every_way_agrees_wherever_the_frame_lies() {
    let bench = Bench::new();
    for format in formats(size(33, 17)).into_iter().chain(formats(size(1, 1))) {
        let frames = sequence(format, 5);
        for (chain, own) in [("denoise=temporal:2", 2), ("denoise=temporal", 0), ("denoise=temporal:3", 4)] {
            every_way(&bench, chain, &frames, own);
        }
    }
}

#[test]
fn every_pixel_of_a_large_frame_agrees() {
    let frames = sequence(formats(size(641, 479))[0], 3);
    every_way(&Bench::new(), "denoise=temporal", &frames, 1);
}

#[test]
fn it_goes_on_in_a_chain() {
    let frames = sequence(formats(size(33, 17))[0], 3);
    every_way(&Bench::new(), "blur=1,denoise=temporal,crop=20x10", &frames, 1);
}

#[test]
fn the_only_frame_of_a_stream_stays_as_it_is() {
    let bench = Bench::new();
    for format in formats(size(33, 17)) {
        let frames = sequence(format, 1);
        let output = every_way(&bench, "denoise=temporal:3", &frames, 0);
        assert!(output.bytes() == frames[0].bytes(), "{format}");
    }
}

/// A plane's mean with those in its place, each weight from the differences of nine pixels.
fn mean(own: &Plane, others: &[&Plane], strength: f64) -> Plane {
    own.map(|x, y| {
        let (mut sum, mut weights) = (own.at(x, y), 1.0);
        for other in others {
            let around = (-1..=1).flat_map(|down| (-1..=1).map(move |right| (x + right, y + down)));
            let squares: f64 = around.map(|(x, y)| (other.at(x, y) - own.at(x, y)).powi(2)).sum();
            let weight = (-squares / 9.0 / strength.powi(2)).exp();
            sum += weight * other.at(x, y);
            weights += weight;
        }
        sum / weights
    })
}

#[test]
fn it_is_the_mean_of_what_is_alike() {
    let bench = Bench::new();
    for format in formats(size(37, 23)) {
        let frames = sequence(format, 4);
        // The last frame: where the stream ends, those before it stand in for those after it.
        for (own, others) in [(1, [0, 2]), (3, [2, 2])] {
            let all: Vec<Vec<Plane>> = frames.iter().map(planes).collect();
            let wanted: Vec<Plane> = (0..all[own].len())
                .map(|plane| mean(&all[own][plane], &others.map(|other| &all[other][plane]), 0.06))
                .collect();
            let output = bench.run_among(&bench.register("denoise=temporal:1:0.06"), Way::Cpu, &frames, own);
            near(&format!("frame {own} of {format}"), &output, &wanted, BOUND);
        }
    }
}

/// Decibels of the signal over the noise.
fn psnr(clean: &Frame, noisy: &Frame) -> f64 {
    let max = f64::from(clean.format().code_max());
    let (clean, noisy) = (codes(clean), codes(noisy));
    let squares: f64 = clean.iter().zip(&noisy).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    10.0 * (max * max * clean.len() as f64 / squares).log10()
}

/// Noise of five codes, as of a camera in the dark. A plain mean of three frames would gain 4.8 dB, one of seven 8.5 dB;
/// what is told apart from motion by its size gains less.
#[test]
fn what_stands_still_gets_less_noisy() {
    let bench = Bench::new();
    let format = formats(size(96, 64))[0];
    // Away from black and white, where noise would be cut off.
    let clean = frame_of(format, codes(&frame(format, 1)).into_iter().map(|code| 40 + code / 2));
    let noisy = |number: u64| {
        let mut noise = Hash(number << 32);
        frame_of(format, codes(&clean).into_iter().map(|code| (f64::from(code) + 5.0 * noise.normal()).round() as u16))
    };
    let frames: Vec<Frame> = (0..7).map(noisy).collect();
    for (chain, gain) in [("denoise=temporal", 3.2), ("denoise=temporal:3", 5.5)] {
        let output = bench.run_among(&bench.register(chain), Way::Cpu, &frames, 3);
        let (before, after) = (psnr(&clean, &frames[3]), psnr(&clean, &output));
        assert!(after >= before + gain, "{chain}: {before:.2} dB, then {after:.2}");
    }
}

#[test]
fn what_moves_leaves_no_ghost() {
    let bench = Bench::new();
    let format = Format::new(size(64, 32), 8, Colour::Mono(Range::Full)).unwrap();
    // A bright bar that moves by six pixels a frame.
    let bar = |number: usize| {
        frame_of(format, (0..64 * 32).map(|at| if (at % 64 + 60 - 6 * number) % 64 < 9 { 180 } else { 40 }))
    };
    let frames: Vec<Frame> = (0..7).map(bar).collect();
    for chain in ["denoise=temporal", "denoise=temporal:3"] {
        let output = bench.run_among(&bench.register(chain), Way::Cpu, &frames, 3);
        assert!(output.bytes() == frames[3].bytes(), "{chain}");
    }
}

/// Whatever the other frames show, no pixel moves further than the weights allow: one that differs by `d` counts at most
/// exp(-d² / 9 strength²), as its neighbours may be alike by chance.
#[test]
fn a_cut_changes_no_pixel_by_more_than_the_weights_allow() {
    let bench = Bench::new();
    let others = 6.0;
    let pull = |apart: f64| {
        let weight = (-(apart / (3.0 * STRENGTH)).powi(2)).exp();
        others * weight * apart / (1.0 + others * weight)
    };
    let furthest = (0..1000).map(|step| pull(f64::from(step) / 1000.0)).fold(0.0, f64::max);
    for format in formats(size(64, 48)) {
        let frames: Vec<Frame> = (0..7).map(|seed| frame(format, 50 + 9 * seed)).collect();
        let output = bench.run_among(&bench.register("denoise=temporal:3"), Way::Cpu, &frames, 3);
        let allowed = furthest * f64::from(format.code_max()) + 1.0;
        let apart = codes(&output).iter().zip(codes(&frames[3])).map(|(a, b)| a.abs_diff(b)).max().unwrap();
        assert!(f64::from(apart) <= allowed, "{format}: {apart} codes, {allowed:.1} allowed");
    }
    let dark = |code: u16| frame_of(formats(size(20, 20))[0], (0..600).map(move |at| code + at % 5));
    let cut = [dark(30), dark(30), dark(90)];
    let output = bench.run_among(&bench.register("denoise=temporal"), Way::Cpu, &cut, 1);
    assert!(output.bytes() == cut[1].bytes(), "the frame before the cut stays, though the one after it is another");
}
