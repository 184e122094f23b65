//! `pad`

use plimsoll_image::frames::Chain;

use crate::agree::every_way;
use crate::bench::{Bench, Way};
use crate::made::{formats, frame, size};

#[test]
fn every_way_agrees() {
    every_way("pad=650x481", &[(641, 479), (33, 17)], 0.0);
    every_way("pad=70x50+2+34:ff8000", &[(33, 15), (7, 5), (1, 1)], 0.0);
    every_way("pad=33x17+0+0:grey", &[(33, 17), (7, 5), (1, 1)], 0.0);
}

#[test]
fn the_picture_lies_in_the_colour() {
    let bench = Bench::new();
    let [yuv420, _, _, rgb, ..] = formats(size(1, 2))[..] else { panic!("there are more formats") };
    let of = |chain, input| bench.run(&bench.register(chain), Way::Gpu, input).bytes().to_vec();
    let input = frame(yuv420, 1);
    let [a, b, c, d] = *input.bytes() else { panic!("four samples") };
    let luma = [16, 16, 16, 16, 16, 16, 16, 16, a, 16, 16, b];
    let chroma = [128, 128, 128, c, 128, 128, 128, d];
    assert_eq!(of("pad=3x4+2+2", &input), [&luma[..], &chroma[..]].concat());
    let input = frame(rgb, 2);
    let [a, b, c, d, e, f] = *input.bytes() else { panic!("six samples") };
    assert_eq!(of("pad=2x2+1+0:ff8000", &input), [255, 128, 0, a, b, c, 255, 128, 0, d, e, f]);
}

#[test]
fn what_cannot_be_is_refused() {
    let output = |chain: &str, at: usize| chain.parse::<Chain>().expect("a chain").output(formats(size(8, 4))[at]);
    assert!(output("pad=7x9", 0).is_err());
    assert!(output("pad=16x16+9+0", 0).is_err());
    assert!(output("pad=16x16+1+2", 0).expect_err("between chroma").to_string().contains("even"));
    assert!(output("pad=16x16+1+2", 3).is_ok());
    assert!("pad=9x9:blueish".parse::<Chain>().is_err());
}
