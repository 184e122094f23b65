//! Chains made up from a seed, on frames of made-up formats: what plans runs every way with the same result, what does not
//! says why. The seed of whatever fails is in the message.

use plimsoll_image::frames::{Chain, Colour, Format, Frame, Matrix, Range, Sampling, Siting, Yuv};

use crate::agree::same;
use crate::bench::{Bench, Way};
use crate::made::{Noise, frame, one_of, size};
#[cfg(feature = "decode")]
use crate::ops::overlay::{File, pixels};

/// Chains that are run; `CHAINS` in the environment asks for more.
const CHAINS: usize = 40;
/// How far a sample from a GPU may be from the CPU's after up to six operations, as a share of the range. Each by itself
/// is within 3e-5; edges, powers near black and weights above one make more of that. 3000 chains stayed within it.
const BOUND: f64 = 5e-4;

/// Some modes of `overlay`.
const MODES: [&str; 4] = ["normal", "multiply", "difference", "overlay"];

#[test]
fn what_plans_runs_every_way_and_what_does_not_says_why() {
    let bench = Bench::new();
    #[cfg(feature = "decode")]
    let file = File::rgba("random.pam", 21, 13, &pixels(21, 13));
    #[cfg(feature = "decode")]
    let layer = Some(file.text());
    #[cfg(not(feature = "decode"))]
    let layer: Option<String> = None;
    let wanted = std::env::var("CHAINS").map_or(CHAINS, |count| count.parse().expect("a number of chains"));
    let (mut run, mut refused) = (0, 0);
    for seed in 1.. {
        let mut noise = Noise::new(seed);
        let (chain, format) = (made_up_chain(&mut noise, layer.as_deref()), made_up_format(&mut noise));
        let what = format!("seed {seed}: {chain} on {format}");
        match planned(&chain, format) {
            Ok(around) => {
                on_every_way(&bench, &chain, &what, &frames(format, seed, around));
                run += 1;
            }
            Err(why) => {
                assert!(why.len() > 10, "{what}: '{why}' says nothing");
                refused += 1;
            }
        }
        if run == wanted {
            break;
        }
    }
    assert!(refused > 0, "nothing was refused, so refusing was not tried");
}

/// How many frames around its own a chain looks at, or why it cannot be done.
fn planned(chain: &str, format: Format) -> Result<usize, String> {
    let chain: Chain = chain.parse().map_err(|error: plimsoll_image::frames::ChainError| error.to_string())?;
    chain.output(format).map_err(|error| error.to_string())?;
    Ok(chain.frames_around())
}

fn frames(format: Format, seed: u64, around: usize) -> Vec<Frame> {
    (0..=2 * around as u64).map(|number| frame(format, seed + number)).collect()
}

fn on_every_way(bench: &Bench, chain: &str, what: &str, frames: &[Frame]) {
    // Shown with whatever fails.
    println!("{what}");
    let workload = bench.register(chain);
    let [cpu, twin, gpu] = [Way::Cpu, Way::Twin, Way::Gpu].map(|way| match frames {
        [frame] => bench.run(&workload, way, frame),
        _ => bench.run_among(&workload, way, frames, frames.len() / 2),
    });
    same(what, &cpu, &twin, &gpu, BOUND);
}

fn made_up_format(noise: &mut Noise) -> Format {
    let range = one_of(noise, &[Range::Limited, Range::Full]);
    let yuv = Yuv {
        matrix: one_of(noise, &[Matrix::Bt601, Matrix::Bt709, Matrix::Bt2020]),
        range,
        sampling: one_of(noise, &[Sampling::S420, Sampling::S422, Sampling::S444]),
        siting: one_of(noise, &[Siting::Left, Siting::Centre, Siting::TopLeft]),
    };
    let colour = one_of(noise, &[Colour::Rgb, Colour::Yuv(yuv), Colour::Yuv(yuv), Colour::Mono(range)]);
    let sides = [1, 2, 7, 16, 17, 33, 40, 61];
    let (size, depth) = (size(one_of(noise, &sides), one_of(noise, &sides)), one_of(noise, &[8, 9, 10, 12, 14, 16]));
    Format::new(size, depth, colour).expect("a format")
}

/// `layer` is a file to lay over frames, if this build reads any.
fn made_up_chain(noise: &mut Noise, layer: Option<&str>) -> String {
    let count = one_of(noise, &[1, 2, 3, 4, 5, 6]);
    (0..count).map(|_| made_up_operation(noise, layer)).collect::<Vec<_>>().join(",")
}

