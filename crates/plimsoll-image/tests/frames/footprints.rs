//! What a chain says it needs on a device is what it allocates there.

use plimsoll_core::Bytes;
use plimsoll_image::frames::{ChainWorkload, Frame};
use plimsoll_runtime::{Device, Workload};

use crate::bench::{Bench, Way};
use crate::made::{formats, frame, size};

/// One chain of each kind: planes and tables, several sizes, planes that nothing reads.
const CHAINS: [&str; 5] = [
    "crop=20x10",
    "scale=40x30:lanczos,blur=2",
    "warp=3:2:60:1:64:30:-2:33",
    "mono",
    "yuv=709:444,convolve=0 1 0/1 4 1/0 1 0",
];

#[test]
fn a_session_holds_what_its_rung_says() {
    let bench = Bench::new();
    // A slot holds staging memory of its own from its first task on.
    bench.run(&bench.register("crop=20x10"), Way::Gpu, &frame(formats(size(30, 30))[0], 1));
    for (text, format) in CHAINS.iter().flat_map(|text| formats(size(65, 33)).into_iter().map(move |of| (text, of))) {
        let (chain, before) = (bench.register(text), bench.gpu.memory().ours);
        let input = frame(format, 1);
        bench.run(&chain, Way::Gpu, &input);
        let held = bench.gpu.memory().ours - before;
        let ladder = chain.workload().ladder(&ChainWorkload::input(input));
        assert_eq!(held, ladder.rungs()[0].footprint.session, "{text} on {format}");
    }
}

#[test]
fn a_session_among_frames_holds_them_too() {
    let bench = Bench::new();
    bench.run(&bench.register("crop=20x10"), Way::Gpu, &frame(formats(size(30, 30))[0], 1));
    for format in formats(size(65, 33)) {
        let (chain, before) = (bench.register("blur=1,denoise=temporal:1,scale=50%"), bench.gpu.memory().ours);
        let frames: Vec<Frame> = (0..3).map(|seed| frame(format, seed)).collect();
        let kept = bench.keep(&chain, Way::Gpu, &frames);
        bench.run_among(&chain, Way::Gpu, &frames, 1);
        let held = bench.gpu.memory().ours - before;
        let (workload, first) = (chain.workload(), chain.workload().first_part().expect("it looks at others"));
        let ladders = (first.ladder(&frames[1]), workload.ladder(&workload.input_among(3, 1, format)));
        let (first, last) = (&ladders.0.rungs()[0], &ladders.1.rungs()[0]);
        // One session of the first part for those kept here, and one for those that went with their reader.
        let sessions = last.footprint.session + Bytes(2 * first.footprint.session.0);
        assert_eq!(held, sessions + Bytes(3 * first.value.0), "{format}");
        assert_eq!(workload.kept(format).expect("a plan").0, first.value, "{format}");
        drop(kept);
        assert_eq!(bench.gpu.memory().ours - before, sessions, "what nobody looks at goes");
    }
}
