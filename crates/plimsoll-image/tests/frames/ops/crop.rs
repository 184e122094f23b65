//! `crop`

use crate::agree::every_way;
use crate::bench::{Bench, Way};
use crate::made::{formats, frame, size};

#[test]
fn every_way_agrees() {
    every_way("crop=1x1+0+0", &[(7, 5), (1, 1)], 0.0);
    every_way("crop=31x15+2+2", &[(641, 479), (33, 17)], 0.0);
    every_way("crop=20x10", &[(64, 48), (33, 17)], 0.0);
}

#[test]
fn it_is_the_part_that_was_asked_for() {
    let bench = Bench::new();
    let chain = bench.register("crop=2x1+4+3");
    let format = formats(size(9, 6))[3];
    let input = frame(format, 5);
    let part = bench.run(&chain, Way::Gpu, &input);
    assert_eq!(part.bytes(), &input.bytes()[(3 * 9 + 4) * 3..][..6]);
}
