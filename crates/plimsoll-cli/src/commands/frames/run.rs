//! Frames from one end to the other: the loop that takes results and writes them.

use plimsoll::StopSign;
use plimsoll::frames::{Distributor, FrameError, FrameStats, FrameStream};

use super::input::{From, Input};
use super::places::OutputPlace;
use super::plan::Plan;
use super::sink::Sink;
use super::view::View;
use crate::stop::{Ended, Stop};

/// Does it. What went wrong before the first frame is an error; what happened after that comes with the figures.
pub(super) fn frames(
    distributor: &Distributor,
    input: Input,
    output: &OutputPlace,
    plan: &Plan,
    view: &View,
    sign: &StopSign,
) -> Result<(FrameStats, Ended), Stop> {
    let sink = Sink::open(distributor, output, plan.header)?;
    Ok(match input.from {
        From::Stream(frames) => through(distributor.stream(frames, &plan.chain), sink, view, sign),
        From::Images(files) => through(distributor.stream_images(files, &plan.chain), sink, view, sign),
    })
}

fn through<E: std::error::Error + 'static>(
    stream: FrameStream<E>,
    mut sink: Sink<'_>,
    view: &View,
    sign: &StopSign,
) -> (FrameStats, Ended) {
    let mut stream = stream.stop_on(sign);
    view.follow(stream.meter());
    let mut written = 0;
    let broke = loop {
        match stream.next() {
            None => break None,
            Some(Err(error)) => break Some(error),
            Some(Ok(done)) => {
                if let Err(stop) = sink.write(done) {
                    sink.abandon();
                    return (stream.stats(), Err(stop));
                }
                written += 1;
            }
        }
    };
    let ended = match (broke, sign.is_raised()) {
        (Some(error), _) => sink.keep(written).and_then(|kept| Err(broken(&error, written, kept))),
        (None, true) => sink.keep(written).and_then(|kept| Err(interrupted(written, kept))),
        (None, false) => sink.finish(),
    };
    (stream.stats(), ended)
}

fn broken<E: std::error::Error>(error: &FrameError<E>, written: u64, kept: Option<String>) -> Stop {
    let kept = kept.unwrap_or_else(|| format!("{written} frames before it were delivered"));
    Stop::failed(format_args!("{error} ({kept})"))
}

fn interrupted(written: u64, kept: Option<String>) -> Stop {
    Stop::Interrupted { left: kept.unwrap_or_else(|| format!("{written} frames were delivered")) }
}
