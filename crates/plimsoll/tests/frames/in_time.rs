//! Chains that look at other frames, over several devices: the same frames as from one, each kept while it is looked at.

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::Device;
use plimsoll::device::Health;
use plimsoll::frames::{Distributor, FrameDone, FrameError};
use plimsoll::image::Size;
use plimsoll::image::frames::{Chain, ChainWorkload, Frame};
use plimsoll_core::Bytes;
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice};

use crate::devices::{cpu, distributor, virtual_gpus};
use crate::film::{difference, endless_luck, film, format, frame};

const FRAMES: u64 = 150;
const AROUND: u64 = 2;

fn chain() -> Chain {
    "crop=56x40+2+2,denoise=temporal:2,blur=1".parse().expect("a chain")
}

fn through(distributor: &Distributor, frames: Vec<Frame>) -> Vec<FrameDone> {
    let stream = distributor.stream(endless_luck(frames), &chain());
    let done: Vec<FrameDone> = stream.map(|done| done.expect("no frame fails")).collect();
    assert!(done.iter().zip(0..).all(|(done, number)| done.number == number), "out of order");
    done
}

fn assert_same(some: &[FrameDone], right: &[FrameDone], bound: u8) {
    assert_eq!(some.len(), right.len());
    for (done, right) in some.iter().zip(right) {
        let off = difference(&done.frame, &right.frame);
        assert!(off <= bound, "frame {} is off by {off}", done.number);
    }
}

#[test]
fn the_chain_does_look_at_other_frames() {
    assert_eq!(chain().frames_around() as u64, AROUND);
    let one = distributor(vec![cpu(1)]);
    let mut other = film(9);
    other[5] = film(20).pop().expect("a frame");
    let (a, b) = (through(&one, film(9)), through(&one, other));
    let changed: Vec<bool> = a.iter().zip(&b).map(|(a, b)| a.frame != b.frame).collect();
    assert!(changed[5] && !changed[1] && !changed[8], "{changed:?}");
}

#[test]
fn several_devices_give_the_frames_that_one_gives() {
    let right = through(&distributor(virtual_gpus(1)), film(FRAMES));
    let several = through(&distributor(virtual_gpus(3)), film(FRAMES));
    assert_same(&several, &right, 0);
    let mixed: Vec<Arc<dyn Device>> = virtual_gpus(2).into_iter().chain([cpu(1)]).collect();
    assert_same(&through(&distributor(mixed), film(FRAMES)), &right, 1);
}

/// A run whose frames were all done before the next one came may go on elsewhere, so there may be more changes than runs;
/// without runs nearly every frame would change.
#[test]
fn runs_stay_on_one_device_and_frames_are_prepared_once_there() {
    let three = distributor(virtual_gpus(3));
    let done = through(&three, film(FRAMES));
    let devices: Vec<_> = done.iter().map(|done| done.report.device).collect();
    let changes = devices.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
    assert!((1..FRAMES / 4).contains(&changes), "{changes} changes of device: {devices:?}");
    let tasks: u64 = three.orchestrator().reports().iter().map(|report| report.figures.completed).sum();
    assert_eq!(tasks, 2 * FRAMES, "each frame by itself once, and once among others");
}

#[test]
fn a_device_lost_in_the_middle_changes_no_frame() {
    let right = through(&distributor(virtual_gpus(1)), film(FRAMES));
    // Lost in its first run of frames, which stays with it.
    let flaky = Arc::new(VirtualDevice::gpu("flaky").fault(ScriptedFault::Lost { launch: 24 }).build());
    let devices = virtual_gpus(1).into_iter().chain([Arc::clone(&flaky) as Arc<dyn Device>]).collect();
    let distributor = distributor(devices);
    let done = through(&distributor, film(FRAMES));
    let health = &distributor.orchestrator().reports()[1].health;
    let was_lost = flaky.calls().reopenings > 0 || *health != Health::Well;
    assert!(was_lost || done.iter().any(|done| !done.report.attempts.is_empty()), "nothing was lost");
    assert_same(&done, &right, 0);
}

