//! `flip`

use plimsoll_image::Size;
use plimsoll_image::frames::{Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

use super::convert::{SITINGS, lattice};
use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

#[test]
fn every_way_agrees() {
    every_way("flip=h", &SIZES, 0.0);
    every_way("flip=v", &SIZES, 0.0);
}

/// A frame whose luma and chroma are one slope over luma positions, as a picture would show it that `seen` turned.
pub(super) fn slope(
    (sampling, siting): (Sampling, Siting),
    (width, height): (u32, u32),
    seen: impl Fn(f64, f64) -> (f64, f64),
) -> Frame {
    let yuv = Yuv { matrix: Matrix::Bt709, range: Range::Full, sampling, siting };
    let format = Format::new(size(width, height), 16, Colour::Yuv(yuv)).expect("a format");
    let [(left, wide), (top, tall)] = lattice(sampling, siting);
    let chroma = sampling.chroma_size(format.size());
    let level = |x: f64, y: f64| {
        let (x, y) = seen(x, y);
        (20_000.0 + 320.0 * x + 64.0 * y).round() as u16
    };
    let luma = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| level(x.into(), y.into()));
    let place = |x: u32, y: u32| level(left + f64::from(x) * wide, top + f64::from(y) * tall);
    let plane: Vec<u16> =
        (0..chroma.height).flat_map(|y| (0..chroma.width).map(move |x| (x, y))).map(|(x, y)| place(x, y)).collect();
    let all = luma.chain(plane.iter().copied()).chain(plane.iter().copied());
    Frame::new(format, all.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()).expect("as many as the format says")
}

/// Holds what a chain makes of a slope against the slope that it should be, three chroma samples from the edges.
pub(super) fn slopes_are_kept(
    bench: &Bench,
    chain: &str,
    sides: (u32, u32),
    kind: (Sampling, Siting),
    seen: impl Fn(f64, f64) -> (f64, f64),
) {
    let got = bench.run(&bench.register(chain), Way::Cpu, &slope(kind, sides, |x, y| (x, y)));
    let Size { width, height } = got.format().size();
    let wanted = slope(kind, (width, height), seen);
    assert_eq!(got.format(), wanted.format());
    let (chroma, first) = (kind.0.chroma_size(got.format().size()), (width * height) as usize);
    let (got, wanted) = (codes(&got), codes(&wanted));
    assert!(got[..first] == wanted[..first], "{chain}: luma");
    for (x, y) in (3..chroma.height - 3).flat_map(|y| (3..chroma.width - 3).map(move |x| (x, y))) {
        let at = first + (y * chroma.width + x) as usize;
        let what = format!("{chain} of {kind:?} {sides:?} at {x}, {y}");
        assert!(got[at].abs_diff(wanted[at]) <= 1, "{what}: {}, not {}", got[at], wanted[at]);
    }
}

#[test]
fn chroma_stays_under_its_luma() {
    let bench = Bench::new();
    for sampling in [Sampling::S420, Sampling::S422, Sampling::S444] {
        for siting in SITINGS {
            for (width, height) in [(40, 36), (41, 36), (40, 35), (41, 35)] {
                let (w, h) = (f64::from(width - 1), f64::from(height - 1));
                let check = |chain: &str, seen: &dyn Fn(f64, f64) -> (f64, f64)| {
                    slopes_are_kept(&bench, chain, (width, height), (sampling, siting), seen);
                };
                check("flip=h", &|x, y| (w - x, y));
                check("flip=v", &|x, y| (x, h - y));
                check("rotate=180", &|x, y| (w - x, h - y));
            }
        }
    }
}

#[test]
fn each_plane_is_mirrored_by_itself() {
    let bench = Bench::new();
    // Luma of 3 x 2, then chroma of 2 x 1 twice, on the first and the last column and between the rows.
    let input = frame(formats(size(3, 2))[0], 1);
    let [a, b, c, d, e, f, g, h, i, j] = *input.bytes() else { panic!("ten samples") };
    let of = |chain| bench.run(&bench.register(chain), Way::Gpu, &input).bytes().to_vec();
    assert_eq!(of("flip=h"), [c, b, a, f, e, d, h, g, j, i]);
    assert_eq!(of("flip=v"), [d, e, f, a, b, c, g, h, i, j]);
    assert_eq!(of("flip=h,flip=v,flip=h,flip=v"), input.bytes());
}
