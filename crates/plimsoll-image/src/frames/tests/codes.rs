//! What is made of codes alone is what the passes make of numbers.

use plimsoll_runtime::Cancellation;

use super::programs::{Dice, frame};
use super::reference;
use crate::frames::format::{Colour, Format, Matrix, Range, Sampling, Siting, Yuv};
use crate::frames::host::HostWork;
use crate::frames::plan::Plan;
use crate::image::Size;

/// Sizes with and without whole groups of rows and columns.
const SIZES: [(u32, u32); 4] = [(1, 1), (7, 40), (66, 34), (130, 21)];

fn formats((width, height): (u32, u32), depths: &[u8]) -> Vec<Format> {
    let yuv =
        |sampling| Colour::Yuv(Yuv { matrix: Matrix::Bt709, range: Range::Limited, sampling, siting: Siting::Centre });
    let colours = [yuv(Sampling::S420), yuv(Sampling::S444), Colour::Rgb, Colour::Mono(Range::Full)];
    let of = |colour| depths.iter().map(move |depth| Format::new(Size { width, height }, *depth, colour).unwrap());
    colours.into_iter().flat_map(of).collect()
}

/// What a chain makes of a frame on the CPU and by whole planes, and whether nothing of it was computed with numbers. The
/// frame's memory was another's before, of which nothing may show.
fn both(chain: &str, format: Format, input: &[u8]) -> (Vec<u8>, Vec<u8>, bool) {
    let plan = Plan::new(&chain.parse().unwrap(), format).unwrap_or_else(|error| panic!("{error}"));
    let program = plan.last(false);
    let mut work = HostWork::open(program).unwrap();
    work.spoil();
    let made = work
        .frame(program, Some(input), &[], Some(vec![0xaa; plan.output.frame_bytes()]), Cancellation::never())
        .unwrap();
    let wanted = reference::results(program, reference::planes_of(format, input));
    (made, reference::frame_of(plan.output, &wanted), work.walks_nothing())
}

#[test]
fn samples_that_only_move_stay_codes() {
    let chains = ["crop=1x1", "pad=140x80+6+4:ff8000", "flip=h", "flip=v", "rotate=90", "rotate=180", "rotate=270"];
    for (size, chain) in SIZES.into_iter().flat_map(|size| chains.map(|chain| (size, chain))) {
        for format in formats(size, &[8, 10, 16]) {
            let input = frame(&mut Dice::new(9), format);
            let (made, wanted, is_all_codes) = both(chain, format, &input);
            // Chroma that lies beside its luma does not only move when a frame is turned round.
            let turns = chain.contains("flip") || chain.contains("rotate");
            let is_subsampled = format.to_string().contains("yuv42");
            assert!(is_all_codes || turns && is_subsampled, "{chain} on {format}");
            assert!(made == wanted, "{chain} on {format}");
        }
    }
}

#[test]
fn codes_that_are_looked_up_are_those_that_are_computed() {
    for chain in ["gamma=1.4", "levels=0.1:0.8:0.7,gamma=2"] {
        for format in formats((66, 34), &[8, 10, 12]) {
            let input = frame(&mut Dice::new(4), format);
            let (made, wanted, is_all_codes) = both(chain, format, &input);
            assert!(is_all_codes, "{chain} on {format}");
            assert!(made == wanted, "{chain} on {format}");
        }
    }
}

/// How far codes of two frames are apart, each by each.
fn apart(format: Format, one: &[u8], other: &[u8]) -> Vec<u16> {
    assert_eq!(one.len(), other.len(), "{format}");
    let codes = |bytes: &[u8]| -> Vec<u16> {
        match format.sample_bytes() {
            1 => bytes.iter().copied().map(u16::from).collect(),
            _ => bytes.as_chunks().0.iter().map(|code| u16::from_le_bytes(*code)).collect(),
        }
    };
    codes(one).iter().zip(codes(other)).map(|(one, other)| one.abs_diff(other)).collect()
}

/// A picture to lay over frames, in a folder of the test's own.
fn logo(folder: &std::path::Path) -> String {
    let path = folder.join("logo.ppm");
    let samples: Vec<u8> = (0..5 * 3 * 3).map(|at| at * 5).collect();
    std::fs::write(&path, [b"P6 5 3 255\n", samples.as_slice()].concat()).unwrap();
    format!("overlay={}:+1+0:0.5", path.display())
}