fn made_up_operation(noise: &mut Noise, layer: Option<&str>) -> String {
    match (one_of(noise, &[0, 0, 0, 1, 1, 1, 2, 2, 2, 3]), layer) {
        (0, _) => geometry(noise),
        (1, _) => colours(noise),
        (3, Some(file)) => {
            let (place, mode) = (one_of(noise, &["-3+2", "middle", "+0-9"]), one_of(noise, &MODES));
            format!("overlay={file}:{place}:opacity=0.8:mode={mode}")
        }
        _ => filter(noise),
    }
}

fn geometry(noise: &mut Noise) -> String {
    let side = |noise: &mut Noise| one_of(noise, &[1, 5, 8, 15, 30, 45, 64]);
    let (width, height) = (side(noise), side(noise));
    let place = |noise: &mut Noise| one_of(noise, &[0, 1, 2, 4]);
    let (left, top) = (place(noise), place(noise));
    match one_of(noise, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
        9 => format!("fit={width}x{height}:{}", one_of(noise, &["letterbox", "inside", "cover", "area:white"])),
        10 => one_of(noise, &["scale=iw/2:ih*2", "crop=iw/2:ih:0:0", "pad=iw+8:ih+4:4:2", "hflip"]).to_owned(),
        0 => format!("crop={width}x{height}"),
        1 => format!("crop={width}x{height}+{left}+{top}"),
        2 => format!("pad={width}x{height}:{}", one_of(noise, &["black", "grey", "white", "ff8000"])),
        3 => format!("pad=80x70+{left}+{top}"),
        4 => format!("flip={}", one_of(noise, &["h", "v"])),
        5 => format!("rotate={}", one_of(noise, &[90, 180, 270])),
        6 => {
            format!("scale={width}x{height}:{}", one_of(noise, &["nearest", "bilinear", "bicubic", "lanczos", "area"]))
        }
        7 => format!("scale={}", one_of(noise, &["50%", "130%", "20x-1", "-1x31"])),
        _ => {
            let last = one_of(noise, &["bilinear", "bicubic:black", "black", "edge"]);
            format!("warp=1:2:{width}:1:{width}:{height}:-2:{}:{last}:size=31x27", height + 3)
        }
    }
}

fn colours(noise: &mut Noise) -> String {
    match one_of(noise, &[0, 1, 2, 3, 4, 5, 6, 7, 8]) {
        7 => one_of(noise, &["hue=40", "hue=-90:0.5", "saturation=1.5"]).to_owned(),
        8 => one_of(noise, &["mono=limited", "yuv=444", "assume=full", "eq=contrast=1.2:brightness=0.1"]).to_owned(),
        0 => "rgb".to_owned(),
        1 => "mono".to_owned(),
        2 => format!("depth={}", one_of(noise, &[8, 10, 12, 14, 16])),
        3 => format!("gamma={}", one_of(noise, &[0.5, 0.8, 1.0, 1.7])),
        4 => one_of(noise, &["levels=0.1:0.9", "levels=0:1:1.4:0.2:0.7", "levels=0.2:0.6:0.7:1:0"]).to_owned(),
        5 => {
            let (matrix, range) = (one_of(noise, &["601", "709", "2020"]), one_of(noise, &["limited", "full"]));
            let (sampling, siting) =
                (one_of(noise, &["420", "422", "444"]), one_of(noise, &["left", "centre", "topleft"]));
            format!("yuv={matrix}:{range}:{sampling}:{siting}")
        }
        _ => {
            let (curve, from) =
                (one_of(noise, &["reinhard", "hable", "bt2390"]), one_of(noise, &["pq", "hlg", "gamma"]));
            format!("tonemap={curve}:from={from}:peak={}", one_of(noise, &[600, 1000, 4000]))
        }
    }
}

fn filter(noise: &mut Noise) -> String {
    let sigma = one_of(noise, &["0.3", "1", "2.5", "9"]);
    let planes = one_of(noise, &["", ":planes=all"]);
    match one_of(noise, &[0, 1, 2, 3, 4, 5]) {
        0 => format!("blur={sigma}"),
        1 => format!("unsharp={sigma}:{}{planes}", one_of(noise, &["0.5", "1.5:0.02"])),
        2 => "sobel".to_owned(),
        3 => {
            let weights = one_of(noise, &["1 2 1/2 4 2/1 2 1", "0 -1 0/-1 5 -1/0 -1 0", "-1 0 1/-2 0 2/-1 0 1"]);
            format!("convolve={weights}{planes}")
        }
        4 => format!("denoise=bilateral:{}", one_of(noise, &["1", "2:0.1"])),
        _ => format!("denoise=temporal:{}", one_of(noise, &["1", "2:0.1"])),
    }
}
