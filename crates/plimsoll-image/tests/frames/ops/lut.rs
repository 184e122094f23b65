//! `lut`, beside ffmpeg's `lut3d` and `lut1d` and a formula in 64 bits.

use std::fmt::Write as _;
use std::path::PathBuf;

use plimsoll_image::frames::{Chain, Colour, Format, Frame};

use super::ffmpeg::rgb_filtered;
use super::naive::{Plane, near, planes};
use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

/// Products and sums of numbers up to 1.2.
const BOUND: f64 = 2e-6;

/// A `.cube` file that lives as long as the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plimsoll-lut-{}-{name}.cube", std::process::id()));
        std::fs::write(&path, text).expect("written");
        Self(path)
    }

    /// A warm look that bends and mixes channels, beyond white too.
    fn solid(name: &str, points: u32, head: &str) -> Self {
        let mut text = format!("TITLE \"warm\"\n{head}LUT_3D_SIZE {points}\n");
        let last = f64::from(points - 1);
        for (blue, green, red) in
            (0..points).flat_map(|b| (0..points).flat_map(move |g| (0..points).map(move |r| (b, g, r))))
        {
            let [red, green, blue] = warm([red, green, blue].map(|at| f64::from(at) / last));
            writeln!(text, "{red:.6} {green:.6} {blue:.6}").expect("written");
        }
        Self::new(name, &text)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn warm([red, green, blue]: [f64; 3]) -> [f64; 3] {
    [1.1 * red.powf(0.8), 0.9 * green + 0.1 * red * blue, blue.powf(1.3) * (1.0 - 0.2 * red)]
}

#[test]
fn every_way_agrees() {
    let solid = File::solid("agree", 9, "");
    for chain in [format!("lut={}", solid.path()), format!("lut={}:trilinear", solid.path())] {
        every_way(&chain, &SIZES, BOUND);
    }
    let line = File::new("agree-line", "LUT_1D_SIZE 3\n0 1 0.2\n0.5 0.2 0.3\n1 0 1.2\n");
    every_way(&format!("lut={}", line.path()), &SIZES[1..], BOUND);
}

#[test]
fn it_is_what_ffmpeg_makes_of_it() {
    let bench = Bench::new();
    let solid = File::solid("ffmpeg", 17, "");
    let line = File::new("ffmpeg-line", "LUT_1D_SIZE 4\n0 1 0.2\n0.5 0.2 0.3\n0.7 0.1 0.35\n1 0 1\n");
    let input = frame(Format::new(size(96, 64), 16, Colour::Rgb).expect("a format"), 8);
    for (ours, theirs) in [
        (format!("lut={}", solid.path()), format!("lut3d={}:interp=tetrahedral", solid.path())),
        (format!("lut={}:trilinear", solid.path()), format!("lut3d={}:interp=trilinear", solid.path())),
        (format!("lut3d={}:interp=trilinear", solid.path()), format!("lut3d={}:interp=trilinear", solid.path())),
        (format!("lut={}", line.path()), format!("lut1d={}:interp=linear", line.path())),
    ] {
        let ours_out = codes(&bench.run(&bench.register(&ours), Way::Cpu, &input));
        let theirs_out = codes(&rgb_filtered(&theirs, &input));
        let furthest = ours_out.iter().zip(&theirs_out).map(|(a, b)| a.abs_diff(*b)).max();
        // They round down where we round to the nearest.
        assert!(furthest <= Some(2), "{ours}: {furthest:?} codes of 65535");
    }
}

/// A table of straight lines is the same between its points, and a domain counts.
#[test]
fn straight_tables_are_straight_everywhere() {
    let bench = Bench::new();
    let straight = |points: u32| {
        let all = (0..points.pow(3)).map(|at| [at % points, at / points % points, at / points / points]);
        let lines = all.map(|at| at.map(|at| f64::from(at) / f64::from(points - 1)));
        lines.map(|[red, green, blue]| format!("{} {} {}\n", 1.0 - red, 0.25 + 0.5 * blue, green)).collect::<String>()
    };
    let plain = File::new("straight", &format!("LUT_3D_SIZE 5\n{}", straight(5)));
    let domain = "DOMAIN_MIN -0.5 -0.5 -0.5\nDOMAIN_MAX 1.5 1.5 1.5\n";
    let wide = File::new("wide", &format!("{domain}LUT_3D_SIZE 3\n{}", straight(3)));
    for format in formats(size(31, 13)).into_iter().filter(|format| format.colour() == Colour::Rgb) {
        let input = frame(format, 6);
        for between in ["tetrahedral", "trilinear"] {
            for (file, place) in [(&plain, (0.0, 1.0)), (&wide, (0.25, 0.5))] {
                let output = bench.run(&bench.register(&format!("lut={}:{between}", file.path())), Way::Cpu, &input);
                let of: Vec<Plane> =
                    planes(&input).iter().map(|plane| plane.map(|x, y| place.0 + place.1 * plane.at(x, y))).collect();
                let wanted = [
                    of[0].map(|x, y| 1.0 - of[0].at(x, y)),
                    of[2].map(|x, y| 0.25 + 0.5 * of[2].at(x, y)),
                    of[1].clone(),
                ];
                near(&format!("{format} {between}"), &output, &wanted, BOUND);
            }
        }
    }
}

#[test]
fn greys_stay_grey_in_tetrahedra() {
    let bench = Bench::new();
    let text: String = (0..27_u32)
        .map(|at| [at % 3, at / 3 % 3, at / 9].map(|at| (f64::from(at) / 2.0).powi(2)))
        .map(|[red, green, blue]| format!("{red} {green} {blue}\n"))
        .collect();
    let file = File::new("grey", &format!("LUT_3D_SIZE 3\n{text}"));
    let format = Format::new(size(256, 1), 8, Colour::Rgb).expect("a format");
    let greys = Frame::new(format, (0..=255).flat_map(|code| [code; 3]).collect::<Vec<u8>>()).expect("a frame");
    let out = bench.run(&bench.register(&format!("lut={}", file.path())), Way::Gpu, &greys);
    assert!(out.bytes().as_chunks().0.iter().all(|[red, green, blue]| red == green && green == blue));
}

#[test]
fn what_is_no_table_is_refused() {
    let error = |text: &str| text.parse::<Chain>().expect_err("it is refused").to_string();
    assert!(error("lut=/nowhere/look.cube").contains("/nowhere/look.cube: cannot be read"));
    let short = File::new("short", "LUT_3D_SIZE 2\n0 0 0\n");
    assert!(error(&format!("lut={}", short.path())).contains("has 1 points, and its size says 8"));
    let other = File::new("other", "hello world\n");
    assert!(error(&format!("lut={}", other.path())).contains("line 1"));
    assert!(error(&format!("lut={}:cubic", File::solid("way", 2, "").path())).contains("trilinear"));
}

/// A session for one table is never taken for another's, though both were read from one path.
#[test]
fn another_table_in_the_same_place_is_another_chain() {
    let bench = Bench::new();
    let input = frame(Format::new(size(2, 1), 8, Colour::Rgb).expect("a format"), 1);
    let results = [0.0, 1.0].map(|level| {
        let file = File::new("same", &format!("LUT_1D_SIZE 2\n{level} {level} {level}\n{level} {level} {level}\n"));
        bench.run(&bench.register(&format!("lut={}", file.path())), Way::Gpu, &input).into_bytes()
    });
    assert_eq!(results, [[0; 6], [255; 6]]);
}
