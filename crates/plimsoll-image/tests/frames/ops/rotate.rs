//! `rotate`

use plimsoll_image::frames::{Chain, Format};

use crate::agree::{SIZES, same};
use crate::bench::{Bench, Way};
use crate::made::{formats, frame, size};

/// Every format but 4:2:2.
fn turnable(width: u32, height: u32) -> Vec<Format> {
    let mut formats = formats(size(width, height));
    formats.remove(1);
    formats
}

#[test]
fn every_way_agrees() {
    let bench = Bench::new();
    for chain in ["rotate=90", "rotate=180", "rotate=270"] {
        let workload = bench.register(chain);
        for (width, height) in SIZES {
            for format in turnable(width, height) {
                let input = frame(format, 7);
                let [cpu, twin, gpu] = [Way::Cpu, Way::Twin, Way::Gpu].map(|way| bench.run(&workload, way, &input));
                same(&format!("{chain} on {format}"), &cpu, &twin, &gpu, 0.0);
                assert_eq!(cpu.bytes(), gpu.bytes(), "{chain} on {format}: samples are moved, not computed");
            }
        }
    }
}

#[test]
fn it_is_clockwise() {
    let bench = Bench::new();
    let input = frame(turnable(3, 2)[0], 1);
    let [a, b, c, d, e, f, g, h, i, j] = *input.bytes() else { panic!("ten samples") };
    let of = |chain| bench.run(&bench.register(chain), Way::Gpu, &input);
    let turned = of("rotate=90");
    assert_eq!(turned.format().size(), size(2, 3));
    assert_eq!(turned.bytes(), [d, a, e, b, f, c, g, h, i, j]);
    assert_eq!(of("rotate=180").bytes(), [f, e, d, c, b, a, h, g, j, i]);
    assert_eq!(of("rotate=270").bytes(), [c, f, b, e, a, d, h, g, j, i]);
    assert_eq!(of("rotate=90,rotate=90,rotate=180").bytes(), input.bytes());
}

#[test]
fn chroma_that_would_lie_as_no_stream_has_it_is_refused() {
    let yuv422 = formats(size(8, 4))[1];
    let output = |chain: &str| chain.parse::<Chain>().expect("a chain").output(yuv422);
    assert!(output("rotate=90").expect_err("4:2:2").to_string().contains("444"));
    assert!(output("rotate=180").is_ok());
    assert!("rotate=45".parse::<Chain>().is_err());
}
