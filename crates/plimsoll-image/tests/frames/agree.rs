//! Every way to run a chain gives the same frames: the CPU rung those of the kernels' twins to the bit, but for scaled
//! frames of 8 to 10 bits, which it computes in whole numbers and within a code; a GPU within a stated bound.

use plimsoll_image::frames::{Format, Frame};

use crate::bench::{Bench, Way};
use crate::made::{codes, formats, frame, size};

/// Sizes that fit no workgroup, no word and no chroma grid, and one of a single pixel.
pub(crate) const SIZES: [(u32, u32); 5] = [(641, 479), (64, 48), (33, 17), (7, 5), (1, 1)];

/// Tries a chain on frames of every kind of format and of these sizes. `bound` is how far a sample from a GPU may be from
/// the CPU's, as a share of the whole range; a code more or less is always allowed, because rounding may tip over.
pub(crate) fn every_way(chain: &str, sizes: &[(u32, u32)], bound: f64) {
    let bench = Bench::new();
    for &(width, height) in sizes {
        // The large one is slow on a software GPU: every pixel of it, but in two formats.
        let all = formats(size(width, height));
        let some = if width > 600 { &all[..1] } else { &all[..] };
        some.iter().for_each(|format| on_format(&bench, chain, *format, bound));
    }
}

fn on_format(bench: &Bench, chain: &str, format: Format, bound: f64) {
    let workload = bench.register(chain);
    let input = frame(format, u64::from(format.size().width));
    let [cpu, twin, gpu] = [Way::Cpu, Way::Twin, Way::Gpu].map(|way| bench.run(&workload, way, &input));
    same(&format!("{chain} on {format}"), &cpu, &twin, &gpu, bound);
}

/// Holds frames of three ways against each other.
pub(crate) fn same(what: &str, cpu: &Frame, twin: &Frame, gpu: &Frame, bound: f64) {
    assert_eq!(cpu.format(), gpu.format(), "{what}");
    match cpu.format().depth() <= 10 && (what.contains("scale=") || what.contains("fit=")) {
        true => close(&format!("{what}: the CPU rung and the kernels' twins"), cpu, twin, 1),
        false => assert!(cpu.bytes() == twin.bytes(), "{what}: the CPU rung differs from the kernels' twins"),
    }
    let allowed = (bound * f64::from(cpu.format().code_max())).ceil().max(1.0) as u16;
    close(&format!("{what}: the CPU and the GPU"), cpu, gpu, allowed);
}

/// At most so many codes apart everywhere. Where single codes tip over, they are few: an operation that is off by one
/// everywhere is wrong.
fn close(what: &str, one: &Frame, other: &Frame, allowed: u16) {
    let (one, other) = (codes(one), codes(other));
    let worst = one.iter().zip(&other).map(|(a, b)| a.abs_diff(*b)).enumerate().max_by_key(|(_, apart)| *apart);
    let (at, apart) = worst.expect("a frame has samples");
    assert!(apart <= allowed, "{what}: sample {at} is {} and {}", one[at], other[at]);
    let differing = one.iter().zip(&other).filter(|(a, b)| a != b).count();
    assert!(allowed > 1 || differing <= one.len() / 10 + 1, "{what}: {differing} of {} samples differ", one.len());
}
