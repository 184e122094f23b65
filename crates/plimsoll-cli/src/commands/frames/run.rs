//! Frames from one end to the other: the loop that takes results and writes them.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll::StopSign;
use plimsoll::frames::{Distributor, FrameStats, FrameStream};
use plimsoll::machine::DeviceName;
use plimsoll_core::DeviceId;

use super::args::Args;
use super::input::{From, Input};
use super::places::OutputPlace;
use super::plan::Plan;
use super::sink::{Sink, Unwritten};
use super::view::View;
use crate::stop::{Ended, Stop};

/// A signal that a terminal sends to all programs of a pipe reaches all within this.
const SIGNAL_DELAY: Duration = Duration::from_millis(30);

/// Does it. What went wrong before the first frame is an error; what happened after that comes with the figures.
pub(super) fn frames(
    distributor: &Distributor,
    input: Input,
    output: &OutputPlace,
    plan: &Plan,
    told: &Told<'_>,
    sign: &StopSign,
) -> Result<(FrameStats, Ended), Stop> {
    let sink = Sink::open(distributor, output, plan.header, plan.raw, told.args)?;
    Ok(match input.from {
        From::Stream(frames) => through(distributor.stream(frames, &plan.chain), sink, told, sign),
        From::Images(files) => through(distributor.stream_images(files, &plan.chain), sink, told, sign),
    })
}

/// Who hears of it, and in which words.
pub(super) struct Told<'a> {
    pub(super) args: &'a Args,
    pub(super) view: &'a View,
    pub(super) names: &'a [DeviceName],
}

impl Told<'_> {
    /// A device as people type it.
    fn device(&self, device: DeviceId) -> String {
        match self.names.get(device.index()) {
            Some(DeviceName::Gpu(number)) => format!("gpu:{number}"),
            Some(name) => name.to_string(),
            None => device.to_string(),
        }
    }
}

fn through<E: std::error::Error + 'static>(
    stream: FrameStream<E>,
    mut sink: Sink<'_>,
    told: &Told<'_>,
    sign: &StopSign,
) -> (FrameStats, Ended) {
    let mut stream = stream.stop_on(sign);
    told.view.follow(stream.meter());
    let mut written = 0;
    let broke = loop {
        match stream.next() {
            None => break None,
            Some(Err(error)) => break Some(error.told(&|device| told.device(device))),
            Some(Ok(done)) => match sink.write(done) {
                Ok(()) => written += 1,
                Err(Unwritten::Frame(why)) => break Some(why),
                Err(Unwritten::Place(stop)) => {
                    sink.abandon();
                    let stop = match stop {
                        Stop::ReaderLeft => Stop::OutputClosed { left: delivered(written) },
                        other => other,
                    };
                    return (stream.stats(), Err(stop));
                }
            },
        }
    };
    let interrupted = if broke.is_some() { raised_soon(sign) } else { sign.is_raised() };
    let ended = match (broke, interrupted) {
        (_, true) => sink.keep(written).and_then(|kept| Err(stopped(written, kept))),
        (Some(why), false) => sink.keep(written).and_then(|kept| Err(broken(&why, written, kept))),
        (None, false) => sink.finish(),
    };
    (stream.stats(), ended)
}

/// Ctrl-C also ends the program that feeds us, and its torn stream may be here before the signal: then it is the signal
/// that counts.
fn raised_soon(sign: &StopSign) -> bool {
    let until = Instant::now() + SIGNAL_DELAY;
    while !sign.is_raised() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    sign.is_raised()
}

fn broken(why: &str, written: u64, kept: Option<String>) -> Stop {
    match (written, kept) {
        (0, _) => Stop::failed(why),
        (_, kept) => Stop::failed(format_args!("{why}\n  {}", kept.unwrap_or_else(|| delivered(written)))),
    }
}

fn stopped(written: u64, kept: Option<String>) -> Stop {
    Stop::interrupted(kept.unwrap_or_else(|| delivered(written)))
}

fn delivered(frames: u64) -> String {
    format!("{frames} {} delivered", if frames == 1 { "frame was" } else { "frames were" })
}