/// Every operation that says what it does to codes, after every other.
#[test]
fn two_operations_on_codes_are_two_on_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let over = logo(folder.path());
    let operations = [
        "crop=12x14+4+2",
        "pad=140x160+4+6:204060",
        "pad=150x170+8+2:black",
        "flip=h",
        "flip=v",
        "rotate=90",
        "rotate=180",
        "rotate=270",
        "gamma=1.4",
        "levels=0.1:0.8:0.7",
        "scale=50%",
        "scale=37x51:lanczos",
        "scale=100x120:bilinear",
        over.as_str(),
    ];
    let (mut all_codes, mut refused) = (0, 0);
    for (first, second) in operations.iter().flat_map(|first| operations.map(|second| (first, second))) {
        let chain = format!("{first},{second}");
        for format in formats((66, 34), &[8, 10]).into_iter().chain(formats((35, 61), &[8])) {
            // The same crop does not fit into itself, nor one pad into a smaller one.
            if Plan::new(&chain.parse().unwrap(), format).is_err() {
                refused += 1;
                continue;
            }
            let input = frame(&mut Dice::new(7), format);
            let (made, wanted, is_all_codes) = both(&chain, format, &input);
            let apart = apart(format, &made, &wanted).into_iter().max().unwrap();
            assert!(apart <= u16::from(chain.contains("scale")), "{chain} on {format}: {apart} apart");
            all_codes += usize::from(is_all_codes);
        }
    }
    assert!(refused <= 4 * 12, "{refused} chains were not tried");
    assert!(all_codes > 300, "only {all_codes} frames were made of codes alone");
}

/// Codes are rounded once: what a second operation sees are numbers, and those are walked.
#[test]
fn what_is_computed_twice_is_rounded_once() {
    let format = formats((66, 34), &[8]).remove(0);
    let input = frame(&mut Dice::new(4), format);
    for chain in ["gamma=1.4,blur=1", "gamma=3,scale=40x30,gamma=0.3"] {
        let (made, wanted, is_all_codes) = both(chain, format, &input);
        // Chroma, which gamma leaves alone, is scaled as codes; that is held elsewhere.
        let luma = 30 * 40;
        assert!(!is_all_codes && made[..luma] == wanted[..luma], "{chain}");
    }
}

#[test]
fn what_is_left_alone_stays_though_the_rest_is_computed() {
    let format = formats((66, 34), &[8]).remove(0);
    let input = frame(&mut Dice::new(4), format);
    let (made, wanted, is_all_codes) = both("convolve=0 1 0/1 2 1/0 1 0", format, &input);
    assert!(!is_all_codes && made == wanted);
    assert_eq!(made[66 * 34..], input[66 * 34..], "chroma");
}

#[test]
fn codes_above_the_highest_count_as_the_highest() {
    let format = Format::new(Size { width: 2, height: 1 }, 10, Colour::Mono(Range::Full)).unwrap();
    for chain in ["flip=h", "gamma=1"] {
        let (made, ..) = both(chain, format, &[0, 1, 255, 255]);
        let wanted = if chain == "flip=h" { [255, 3, 0, 1] } else { [0, 1, 255, 3] };
        assert_eq!(made, wanted, "{chain}");
    }
}

#[test]
fn scaled_codes_are_within_one_and_mostly_the_same() {
    let targets = [(40, 30), (200, 100), (66, 17), (33, 34), (131, 20), (1, 1)];
    let filters = ["nearest", "bilinear", "bicubic", "lanczos", "area"];
    for depth in [8, 9, 10] {
        let (mut samples, mut differing) = (0, 0);
        for (target, filter) in targets.into_iter().flat_map(|target| filters.map(|filter| (target, filter))) {
            for size in SIZES {
                let chain = format!("scale={}x{}:{filter}", target.0, target.1);
                for format in formats(size, &[depth]) {
                    let input = frame(&mut Dice::new(u64::from(size.0)), format);
                    let (made, wanted, _) = both(&chain, format, &input);
                    let apart = apart(format, &made, &wanted);
                    assert!(apart.iter().all(|apart| *apart <= 1), "{chain} on {format}");
                    samples += apart.len();
                    differing += apart.iter().filter(|apart| **apart > 0).count();
                }
            }
        }
        assert!(differing * 25 < samples, "{depth} bits: {differing} of {samples} differ");
    }
}

#[test]
fn ordinary_scaling_is_done_in_whole_numbers() {
    for format in formats((130, 70), &[8, 9, 10]).into_iter().filter(|format| format.colour() != Colour::Rgb) {
        let input = frame(&mut Dice::new(3), format);
        for chain in ["scale=50%", "scale=200%:lanczos", "scale=87x47:bilinear", "scale=130x90", "scale=99x70"] {
            assert!(both(chain, format, &input).2, "{chain} on {format}");
        }
        assert!(!both("scale=10%", format, &input).2, "long windows lose too much");
    }
    for format in formats((192, 108), &[11, 12]) {
        let input = frame(&mut Dice::new(3), format);
        assert!(!both("scale=128x72:bicubic", format, &input).2, "deep codes lose too much");
    }
}

/// A flat picture stays what it is, whatever the weights are rounded to.
#[test]
fn flat_pictures_stay_flat() {
    for depth in [8, 10] {
        let format = Format::new(Size { width: 64, height: 48 }, depth, Colour::Mono(Range::Full)).unwrap();
        for code in 0..=format.code_max() {
            for chain in ["scale=48x30:lanczos", "scale=100x99:bicubic", "scale=43x32:bicubic", "scale=50x40:bilinear"]
            {
                let flat = code.to_le_bytes()[..format.sample_bytes()].repeat(64 * 48);
                let (made, ..) = both(chain, format, &flat);
                let is_same = made.chunks_exact(format.sample_bytes()).all(|made| flat.starts_with(made));
                assert!(is_same, "{chain} of {code}, {depth} bits");
            }
        }
    }
}