#[test]
fn frames_of_another_format_are_no_neighbours() {
    let small = format().with_size(Size { width: 58, height: 42 }).expect("a size");
    let small: Vec<Frame> =
        (0..5).map(|shade| Frame::new(small, vec![40 * shade; small.frame_bytes()]).expect("bytes")).collect();
    let one = distributor(vec![cpu(1)]);
    let apart = [through(&one, film(5)), through(&one, small.clone())].concat();
    let together = through(&distributor(virtual_gpus(2)), [film(5), small].concat());
    assert_same(&together, &apart, 1);
}

#[test]
fn a_film_of_one_frame_is_its_own_neighbour() {
    let distributor = distributor(vec![cpu(1)]);
    let alone = distributor.dispatch(film(1).remove(0), &chain()).expect("one frame");
    assert!(through(&distributor, film(1))[0].frame == alone.frame);
}

/// However many frames there are and however many work at once: what is kept goes with the last frame that looks at it.
#[test]
fn kept_frames_go_with_the_last_that_looks_at_them() {
    // `cargo xtask campaign long-streams` asks for more.
    let count = std::env::var("PLIMSOLL_CAMPAIGN_ROUNDS").ok().and_then(|count| count.parse().ok()).unwrap_or(2000);
    for slots in [1, 2, 8] {
        let cpu = Arc::new(CpuDevice::builder().slots(slots).build());
        let distributor = distributor(vec![Arc::clone(&cpu) as Arc<dyn Device>]);
        let kept = ChainWorkload::new(chain()).kept(format()).expect("a plan").0;
        let frames = (0..count).map(|number| Ok::<_, Infallible>(frame(number % 7)));
        let mut stream = distributor.stream(frames, &chain());
        let mut most = 0;
        for done in stream.by_ref() {
            done.expect("no frame fails");
            most = most.max(cpu.memory().ours.0.div_ceil(kept.0));
        }
        let bound = stream.window() as u64 + AROUND + slots as u64;
        assert!((2 * AROUND..=bound).contains(&most), "{most} frames kept at once, {bound} allowed, {slots} slots");
        assert_eq!(cpu.memory().ours, Bytes::ZERO, "the last ones went too, {slots} slots");
        let report = &distributor.orchestrator().reports()[0];
        assert!(report.promised_peak < report.promised + Bytes((bound + 2 * slots as u64) * kept.0), "{report:?}");
    }
}

/// What nobody waits for any more is not kept either.
#[test]
fn a_stream_that_is_dropped_keeps_nothing() {
    let cpu = Arc::new(CpuDevice::builder().slots(2).build());
    let distributor = distributor(vec![Arc::clone(&cpu) as Arc<dyn Device>]);
    let mut stream = distributor.stream(endless_luck(film(200)), &chain());
    stream.by_ref().take(20).for_each(|done| drop(done.expect("no frame fails")));
    drop(stream);
    let started = Instant::now();
    while cpu.memory().ours > Bytes::ZERO || distributor.orchestrator().unsettled() > 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "{} are kept", cpu.memory().ours);
        thread::sleep(Duration::from_millis(1));
    }
}

/// A device that could not hold all that a frame looks at would wait for ever.
#[test]
fn what_no_device_can_hold_at_once_is_refused_with_the_figures() {
    let small = CpuDevice::builder().slots(2).memory_limit(Bytes::kib(64)).build();
    let distributor = distributor(vec![Arc::new(small) as Arc<dyn Device>]);
    let error = distributor.stream(endless_luck(film(9)), &chain()).next().expect("an error").expect_err("too large");
    assert!(matches!(error, FrameError::TooLarge { number: 0, .. }), "{error:?}");
    assert!(error.to_string().contains("raise --memory-limit"), "{error}");
}
