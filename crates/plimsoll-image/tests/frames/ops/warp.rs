//! `warp`, beside the same map computed naively in `f64`.

use plimsoll_image::frames::{Chain, Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

/// See `ops/warp/pass.rs`: what a GPU may differ by at a magnification near 1.
const BILINEAR: f64 = 1.4e-5;
const BICUBIC: f64 = 2.6e-5;

#[test]
fn every_way_agrees() {
    // Corners in and out of the pictures; magnification near 1 for the large one, far below for the small.
    every_way("warp=12:-7:600:30:650:440:-9:470", &[(641, 479)], BILINEAR);
    every_way("warp=12:-7:600:30:650:440:-9:470:bicubic:black", &[(641, 479)], BICUBIC);
    every_way("warp=3:1:30:4:28:15:-2:19:bicubic", &SIZES[1..], BICUBIC);
    every_way("warp=3:1:30:4:28:15:-2:19:black:size=37x21", &SIZES[1..], BILINEAR);
}

/// Where rows come from in every direction: the CPU rung holds only rows that are still needed.
#[test]
fn the_cpu_rung_holds_the_rows_it_needs() {
    let bench = Bench::new();
    let format = formats(size(45, 203))[0];
    let input = frame(format, 6);
    let (w, h) = (45.0, 203.0);
    for turn in 0..24 {
        let angle = f64::from(turn) * 0.2618;
        // A rectangle turned about its middle, pulled in at one corner.
        let corners = [(-0.45, -0.4), (0.4, -0.5), (0.5, 0.35), (-0.3, 0.45)].map(|(x, y)| {
            let (x, y) = (x * w, y * h);
            (w / 2.0 + x * angle.cos() - y * angle.sin(), h / 2.0 + x * angle.sin() + y * angle.cos())
        });
        let corners = corners.map(|(x, y)| format!("{x:.3}:{y:.3}")).join(":");
        for end in ["bilinear:edge", "bicubic:black:size=31x190"] {
            let chain = bench.register(&format!("warp={corners}:{end}"));
            let [cpu, twin] = [Way::Cpu, Way::Twin].map(|way| bench.run(&chain, way, &input));
            assert!(cpu == twin, "turn {turn} {end}");
        }
    }
}

fn whole(width: u32, height: u32) -> String {
    format!("0:0:{width}:0:{width}:{height}:0:{height}")
}

#[test]
fn the_picture_s_own_corners_change_nothing() {
    let bench = Bench::new();
    for (width, height) in SIZES {
        for end in ["", ":bicubic", ":black", ":bicubic:black"] {
            let chain = bench.register(&format!("warp={}{end}", whole(width, height)));
            for format in formats(size(width, height)) {
                let input = frame(format, 3);
                let ways: &[Way] = if width < 600 { &[Way::Cpu, Way::Gpu] } else { &[Way::Cpu] };
                for way in ways {
                    assert!(bench.run(&chain, *way, &input) == input, "{format}{end} {way:?}");
                }
            }
        }
    }
}

#[test]
fn a_quarter_turn_is_a_copy() {
    let bench = Bench::new();
    let (width, height) = (61, 34);
    let corners = format!("0:{height}:0:0:{width}:0:{width}:{height}");
    for end in ["", ":bicubic:black"] {
        let chain = bench.register(&format!("warp={corners}{end}:size={height}x{width}"));
        for depth in [8, 16] {
            let format = Format::new(size(width, height), depth, Colour::Mono(Range::Full)).unwrap();
            let input = frame(format, 8);
            let from = codes(&input);
            let turned = (0..width).flat_map(|y| (0..height).map(move |x| (x, y)));
            let wanted: Vec<u16> = turned.map(|(x, y)| from[((height - 1 - x) * width + y) as usize]).collect();
            for way in [Way::Cpu, Way::Gpu] {
                assert_eq!(codes(&bench.run(&chain, way, &input)), wanted, "{depth} bits{end} {way:?}");
            }
        }
    }
}

/// The place in the source, by solving the eight equations of the four corners.
fn naive_map(quad: [[f64; 2]; 4], width: f64, height: f64) -> impl Fn(f64, f64) -> [f64; 2] {
    let corners = [[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]];
    let mut rows: Vec<[f64; 9]> = Vec::new();
    for ([x, y], [to_x, to_y]) in corners.into_iter().zip(quad) {
        rows.push([x, y, 1.0, 0.0, 0.0, 0.0, -x * to_x, -y * to_x, to_x]);
        rows.push([0.0, 0.0, 0.0, x, y, 1.0, -x * to_y, -y * to_y, to_y]);
    }
    for column in 0..8 {
        let pivot = (column..8).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs())).unwrap();
        rows.swap(column, pivot);
        let lead = rows[column].map(|value| value / rows[column][column]);
        for (at, row) in rows.iter_mut().enumerate() {
            let times = row[column];
            *row = if at == column { lead } else { std::array::from_fn(|k| row[k] - times * lead[k]) };
        }
    }
    let h: [f64; 8] = std::array::from_fn(|at| rows[at][8]);
    move |x, y| {
        let depth = h[6] * x + h[7] * y + 1.0;
        [(h[0] * x + h[1] * y + h[2]) / depth, (h[3] * x + h[4] * y + h[5]) / depth]
    }
}

/// Where samples lie: the first, and from each to the next.
type Grid = ([f64; 2], [f64; 2]);

