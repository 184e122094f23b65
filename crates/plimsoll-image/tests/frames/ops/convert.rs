//! `yuv`, `rgb`, `mono` and `depth`: colour bars as published, ways there and back, and chroma where it lies.

use plimsoll_image::frames::{Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

#[test]
fn every_way_agrees() {
    for chain in ["rgb", "mono", "depth=10", "depth=16", "yuv=709", "yuv=601:full:444", "yuv=2020:422:centre"] {
        every_way(chain, &SIZES, 0.0);
    }
}

#[test]
fn every_way_agrees_on_a_long_chain() {
    every_way(
        "rgb,yuv=601:full:422:centre,yuv=709:420:topleft,depth=12,mono,yuv=2020:444,rgb,yuv=709,depth=16,rgb",
        &SIZES,
        0.0,
    );
}

/// What became of single colours. Sixteen bits in, so that 75 % is 75 % at every depth.
fn colours(chain: &str, rgb: &[[f64; 3]]) -> Vec<[u16; 3]> {
    let codes_in = rgb.iter().flatten().flat_map(|share| ((share * 65535.0).round() as u16).to_le_bytes());
    let format = Format::new(size(rgb.len() as u32, 1), 16, Colour::Rgb).expect("a format");
    let input = Frame::new(format, codes_in.collect::<Vec<u8>>()).expect("three codes a colour");
    let bench = Bench::new();
    let out = codes(&bench.run(&bench.register(chain), Way::Gpu, &input));
    (0..rgb.len()).map(|at| [0, 1, 2].map(|plane| out[plane * rgb.len() + at])).collect()
}

/// White, yellow, cyan, green, magenta, red, blue.
fn bars(level: f64) -> Vec<[f64; 3]> {
    let on = [[1, 1, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 1]];
    on.map(|bar| bar.map(|channel| f64::from(channel) * level)).to_vec()
}

#[test]
fn bt_709_bars_are_as_in_smpte_rp_219() {
    let eight = [
        [180, 128, 128],
        [168, 44, 136],
        [145, 147, 44],
        [133, 63, 52],
        [63, 193, 204],
        [51, 109, 212],
        [28, 212, 120],
    ];
    assert_eq!(colours("yuv=709:444,depth=8", &bars(0.75)), eight);
    let ten = [
        [721, 512, 512],
        [674, 176, 543],
        [581, 589, 176],
        [534, 253, 207],
        [251, 771, 817],
        [204, 435, 848],
        [111, 848, 481],
    ];
    assert_eq!(colours("yuv=709:444,depth=10", &bars(0.75)), ten);
    let whole = [
        [235, 128, 128],
        [219, 16, 138],
        [188, 154, 16],
        [173, 42, 26],
        [78, 214, 230],
        [63, 102, 240],
        [32, 240, 118],
    ];
    assert_eq!(colours("depth=8,yuv=709:444", &bars(1.0)), whole);
}

#[test]
fn bt_601_bars_are_as_in_smpte_eg_1() {
    let three_quarters = [
        [180, 128, 128],
        [162, 44, 142],
        [131, 156, 44],
        [112, 72, 58],
        [84, 184, 198],
        [65, 100, 212],
        [35, 212, 114],
    ];
    assert_eq!(colours("yuv=601:444,depth=8", &bars(0.75)), three_quarters);
    let whole = [
        [235, 128, 128],
        [210, 16, 146],
        [170, 166, 16],
        [145, 54, 34],
        [106, 202, 222],
        [81, 90, 240],
        [41, 240, 110],
    ];
    assert_eq!(colours("yuv=601:444,depth=8", &bars(1.0)), whole);
}

#[test]
fn bt_2020_primaries_are_as_its_equations_say() {
    // By hand from BT.2020-2, tables 4 and 5: 64 + 876 Y', 512 + 896 C'.
    let codes = colours("yuv=2020:444,depth=10", &[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    assert_eq!(codes, [[294, 387, 960], [658, 189, 100], [116, 960, 476]]);
}

#[test]
fn full_range_is_as_in_jfif() {
    let codes = colours("yuv=601:full:444,depth=8", &[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0; 3]]);
    assert_eq!(codes, [[76, 85, 255], [150, 44, 21], [29, 255, 107], [255, 128, 128]]);
}

#[test]
fn there_and_back_is_where_it_was() {
    let bench = Bench::new();
    let input = frame(Format::new(size(64, 48), 8, Colour::Rgb).expect("a format"), 3);
    let back = bench.register("rgb,depth=8");
    for matrix in ["601", "709", "2020"] {
        // The middle is a frame of its own, so its codes are rounded: all 8 bits lose at most a code, 10 bits none.
        for (middle, apart) in [(format!("yuv={matrix}:full:444"), 1), (format!("depth=10,yuv={matrix}:444"), 0)] {
            let there = bench.run(&bench.register(&middle), Way::Cpu, &input);
            let again = bench.run(&back, Way::Cpu, &there);
            let worst = codes(&again).iter().zip(codes(&input)).map(|(a, b)| a.abs_diff(b)).max();
            assert!(worst.is_some_and(|worst| worst <= apart), "{middle}: {worst:?} codes apart");
        }
    }
}

#[test]
fn what_is_brighter_than_white_survives_a_way_through_rgb() {
    let bench = Bench::new();
    let chains = ["yuv=709:444", "yuv=709:444,rgb,yuv=601:full:444,rgb,yuv=709:444"].map(|chain| bench.register(chain));
    for format in &formats(size(16, 8))[..3] {
        let input = frame(*format, 2);
        let [straight, through] = chains.each_ref().map(|chain| codes(&bench.run(chain, Way::Cpu, &input)));
        // Rounding may tip over; what was cut off would be twenty codes lower at eight bits.
        assert!(straight.iter().zip(&through).all(|(a, b)| a.abs_diff(*b) <= 1), "{format}");
        assert!(straight.iter().max() > Some(&(format.code_max() / 255 * 240)), "{format}: nothing is that bright");
    }
}

#[test]
fn nothing_changes_that_is_already_so() {
    let bench = Bench::new();
    for format in formats(size(33, 17)) {
        let input = frame(format, 4);
        let same = match format.colour() {
            Colour::Rgb => "rgb".to_owned(),
            Colour::Mono(_) => "mono".to_owned(),
            Colour::Yuv(_) => "yuv=709".to_owned(),
        };
        let chain = bench.register(&format!("{same},depth={}", format.depth()));
        assert_eq!(bench.run(&chain, Way::Gpu, &input), input, "{format}");
    }
}

#[test]
fn depths_keep_the_meaning_of_codes() {
    let bench = Bench::new();
    let one = |colour: Colour, depth: u8, code: u16, chain: &str| {
        let format = Format::new(size(1, 1), depth, colour).expect("a format");
        let bytes: Vec<u8> = (0..format.frame_bytes() / format.sample_bytes())
            .flat_map(|_| code.to_le_bytes()[..format.sample_bytes()].to_vec())
            .collect();
        codes(&bench.run(&bench.register(chain), Way::Cpu, &Frame::new(format, bytes).expect("a frame")))
    };
    // In limited range a code is followed by zeros; where all codes are used, the highest is the highest.
    let limited = Colour::Yuv(Yuv {
        matrix: Matrix::Bt709,
        range: Range::Limited,
        sampling: Sampling::S444,
        siting: Siting::Left,
    });
    for code in [0, 16, 77, 128, 235] {
        assert_eq!(one(limited, 8, code, "depth=10"), [code * 4; 3]);
        assert_eq!(one(limited, 10, code * 4, "depth=16"), [code * 256; 3]);
        assert_eq!(one(limited, 16, code * 256, "depth=8"), [code; 3]);
        assert_eq!(one(Colour::Mono(Range::Full), 8, code, "depth=16"), [code * 257]);
    }
    assert_eq!(one(Colour::Rgb, 8, 255, "depth=12"), [4095; 3]);
}

#[test]
fn what_has_no_colour_gets_none() {
    let bench = Bench::new();
    let input = frame(Format::new(size(5, 3), 8, Colour::Mono(Range::Limited)).expect("a format"), 1);
    let out = bench.run(&bench.register("yuv=709"), Way::Gpu, &input);
    assert_eq!(&out.bytes()[..15], input.bytes());
    assert_eq!(out.bytes()[15..], [128; 12]);
    let back = bench.run(&bench.register("mono=limited"), Way::Gpu, &out);
    assert_eq!(back, input);
}

/// Readers of luma alone differ about its range unless all codes are used: ffmpeg takes it for that whatever is said.
#[test]
fn luma_alone_uses_all_codes() {
    let bench = Bench::new();
    let input =
        Frame::new(formats(size(4, 2))[0], vec![16, 235, 126, 16, 16, 16, 16, 16, 9, 9, 9, 9]).expect("a frame");
    for way in [Way::Cpu, Way::Gpu] {
        let out = bench.run(&bench.register("mono"), way, &input);
        assert_eq!(out.format().colour(), Colour::Mono(Range::Full));
        assert_eq!(out.bytes(), [0, 255, 128, 0, 0, 0, 0, 0]);
        let as_it_was = bench.run(&bench.register("mono=limited"), way, &input);
        assert_eq!(as_it_was.bytes(), &input.bytes()[..8]);
    }
    assert_eq!(out_of("mono=limited", Colour::Rgb), Colour::Mono(Range::Limited));
}

fn out_of(chain: &str, colour: Colour) -> Colour {
    let format = Format::new(size(4, 2), 8, colour).expect("a format");
    chain.parse::<plimsoll_image::frames::Chain>().expect("a chain").output(format).expect("it can be done").colour()
}

/// A word that is not said stays; there must be a matrix to stay.
#[test]
fn what_is_not_said_stays() {
    let [left, centre] = [Siting::Left, Siting::Centre]
        .map(|siting| Colour::Yuv(Yuv { matrix: Matrix::Bt601, range: Range::Full, sampling: Sampling::S422, siting }));
    assert_eq!(out_of("yuv=left", centre), left);
    assert_eq!(out_of("yuv=422:centre:full:601", left), centre);
    let format = Format::new(size(4, 2), 8, Colour::Rgb).expect("a format");
    let error = "yuv=420".parse::<plimsoll_image::frames::Chain>().expect("a chain").output(format);
    assert!(error.expect_err("no matrix").to_string().contains("yuv=709"));
}

pub(super) const SITINGS: [Siting; 3] = [Siting::Left, Siting::Centre, Siting::TopLeft];
const SAMPLINGS: [Sampling; 3] = [Sampling::S420, Sampling::S422, Sampling::S444];

/// Where the first chroma sample lies, and how far it is to the next: in luma samples.
pub(super) fn lattice(sampling: Sampling, siting: Siting) -> [(f64, f64); 2] {
    let (on, between) = ((0.0, 2.0), (0.5, 2.0));
    let across = if siting == Siting::Centre { between } else { on };
    let down = if siting == Siting::TopLeft { on } else { between };
    match sampling {
        Sampling::S444 => [(0.0, 1.0); 2],
        Sampling::S422 => [across, (0.0, 1.0)],
        Sampling::S420 => [across, down],
    }
}

/// A frame whose chroma is a slope over luma positions, steeper across than down, so that no filter may bend it.
fn slope(sampling: Sampling, siting: Siting) -> Frame {
    let yuv = Yuv { matrix: Matrix::Bt709, range: Range::Full, sampling, siting };
    let format = Format::new(size(40, 36), 16, Colour::Yuv(yuv)).expect("a format");
    let [(left, wide), (top, tall)] = lattice(sampling, siting);
    let chroma = sampling.chroma_size(format.size());
    let at = |x: u32, y: u32| 2000.0 + 320.0 * (left + f64::from(x) * wide) + 64.0 * (top + f64::from(y) * tall);
    let plane = || (0..chroma.height).flat_map(move |y| (0..chroma.width).map(move |x| at(x, y) as u16));
    let all = std::iter::repeat_n(30_000, 40 * 36).chain(plane()).chain(plane());
    Frame::new(format, all.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()).expect("as many as the format says")
}

#[test]
fn slopes_stay_slopes_wherever_chroma_lies() {
    let bench = Bench::new();
    let kinds = || SAMPLINGS.into_iter().flat_map(|sampling| SITINGS.map(|siting| (sampling, siting)));
    for (from, to) in kinds().flat_map(|from| kinds().map(move |to| (from, to))) {
        let word = ["left", "centre", "topleft"][SITINGS.iter().position(|siting| *siting == to.1).expect("listed")];
        let chain = bench.register(&format!("yuv=709:full:{}:{word}", to.0));
        let (got, wanted) = (bench.run(&chain, Way::Cpu, &slope(from.0, from.1)), slope(to.0, to.1));
        assert_eq!(got.format(), wanted.format());
        let chroma = to.0.chroma_size(wanted.format().size());
        let (got, wanted) = (codes(&got), codes(&wanted));
        for y in 2..chroma.height - 2 {
            for x in 2..chroma.width - 2 {
                let at = (40 * 36 + y * chroma.width + x) as usize;
                assert!(
                    got[at].abs_diff(wanted[at]) == 0,
                    "{from:?} to {to:?} at {x}, {y}: {} {}",
                    got[at],
                    wanted[at]
                );
            }
        }
    }
}

#[test]
fn words_may_be_left_out_but_not_said_twice() {
    let parse = |text: &str| text.parse::<plimsoll_image::frames::Chain>();
    for right in ["yuv=601", "yuv=709:444", "yuv=2020:full", "yuv=2020:420:topleft:full"] {
        assert!(parse(right).is_ok(), "{right}");
    }
    for wrong in
        ["yuv", "mono=some", "yuv=470", "yuv=709:411", "yuv=709:full:limited", "yuv=709:444:420", "depth=9", "rgb=1"]
    {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
