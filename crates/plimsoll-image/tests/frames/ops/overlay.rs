//! `overlay`, beside blending computed naively from the file's pixels.

use std::path::PathBuf;

use plimsoll_image::frames::{Chain, Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

use super::naive::planes;
use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{self, codes, formats, frame, size};

/// See `ops/overlay/pass.rs`.
const BOUND: f64 = 5e-7;
/// The same with a mix of three numbers before it and another after.
const CODED_BOUND: f64 = 4e-6;

/// An image file that lives as long as the test.
pub(crate) struct File(PathBuf);

impl File {
    /// A portable anymap of 8-bit red, green, blue and alpha.
    pub(crate) fn rgba(name: &str, width: u32, height: u32, pixels: &[[u8; 4]]) -> Self {
        assert_eq!(pixels.len() as u32, width * height);
        let header = format!("P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n");
        let path = std::env::temp_dir().join(format!("plimsoll-overlay-{}-{name}", std::process::id()));
        std::fs::write(&path, [header.as_bytes(), pixels.as_flattened()].concat()).unwrap();
        Self(path)
    }

    /// Its path as a chain takes it.
    pub(crate) fn text(&self) -> String {
        let path = self.0.to_str().unwrap();
        path.replace('\\', r"\\").replace(':', r"\:").replace(',', r"\,").replace('=', r"\=")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Colours and transparency of every kind, wholly transparent and opaque included.
pub(crate) fn pixels(width: u32, height: u32) -> Vec<[u8; 4]> {
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let pixel = |(x, y): (u32, u32)| {
        let alpha = [0, 255, 128, 77, 255][((x / 3 + y * 2) % 5) as usize];
        [(x * 37 + y * 11) as u8, (x * 5 + y * 71) as u8, (255 - x * 11) as u8, alpha]
    };
    places.map(pixel).collect()
}

#[test]
fn every_way_agrees() {
    let file = File::rgba("agree.pam", 23, 19, &pixels(23, 19));
    let path = file.text();
    every_way(&format!("overlay={path}"), &SIZES, BOUND);
    every_way(&format!("overlay={path}:middle:opacity=0.4"), &SIZES, BOUND);
    every_way(&format!("overlay={path}:-3-5"), &SIZES, BOUND);
}

/// What becomes of a sample below one above.
type Mixed = fn(f64, f64) -> f64;

fn modes() -> [(&'static str, Mixed); 9] {
    [
        ("normal", |_, s| s),
        ("multiply", |b, s| b * s),
        ("screen", |b, s| 1.0 - (1.0 - b) * (1.0 - s)),
        ("add", |b, s| (b + s).min(1.0)),
        ("subtract", |b, s| (b - s).max(0.0)),
        ("darken", f64::min),
        ("lighten", f64::max),
        ("difference", |b, s| (b - s).abs()),
        ("overlay", |b, s| if b < 0.5 { 2.0 * b * s } else { 1.0 - 2.0 * (1.0 - b) * (1.0 - s) }),
    ]
}

/// Every mode on every pixel, partly outside on each side.
#[test]
fn modes_are_what_they_say() {
    let (across, down) = (23, 19);
    let above = pixels(across, down);
    let file = File::rgba("modes.pam", across, down, &above);
    let bench = Bench::new();
    for depth in [8, 16] {
        let format = Format::new(size(31, 27), depth, Colour::Rgb).unwrap();
        let input = frame(format, 4);
        let below = codes(&input);
        for ((mode, mixed), (left, top)) in modes().into_iter().zip([(5, 3), (-4, 20), (25, -6)].into_iter().cycle()) {
            let chain = bench.register(&format!("overlay={}:{left:+}{top:+}:opacity=0.75:mode={mode}", file.text()));
            let max = f64::from(format.code_max());
            let wanted: Vec<f64> = below
                .iter()
                .enumerate()
                .map(|(at, code)| {
                    let (pixel, channel) = (at as i64 / 3, at % 3);
                    let (x, y) = (pixel % 31 - left, pixel / 31 - top);
                    let below = f64::from(*code) / max;
                    if !(0..i64::from(across)).contains(&x) || !(0..i64::from(down)).contains(&y) {
                        return below * max;
                    }
                    let pixel = above[(y * i64::from(across) + x) as usize].map(|sample| f64::from(sample) / 255.0);
                    (below + (mixed(below, pixel[channel]) - below) * pixel[3] * 0.75) * max
                })
                .collect();
            for way in [Way::Cpu, Way::Gpu] {
                close(&format!("{mode} {way:?}"), &bench.run(&chain, way, &input), &wanted);
            }
        }
    }
}

/// Where there is chroma, a mode is what it is on red, green and blue. Chroma is flat here, so that to make it finer and
/// coarser by hand changes nothing.
#[test]
fn modes_mix_red_green_and_blue_whatever_the_picture_is() {
    let file = File::rgba("coded.pam", 23, 19, &pixels(23, 19));
    let bench = Bench::new();
    for (mode, _) in modes().into_iter().skip(1) {
        let overlay = format!("overlay={}:+5-3:opacity=0.75:mode={mode}", file.text());
        for (depth, sampling) in [(8, Sampling::S420), (10, Sampling::S422), (8, Sampling::S444)] {
            let colour = made::yuv(sampling);
            let input = flat_chroma(&frame(Format::new(size(31, 27), depth, colour).unwrap(), 4));
            let [at_once, by_hand] = [overlay.clone(), format!("rgb,{overlay},yuv=709:limited:{sampling}:left")]
                .map(|chain| codes(&bench.run(&bench.register(&chain), Way::Cpu, &input)));
            for (at, (got, wanted)) in at_once.iter().zip(&by_hand).enumerate() {
                // By hand, the filter of coarser chroma goes a pixel beyond the patch.
                let is_beside = at >= 31 * 27 && *got == codes(&input)[at];
                assert!(
                    is_beside || got.abs_diff(*wanted) <= 1,
                    "{mode} on {colour:?}: sample {at} is {got}, not {wanted}"
                );
            }
            assert_ne!(at_once, codes(&input), "{mode} on {colour:?} changes nothing");
        }
    }
    // Black and white of limited greys are black and white to a mode.
    let limited = Format::new(size(2, 1), 8, Colour::Mono(Range::Limited)).unwrap();
    let white = File::rgba("white.pam", 2, 1, &[[255; 4]; 2]);
    for (mode, wanted) in [("multiply", [16, 235]), ("difference", [235, 16]), ("screen", [235, 235])] {
        let chain = bench.register(&format!("overlay={}:mode={mode}", white.text()));
        let input = Frame::new(limited, vec![16, 235]).unwrap();
        assert_eq!(bench.run(&chain, Way::Cpu, &input).bytes(), wanted, "{mode}");
    }
    every_way(&format!("overlay={}:mode=multiply", file.text()), &SIZES[2..], CODED_BOUND);
}

fn flat_chroma(frame: &Frame) -> Frame {
    let (format, mut bytes) = (frame.format(), frame.bytes().to_vec());
    let luma = format.size().pixels() as usize * format.sample_bytes();
    let (level, sample_bytes) = (format.code_max() / 5 * 2, format.sample_bytes());
    bytes[luma..]
        .chunks_mut(sample_bytes)
        .for_each(|sample| sample.copy_from_slice(&level.to_le_bytes()[..sample_bytes]));
    Frame::new(format, bytes).unwrap()
}

/// Nothing outside the image changes, whatever the mode, and nothing under what is wholly transparent of it.
#[test]
fn what_is_not_covered_stays_to_the_last_bit() {
    let (width, height) = (37_usize, 29_usize);
    let mut above = pixels(9, 7);
    above[9 * 3..][..9].fill([200, 10, 90, 0]);
    let file = File::rgba("outside.pam", 9, 7, &above);
    let bench = Bench::new();
    for (sampling, siting) in [
        (Sampling::S420, Siting::Left),
        (Sampling::S420, Siting::Centre),
        (Sampling::S422, Siting::Left),
        (Sampling::S444, Siting::Left),
    ] {
        let colour = Colour::Yuv(Yuv { matrix: Matrix::Bt709, range: Range::Limited, sampling, siting });
        let input = frame(Format::new(size(width as u32, height as u32), 8, colour).unwrap(), 11);
        for (mode, _) in modes() {
            let chain = bench.register(&format!("overlay={}:+11+6:mode={mode}", file.text()));
            for way in [Way::Cpu, Way::Gpu] {
                let output = bench.run(&chain, way, &input);
                let (before, after) = (planes(&input), planes(&output));
                for (plane, (before, after)) in before.iter().zip(&after).enumerate() {
                    let (across, down) = if plane == 0 { (1, 1) } else { sampling.steps() };
                    let covered = |x: u32, y: u32| {
                        let overlaps =
                            |at: u32, step: u32, first: u32, end: u32| at * step < end && (at + 1) * step > first;
                        overlaps(x, across, 11, 20) && overlaps(y, down, 6, 13) && !(plane == 0 && y == 9)
                    };
                    for (at, (before, after)) in before.samples.iter().zip(&after.samples).enumerate() {
                        let (x, y) = (at as u32 % after_width(&output, plane), at as u32 / after_width(&output, plane));
                        assert!(
                            covered(x, y) || before == after,
                            "{mode} {way:?} on {colour:?}: plane {plane} at {x}, {y}"
                        );
                    }
                }
                assert_ne!(output.bytes(), input.bytes(), "{mode}");
            }
        }
    }
}

fn after_width(frame: &Frame, plane: usize) -> u32 {
    frame.format().plane_sizes()[plane].width
}

/// Half a code of rounding, and the last bit of `f32`.
fn close(what: &str, got: &Frame, wanted: &[f64]) {
    let got = codes(got);
    assert_eq!(got.len(), wanted.len());
    for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        assert!((f64::from(*got) - wanted).abs() <= 0.52, "{what}: sample {at} is {got}, not {wanted}");
    }
}

#[test]
fn pure_colours_have_their_published_codes() {
    // BT.709 limited, 8 bits, 100 % bars: white, yellow, cyan, green, magenta, red, blue, black.
    let bars = [
        ([255, 255, 255], [235, 128, 128]),
        ([255, 255, 0], [219, 16, 138]),
        ([0, 255, 255], [188, 154, 16]),
        ([0, 255, 0], [173, 42, 26]),
        ([255, 0, 255], [78, 214, 230]),
        ([255, 0, 0], [63, 102, 240]),
        ([0, 0, 255], [32, 240, 118]),
        ([0, 0, 0], [16, 128, 128]),
    ];
    let bench = Bench::new();
    for (rgb, wanted) in bars {
        let [red, green, blue] = rgb;
        let file = File::rgba("bar.pam", 4, 2, &[[red, green, blue, 255]; 8]);
        let chain = bench.register(&format!("overlay={}", file.text()));
        let format = formats(size(4, 2))[0];
        let [luma, blue, red] = wanted;
        let wanted = [[luma; 8].as_slice(), &[blue; 2], &[red; 2]].concat();
        assert_eq!(bench.run(&chain, Way::Gpu, &frame(format, 1)).bytes(), wanted, "{rgb:?}");
    }
}

/// An opaque pixel over one of the four that a chroma sample stands for counts a quarter.
#[test]
fn chroma_counts_what_is_covered() {
    let file = File::rgba("one,pixel:=.pam", 1, 1, &[[255, 0, 0, 255]]);
    let bench = Bench::new();
    let yuv =
        |siting| Colour::Yuv(Yuv { matrix: Matrix::Bt709, range: Range::Limited, sampling: Sampling::S420, siting });
    let format = Format::new(size(5, 3), 8, yuv(Siting::Centre)).unwrap();
    let input = Frame::new(format, [[100; 15].as_slice(), &[128; 12]].concat()).unwrap();
    let chroma_of = |at: &str| {
        let chain = bench.register(&format!("overlay={}:{at}", file.text()));
        bench.run(&chain, Way::Cpu, &input).bytes()[21..].to_vec()
    };
    // The red difference of red is 240: 112 above grey.
    assert_eq!(chroma_of("+1+1"), [128 + 28, 128, 128, 128, 128, 128]);
    // The last column is odd, so its chroma samples stand for two pixels, and the last of all for one.
    assert_eq!(chroma_of("+4+0"), [128, 128, 128 + 56, 128, 128, 128]);
    assert_eq!(chroma_of("bottom-right"), [128, 128, 128, 128, 128, 240]);
}

#[test]
fn what_cannot_be_is_refused() {
    let file = File::rgba("refused.pam", 4, 4, &[[1, 2, 3, 255]; 16]);
    let path = file.text();
    let planned = |chain: String, format| chain.parse::<Chain>().unwrap().output(format);
    let all = formats(size(20, 10));
    assert!(planned(format!("overlay={path}:-3+9"), all[0]).is_ok());
    for outside in ["-4+0", "+20+0", "+0+10", "+0-4"] {
        let error = planned(format!("overlay={path}:{outside}"), all[0]).unwrap_err().to_string();
        assert!(error.contains("wholly outside"), "{error}");
    }
    let not_read = |chain: &str| chain.parse::<Chain>().unwrap_err().to_string();
    assert!(not_read("overlay=/nowhere/logo.png").contains("/nowhere/logo.png: cannot be read"));
    assert!(not_read(&format!("overlay={path}:opacity=2")).contains("opacity"));
    assert!(not_read(&format!("overlay={path}:mode=dodge")).contains("mode"));
    assert!(not_read("overlay").contains("file is missing"));
}

/// A session for one image is never taken for another's, though both were read from one path.
#[test]
fn another_image_in_the_same_place_is_another_chain() {
    let bench = Bench::new();
    let input = frame(formats(size(2, 1))[3], 1);
    let results = [10, 200].map(|grey| {
        let file = File::rgba("same.pam", 2, 1, &[[grey, grey, grey, 255]; 2]);
        let chain = bench.register(&format!("overlay={}", file.text()));
        bench.run(&chain, Way::Gpu, &input).into_bytes()
    });
    assert_eq!(results, [[10; 6], [200; 6]]);
}

/// What is wholly transparent changes nothing, not even a code.
#[test]
fn nothing_over_a_frame_is_the_frame() {
    let file = File::rgba("clear.pam", 3, 3, &[[255, 0, 9, 0]; 9]);
    let bench = Bench::new();
    for format in formats(size(9, 7)) {
        let input = frame(format, 2);
        let chain = bench.register(&format!("overlay={}", file.text()));
        assert!(bench.run(&chain, Way::Cpu, &input) == input);
    }
}
