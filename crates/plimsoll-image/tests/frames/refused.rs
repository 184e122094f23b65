//! What a chain refuses, and in which words.

use plimsoll_image::frames::{Chain, ChainWorkload, Frame};
use plimsoll_runtime::Orchestrator;

use crate::made::{formats, frame, size};

fn error_of(chain: &str, frame: &Frame) -> String {
    let orchestrator = Orchestrator::builder().cpu(1).build();
    let chain: Chain = chain.parse().expect("a chain");
    let chain = orchestrator.register(ChainWorkload::new(chain));
    let failure = orchestrator.run(&chain, ChainWorkload::task(frame.clone())).expect_err("it is refused");
    failure.error.to_string()
}

#[test]
fn a_frame_by_itself_is_no_stream() {
    let error = error_of("denoise=temporal", &frame(formats(size(8, 8))[0], 1));
    assert!(error.contains("task_among"), "{error}");
}

#[test]
fn what_does_not_fit_says_where_and_why() {
    let error = error_of("flip=h,crop=20x20+0+0", &frame(formats(size(8, 8))[0], 1));
    assert!(error.contains("crop=20x20+0+0 cannot be done to frames of 8x8"), "{error}");
}