struct Naive<'a> {
    samples: &'a [u16],
    size: (i64, i64),
    fill: Option<f64>,
}

impl Naive<'_> {
    fn sample(&self, x: i64, y: i64) -> f64 {
        let inside = (x.clamp(0, self.size.0 - 1), y.clamp(0, self.size.1 - 1));
        match self.fill {
            Some(fill) if inside != (x, y) => fill,
            _ => f64::from(self.samples[(inside.1 * self.size.0 + inside.0) as usize]),
        }
    }

    fn at(&self, x: f64, y: f64, kernel: fn(f64) -> f64) -> f64 {
        let (left, top) = (x.floor() as i64, y.floor() as i64);
        let places = (top - 1..=top + 2).flat_map(|v| (left - 1..=left + 2).map(move |u| (u, v)));
        places.map(|(u, v)| self.sample(u, v) * kernel(x - u as f64) * kernel(y - v as f64)).sum()
    }
}

fn tent(x: f64) -> f64 {
    (1.0 - x.abs()).max(0.0)
}

fn catmull_rom(x: f64) -> f64 {
    match x.abs() {
        x if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        x if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        _ => 0.0,
    }
}

/// One plane through the naive map.
fn naive_plane(
    naive: &Naive<'_>,
    map: &impl Fn(f64, f64) -> [f64; 2],
    to: (i64, i64),
    (first, step): Grid,
    kernel: fn(f64) -> f64,
    max: f64,
) -> Vec<f64> {
    let places = (0..to.1).flat_map(|y| (0..to.0).map(move |x| (x as f64, y as f64)));
    let value = |(x, y): (f64, f64)| {
        let [to_x, to_y] = map(first[0] + step[0] * x, first[1] + step[1] * y);
        naive.at((to_x - first[0]) / step[0], (to_y - first[1]) / step[1], kernel).clamp(0.0, max)
    };
    places.map(value).collect()
}

#[test]
fn it_is_the_projective_map() {
    let quad = [[5.5, -3.0], [58.0, 6.25], [70.0, 44.0], [-4.0, 39.0]];
    let corners = quad.iter().flatten().map(f64::to_string).collect::<Vec<_>>().join(":");
    let (from, to) = (size(67, 45), size(59, 38));
    let bench = Bench::new();
    let sitings = [(Siting::Left, [0.5, 1.0]), (Siting::Centre, [1.0, 1.0]), (Siting::TopLeft, [0.5, 0.5])];
    for (siting, first) in sitings {
        for (filter, outside, kernel) in
            [("bilinear", "edge", tent as fn(f64) -> f64), ("bicubic", "black", catmull_rom)]
        {
            let yuv = Yuv { matrix: Matrix::Bt709, range: Range::Limited, sampling: Sampling::S420, siting };
            let format = Format::new(from, 12, Colour::Yuv(yuv)).unwrap();
            let input = frame(format, 21);
            let chain = bench.register(&format!("warp={corners}:{filter}:{outside}:size={to}"));
            let got: Vec<Vec<u16>> = [Way::Cpu, Way::Gpu].map(|way| codes(&bench.run(&chain, way, &input))).to_vec();
            let map = naive_map(quad, to.width.into(), to.height.into());
            let wanted = naive_yuv(&input, to, &map, first, kernel, outside == "black");
            for got in got {
                assert_eq!(got.len(), wanted.len());
                for (at, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
                    // Half a code of rounding, and what f32 sums of sixteen products are off by.
                    let apart = (f64::from(*got) - wanted).abs();
                    assert!(apart <= 0.52, "{siting:?} {filter}: sample {at} is {got}, not {wanted}");
                }
            }
        }
    }
}

fn naive_yuv(
    input: &Frame,
    to: plimsoll_image::Size,
    map: &impl Fn(f64, f64) -> [f64; 2],
    chroma_first: [f64; 2],
    kernel: fn(f64) -> f64,
    black: bool,
) -> Vec<f64> {
    let (format, samples) = (input.format(), codes(input));
    let to = format.with_size(to).unwrap();
    let (mut wanted, mut start) = (Vec::new(), 0);
    for (plane, (from, to)) in format.plane_sizes().into_iter().zip(to.plane_sizes()).enumerate() {
        let grid = if plane == 0 { ([0.5; 2], [1.0; 2]) } else { (chroma_first, [2.0; 2]) };
        let fill = black.then_some(if plane == 0 { 256.0 } else { 2048.0 });
        let end = start + from.pixels() as usize;
        let naive = Naive { samples: &samples[start..end], size: (from.width.into(), from.height.into()), fill };
        let size = (to.width.into(), to.height.into());
        wanted.extend(naive_plane(&naive, map, size, grid, kernel, format.code_max().into()));
        start = end;
    }
    wanted
}

#[test]
fn what_is_no_shape_is_refused() {
    let format = formats(size(32, 32))[0];
    for (corners, why) in [("0:0:9:0:0:9:9:9", "convex"), ("0:0:1:1:2:2:3:3", "line"), ("0:0:9:0:2:2:0:9", "convex")] {
        let chain: Chain = format!("warp={corners}").parse().unwrap();
        let refused = chain.output(format).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    for wrong in ["0:0:9:0:0:9:9", "0:0:9:0:0:9:9:nan", "0:0:9:0:0:9:9:9:cubic", "0:0:9:0:9:9:0:9:size=4x4+1+1"] {
        assert!(format!("warp={wrong}").parse::<Chain>().is_err(), "{wrong}");
    }
}
