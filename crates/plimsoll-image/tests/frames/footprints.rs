//! What a chain says it needs on a device is what it allocates there.

use plimsoll_image::frames::ChainWorkload;
use plimsoll_runtime::{Device, Workload};

use crate::bench::{Bench, Way};
use crate::made::{formats, frame, size};

#[test]
fn a_session_holds_what_its_rung_says() {
    let bench = Bench::new();
    let chain = bench.register("crop=20x10");
    // A slot holds staging memory of its own from its first task on.
    bench.run(&chain, Way::Gpu, &frame(formats(size(30, 30))[0], 1));
    for format in formats(size(65, 33)) {
        let before = bench.gpu.memory().ours;
        let input = frame(format, 1);
        bench.run(&chain, Way::Gpu, &input);
        let held = bench.gpu.memory().ours - before;
        let ladder = chain.workload().ladder(&ChainWorkload::input(input));
        assert_eq!(held, ladder.rungs()[0].footprint.session, "{format}");
    }
}
