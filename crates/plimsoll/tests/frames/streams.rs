//! Back-pressure, order under delay, and every way a stream ends.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::frames::{Distributor, DistributorOptions, FrameError};
use plimsoll::image::Size;
use plimsoll::image::frames::{Chain, Frame};
use plimsoll::{Orchestrator, StopSign};

use crate::devices::{cpu, distributor, virtual_gpus};
use crate::film::{endless_luck, film, format, frame};

/// Longer than anything here takes on a busy machine; a hang fails instead of lasting.
const PATIENCE: Duration = Duration::from_secs(60);

fn chain() -> Chain {
    "crop=40x30+2+4".parse().expect("a chain")
}

/// Runs work that must end soon.
fn soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(work()));
    told.recv_timeout(PATIENCE).expect("it ends, and soon")
}

#[test]
fn an_orchestrator_that_was_given_no_devices_works_on_the_cpu() {
    let distributor = Distributor::new(Orchestrator::builder().build(), DistributorOptions::default());
    let done = distributor.dispatch(frame(0), &chain()).expect("a frame");
    assert_eq!(done.report.rung, "cpu");
}

#[test]
fn one_frame_and_many_come_out_the_same() {
    let distributor = distributor(vec![cpu(2)]);
    let many = distributor.distribute(film(5), &chain()).expect("all frames");
    for (number, done) in many.iter().enumerate() {
        let one = distributor.dispatch(frame(number as u64), &chain()).expect("one frame");
        assert!(one.frame == done.frame && one.report.rung == "cpu");
    }
}

#[test]
fn no_frames_are_no_error() {
    let distributor = distributor(vec![cpu(1)]);
    assert!(distributor.distribute([], &chain()).expect("nothing to do").is_empty());
    assert!(distributor.stream(endless_luck(Vec::new()), &chain()).next().is_none());
}

#[test]
fn who_takes_frames_slowly_slows_the_input_down() {
    let distributor = distributor(virtual_gpus(2));
    let pulled = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&pulled);
    let input = (0..1000).map(move |number| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Infallible>(frame(number))
    });
    let mut stream = distributor.stream(input, &chain());
    let mut window_most = 0;
    for taken in 1..=40 {
        window_most = window_most.max(stream.window() as u64);
        stream.next().expect("more to come").expect("a frame");
        if taken % 10 == 0 {
            thread::sleep(Duration::from_millis(50));
        }
        window_most = window_most.max(stream.window() as u64);
        let ahead = pulled.load(Ordering::SeqCst) - taken;
        assert!(ahead <= window_most + 2, "{ahead} frames pulled ahead of frame {taken}");
    }
    assert!(window_most < 300, "{window_most} frames would be pulled ahead");
}

#[test]
fn frames_come_out_while_the_input_keeps_us_waiting() {
    let (give, given) = mpsc::channel();
    let distributor = distributor(vec![cpu(2)]);
    let mut stream = distributor.stream(given.into_iter(), &chain());
    let (take, taken) = mpsc::channel();
    thread::spawn(move || stream.all(|done: Result<_, FrameError<Infallible>>| take.send(done).is_ok()));
    for burst in [3, 1, 5] {
        for number in 0..burst {
            give.send(Ok(frame(number))).expect("somebody pulls");
        }
        for _ in 0..burst {
            taken.recv_timeout(PATIENCE).expect("frames that are done come out").expect("a frame");
        }
    }
    drop(give);
    assert!(taken.recv_timeout(PATIENCE).is_err(), "nothing comes after the end");
}

#[test]
fn an_input_that_fails_ends_the_stream_after_the_frames_before() {
    let distributor = distributor(virtual_gpus(3));
    let input = film(7).into_iter().map(Ok).chain([Err("the tape is torn"), Ok(frame(9))]);
    let mut stream = distributor.stream(input, &chain());
    for number in 0..7 {
        assert_eq!(stream.next().expect("more to come").expect("a frame").number, number);
    }
    let error = stream.next().expect("the error").expect_err("the input failed");
    assert!(matches!(error, FrameError::Input { number: 7, cause: "the tape is torn" }), "{error}");
    assert!(stream.next().is_none(), "nothing comes after an error");
}

#[test]
fn an_input_that_panics_does_not_pass_for_one_that_ended() {
    let distributor = distributor(vec![cpu(1)]);
    let input = (0..).map(|number| if number < 4 { Ok::<_, Infallible>(frame(number)) } else { panic!("torn") });
    let mut stream = distributor.stream(input, &chain());
    assert_eq!(stream.by_ref().take(4).filter(Result::is_ok).count(), 4);
    let error = stream.next().expect("the error").expect_err("the input panicked");
    assert!(matches!(&error, FrameError::InputPanicked { number: 4, message } if message == "torn"), "{error}");
}

#[test]
fn a_frame_that_the_chain_does_not_fit_is_named() {
    let distributor = distributor(vec![cpu(1)]);
    let small = format().with_size(Size { width: 8, height: 8 }).expect("a size");
    let small = Frame::new(small, vec![0; small.frame_bytes()]).expect("as many bytes");
    let input = film(3).into_iter().chain([small]);
    let mut stream = distributor.stream(endless_luck(input.collect()), &chain());
    assert_eq!(stream.by_ref().take(3).filter(Result::is_ok).count(), 3);
    let error = stream.next().expect("the error").expect_err("8x8 has no part of 40x30");
    assert!(matches!(error, FrameError::Plan { number: 3, .. }), "{error}");
    assert!(error.to_string().contains("crop=40x30"), "{error}");
}

#[test]
fn a_stream_that_is_dropped_early_stops_at_once_though_its_input_is_stuck() {
    soon(|| {
        let (give, given) = mpsc::channel::<Result<Frame, Infallible>>();
        let distributor = distributor(vec![cpu(1)]);
        let mut stream = distributor.stream(given.into_iter(), &chain());
        give.send(Ok(frame(0))).expect("somebody pulls");
        stream.next().expect("one frame").expect("it is done");
        give.send(Ok(frame(1))).expect("somebody pulls");
        drop(stream);
        let started = Instant::now();
        while distributor.orchestrator().unsettled() > 0 {
            assert!(started.elapsed() < PATIENCE, "frames of a dropped stream are still worked on");
            thread::sleep(Duration::from_millis(1));
        }
        drop(distributor);
        drop(give);
    });
}

#[test]
fn a_raised_sign_ends_a_stream_that_waits_for_its_input() {
    let sign = StopSign::default();
    let raiser = sign.clone();
    let left = soon(move || {
        let (give, given) = mpsc::channel::<Result<Frame, Infallible>>();
        let distributor = distributor(vec![cpu(1)]);
        let mut stream = distributor.stream(given.into_iter(), &chain()).stop_on(&sign);
        give.send(Ok(frame(0))).expect("somebody pulls");
        stream.next().expect("one frame").expect("it is done");
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            raiser.raise();
        });
        let left = stream.next().is_some();
        drop(give);
        left
    });
    assert!(!left, "nothing comes after the sign");
}
