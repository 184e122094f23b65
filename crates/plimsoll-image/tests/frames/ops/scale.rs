//! `scale`: every way agrees, an outside library agrees, and chroma stays with its luma.

use fast_image_resize::images::Image;
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use plimsoll_image::Size;
use plimsoll_image::frames::{Chain, Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

use crate::agree::every_way;
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

/// A GPU may keep more digits between a multiplication and an addition: that tips over single codes, no more.
const BOUND: f64 = 0.0;

const FILTERS: [&str; 5] = ["nearest", "bilinear", "bicubic", "lanczos", "area"];

#[test]
fn every_way_agrees() {
    for filter in FILTERS {
        every_way(&format!("scale=31x13:{filter}"), &[(33, 17), (7, 5), (1, 1)], BOUND);
        every_way(&format!("scale=50%:{filter}"), &[(64, 48), (33, 17)], BOUND);
    }
}

#[test]
fn every_way_agrees_on_large_frames() {
    every_way("scale=427x319", &[(641, 479)], BOUND);
    every_way("scale=70x479:lanczos", &[(641, 479)], BOUND);
    every_way("scale=641x479:area", &[(33, 700), (700, 33)], BOUND);
}

#[test]
fn the_same_size_is_the_same_frame() {
    let bench = Bench::new();
    let chain = bench.register("scale=33x17");
    for format in formats(size(33, 17)) {
        let input = frame(format, 3);
        for way in [Way::Cpu, Way::Gpu, Way::Twin] {
            assert_eq!(bench.run(&chain, way, &input).bytes(), input.bytes(), "{format} {way:?}");
        }
    }
}

fn mono(width: u32, height: u32, depth: u8) -> Format {
    Format::new(size(width, height), depth, Colour::Mono(Range::Full)).expect("a format")
}

fn scaled(bench: &Bench, chain: &str, frame: &Frame) -> Frame {
    bench.run(&bench.register(chain), Way::Cpu, frame)
}

#[test]
fn known_samples() {
    let bench = Bench::new();
    let of = |chain: &str, width, height, samples: &[u8]| {
        let input = Frame::new(mono(width, height, 8), samples.to_vec()).expect("a frame");
        scaled(&bench, chain, &input).bytes().to_vec()
    };
    assert_eq!(of("scale=4x1:bilinear", 2, 1, &[0, 100]), [0, 25, 75, 100]);
    assert_eq!(of("scale=1x4:bilinear", 1, 2, &[0, 100]), [0, 25, 75, 100]);
    assert_eq!(of("scale=4x2:nearest", 2, 1, &[7, 9]), [7, 7, 9, 9, 7, 7, 9, 9]);
    assert_eq!(of("scale=2x1:area", 4, 2, &[10, 20, 30, 50, 30, 40, 70, 90]), [25, 60]);
    assert_eq!(of("scale=2x1:area", 3, 1, &[30, 60, 90]), [40, 80]);
    // At a quarter: weights of -3/128, 29/128, 111/128 and -9/128.
    assert_eq!(of("scale=10x1:bicubic", 5, 1, &[0, 0, 128, 0, 0])[3..7], [29, 111, 111, 29]);
    // Halved: a tent over four samples, cut at the edges.
    assert_eq!(of("scale=2x1:bilinear", 4, 1, &[0, 70, 140, 70]), [40 + 10, 90 + 10]);
}

/// What `fast_image_resize` makes of a plane of numbers. It sums in double precision.
fn outside(frame: &Frame, to: (u32, u32), alg: ResizeAlg) -> Vec<f64> {
    let max = f32::from(frame.format().code_max());
    let bytes = codes(frame).iter().flat_map(|code| (f32::from(*code) / max).to_ne_bytes()).collect();
    let from = frame.format().size();
    let input = Image::from_vec_u8(from.width, from.height, bytes, PixelType::F32).expect("an image");
    let mut output = Image::new(to.0, to.1, PixelType::F32);
    let options = ResizeOptions::new().resize_alg(alg);
    Resizer::new().resize(&input, &mut output, &options).expect("an image of another size");
    output.buffer().as_chunks().0.iter().map(|number| f64::from(f32::from_ne_bytes(*number).clamp(0.0, 1.0))).collect()
}

fn furthest_codes(frame: &Frame, outside: &[f64]) -> f64 {
    let max = f64::from(frame.format().code_max());
    let codes = codes(frame);
    assert_eq!(codes.len(), outside.len());
    codes.iter().zip(outside).map(|(code, number)| (f64::from(*code) - number * max).abs()).fold(0.0, f64::max)
}

/// A code is off by half at most from being rounded. At 16 bits a twentieth of a code more is 8e-7: what single precision
/// may lose in sums of this length. Up to 10 bits it is summed in whole numbers, where a fifth of a code may be lost.
fn off_max(depth: u8) -> f64 {
    if depth <= 10 { 0.7 } else { 0.55 }
}

#[test]
fn an_outside_library_agrees() {
    let bench = Bench::new();
    let filters = [
        ("nearest", ResizeAlg::Nearest),
        ("bilinear", ResizeAlg::Convolution(FilterType::Bilinear)),
        ("bicubic", ResizeAlg::Convolution(FilterType::CatmullRom)),
        ("lanczos", ResizeAlg::Convolution(FilterType::Lanczos3)),
    ];
    let sizes = [
        ((641, 479), (427, 319)),
        ((65, 49), (97, 131)),
        ((33, 17), (7, 50)),
        ((320, 180), (80, 45)),
        ((5, 3), (1, 1)),
    ];
    for (name, alg) in filters {
        for ((width, height), to) in sizes {
            for depth in [8, 10, 16] {
                let input = frame(mono(width, height, depth), 11);
                let ours = scaled(&bench, &format!("scale={}x{}:{name}", to.0, to.1), &input);
                let off = furthest_codes(&ours, &outside(&input, to, alg));
                assert!(off <= off_max(depth), "{name} {width}x{height} to {to:?}, {depth} bits: {off} codes");
            }
        }
    }
}

/// That library's box takes samples whole whose middle lies inside; ours takes the part of each that does. Both are the
/// same where areas end between samples.
#[test]
fn an_outside_library_agrees_on_areas_of_whole_samples() {
    let bench = Bench::new();
    for ((width, height), to) in [((640, 480), (320, 160)), ((33, 17), (11, 17)), ((5, 7), (5, 1))] {
        for depth in [8, 10, 16] {
            let input = frame(mono(width, height, depth), 12);
            let ours = scaled(&bench, &format!("scale={}x{}:area", to.0, to.1), &input);
            let off = furthest_codes(&ours, &outside(&input, to, ResizeAlg::Convolution(FilterType::Box)));
            assert!(off <= off_max(depth), "{width}x{height} to {to:?}, {depth} bits: {off} codes");
        }
    }
}

/// Codes from one luma sample to the next of the slope below, across and down.
const SLOPE: (f64, f64) = (50.0, 70.0);

/// A slope that luma and chroma show alike, as they would if both were sampled from one scene.
fn slope(format: Format, offset: (f64, f64)) -> Frame {
    let planes = format.plane_sizes().into_iter().enumerate();
    let all = planes.flat_map(|(plane, size)| {
        (0..size.height)
            .flat_map(move |y| (0..size.width).map(move |x| slope_at(format, plane, offset, (x, y), (1.0, 1.0))))
    });
    Frame::new(format, all.flat_map(|code| (code.round() as u16).to_le_bytes()).collect()).expect("a frame")
}

/// The slope at a sample of a plane, if the picture was shrunk by these ratios.
fn slope_at(format: Format, plane: usize, offset: (f64, f64), (x, y): (u32, u32), ratio: (f64, f64)) -> f64 {
    let Colour::Yuv(yuv) = format.colour() else { panic!("only for chroma") };
    let steps = if plane == 0 { (1, 1) } else { yuv.sampling.steps() };
    let place = |at: u32, step: u32, offset: f64| match step {
        1 => f64::from(at) + 0.5,
        _ => f64::from(step) * (f64::from(at) + 0.5) + offset,
    };
    let place = (place(x, steps.0, offset.0) * ratio.0, place(y, steps.1, offset.1) * ratio.1);
    1000.0 + place.0 * SLOPE.0 + place.1 * SLOPE.1
}

#[test]
fn chroma_stays_with_its_luma() {
    let bench = Bench::new();
    let sitings = [(Siting::Left, (-0.5, 0.0)), (Siting::Centre, (0.0, 0.0)), (Siting::TopLeft, (-0.5, -0.5))];
    let from = size(241, 180);
    for (siting, offset) in sitings {
        for sampling in [Sampling::S420, Sampling::S422] {
            let colour = Colour::Yuv(Yuv { matrix: Matrix::Bt709, range: Range::Full, sampling, siting });
            let input = slope(Format::new(from, 16, colour).expect("a format"), offset);
            for (to, filter) in
                [((121, 90), "bilinear"), ((160, 120), "bicubic"), ((483, 361), "bicubic"), ((400, 500), "lanczos")]
            {
                let chain = format!("scale={}x{}:{filter}", to.0, to.1);
                let (furthest, mean) = off_slope(&scaled(&bench, &chain, &input), offset, from);
                // Left out, a shift of the siting is 0.2 luma samples or more, everywhere and to the same side. A filter
                // that was widened ripples on a slope: up to half of that, to both sides.
                assert!(furthest < 0.13, "{siting:?} {sampling:?} {chain}: off by {furthest} luma samples");
                assert!(mean < 0.02, "{siting:?} {sampling:?} {chain}: off by {mean} luma samples in the mean");
            }
        }
    }
}

/// How far off the samples well inside a scaled slope lie, in luma samples of what went in: the worst sample, and the
/// mean of the worst plane.
fn off_slope(frame: &Frame, offset: (f64, f64), from: Size) -> (f64, f64) {
    let format = frame.format();
    let of = |from: u32, to: u32| f64::from(from) / f64::from(to);
    let ratio = (of(from.width, format.size().width), of(from.height, format.size().height));
    let codes = codes(frame);
    let (mut first, mut furthest, mut mean) = (0, 0.0_f64, 0.0_f64);
    for (plane, size) in format.plane_sizes().into_iter().enumerate() {
        let inside = |side: u32| side / 5..side - side / 5;
        let places = inside(size.height).flat_map(|y| inside(size.width).map(move |x| (x, y)));
        let off = places.map(|(x, y)| {
            let code = f64::from(codes[first + (y * size.width + x) as usize]);
            (code - slope_at(format, plane, offset, (x, y), ratio)) / SLOPE.0
        });
        let off: Vec<f64> = off.collect();
        furthest = off.iter().fold(furthest, |furthest, off| furthest.max(off.abs()));
        mean = mean.max((off.iter().sum::<f64>() / off.len() as f64).abs());
        first += size.pixels() as usize;
    }
    (furthest, mean)
}

#[test]
fn a_size_that_follows_from_the_shape_suits_the_chroma_grid() {
    let [yuv420, _, yuv444, ..] = formats(size(1366, 768))[..] else { panic!("there are more formats") };
    let out =
        |chain: &str, format: Format| chain.parse::<Chain>().expect("a chain").output(format).expect("a plan").size();
    assert_eq!(out("scale=50%", yuv420), size(684, 384));
    assert_eq!(out("scale=50%", yuv444), size(683, 384));
    assert_eq!(out("scale=-1x100", yuv420), size(178, 100));
    assert_eq!(out("scale=1000x-1", yuv420), size(1000, 562));
}

#[test]
fn what_cannot_be_is_refused() {
    for wrong in ["scale", "scale=0x4", "scale=-1x-1", "scale=9%:cubic", "scale=4x4:area:5"] {
        assert!(wrong.parse::<Chain>().is_err(), "{wrong}");
    }
    let huge: Chain = "scale=100000%".parse().expect("a chain");
    assert!(huge.output(formats(size(641, 479))[0]).is_err());
}
