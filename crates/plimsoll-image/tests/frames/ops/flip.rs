//! `flip`

use crate::agree::{SIZES, every_way};
use crate::bench::{Bench, Way};
use crate::made::{formats, frame, size};

#[test]
fn every_way_agrees() {
    every_way("flip=h", &SIZES, 0.0);
    every_way("flip=v", &SIZES, 0.0);
}

#[test]
fn each_plane_is_mirrored_by_itself() {
    let bench = Bench::new();
    // Luma of 3 x 2, then chroma of 2 x 1 twice.
    let input = frame(formats(size(3, 2))[0], 1);
    let [a, b, c, d, e, f, g, h, i, j] = *input.bytes() else { panic!("ten samples") };
    let of = |chain| bench.run(&bench.register(chain), Way::Gpu, &input).bytes().to_vec();
    assert_eq!(of("flip=h"), [c, b, a, f, e, d, h, g, j, i]);
    assert_eq!(of("flip=v"), [d, e, f, a, b, c, g, h, i, j]);
    assert_eq!(of("flip=h,flip=v,flip=h,flip=v"), input.bytes());
}
