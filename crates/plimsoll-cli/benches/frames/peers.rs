//! Who makes the same frames: ffmpeg's filters, a plain loop over our own chain, and `plimsoll frames`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll::Orchestrator;
use plimsoll::image::frames::stream::Y4mReader;
use plimsoll::image::frames::{Chain, ChainWorkload};

use crate::child::{self, Measured};
use crate::plimsoll;
use crate::table::{Input, LOGO};

/// Threads that ffmpeg may use, for its filters too.
const FFMPEG_THREADS: &str = "2";

/// Who makes frames.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// ffmpeg with two threads.
    Ffmpeg,
    /// One frame after the other on one device of one core.
    PlainLoop,
    /// `plimsoll frames` on the CPU.
    Ours,
}

/// One chain, as we write it and as ffmpeg does.
#[derive(Copy, Clone)]
pub(crate) struct Chains {
    pub(crate) ours: &'static str,
    pub(crate) theirs: &'static str,
}

impl Side {
    pub(crate) const ALL: [Self; 3] = [Self::Ffmpeg, Self::PlainLoop, Self::Ours];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ffmpeg => "ffmpeg -vf, 2 threads",
            Self::PlainLoop => "plain loop, one device, one core",
            Self::Ours => "plimsoll frames --no-gpu",
        }
    }

    /// Runs this side in a new process, in the folder where the input is.
    pub(crate) fn measure(self, chains: Chains, input: &Path) -> Measured {
        let folder = input.parent().expect("inputs lie in a folder");
        child::measure(self.command(chains, input).current_dir(folder))
    }

    fn command(self, chains: Chains, input: &Path) -> Command {
        match self {
            Self::Ffmpeg => {
                let mut command = ffmpeg();
                command.args(["-filter_threads", FFMPEG_THREADS, "-threads", FFMPEG_THREADS]).arg("-i").arg(input);
                command.args(["-vf", chains.theirs, "-strict", "-1", "-f", "yuv4mpegpipe", "-"]);
                command
            }
            Self::PlainLoop => {
                let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
                command.args(["--plain-loop", chains.ours]).arg(input);
                command
            }
            Self::Ours => {
                let mut command = Command::new(plimsoll());
                command.args(["frames", "--no-gpu", "--op", chains.ours]);
                if chains.ours.contains("tonemap") {
                    command.args(["--matrix", "2020"]);
                }
                command.arg(input).arg("-");
                command
            }
        }
    }
}

pub(crate) fn ffmpeg() -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-loglevel", "error", "-nostdin"]);
    command
}

/// Moving colour bars and text with noise in them, so that nothing is the same from frame to frame.
pub(crate) fn make_input(folder: &Path, input: Input, frames: usize) -> PathBuf {
    let path = folder.join(input.name()).with_extension("y4m");
    let (size, filters, format) = (input.size(), input.filters(), input.pixel_format());
    let picture = format!("testsrc2=size={size}:rate=30,noise=alls=12:allf=t,format=yuv420p,{filters},format={format}");
    let frames = input.frames(frames).to_string();
    made(ffmpeg().args(["-f", "lavfi", "-i", &picture, "-frames:v", &frames]).args(["-strict", "-1"]).arg(&path));
    path
}

/// A picture that is partly transparent.
pub(crate) fn make_logo(folder: &Path) {
    let picture = "testsrc2=size=400x200,format=rgba,colorchannelmixer=aa=0.6";
    made(ffmpeg().args(["-f", "lavfi", "-i", picture, "-frames:v", "1"]).arg(folder.join(LOGO)));
}

fn made(command: &mut Command) {
    let status = command.status().expect("ffmpeg is needed: `apt-get install ffmpeg`, or `cargo xtask test` once");
    assert!(status.success(), "ffmpeg could not make the frames");
}

/// Reads, works and writes one after the other: what people write first.
pub(crate) fn plain_loop(chain: &str, input: &Path) {
    let orchestrator = Orchestrator::builder().cpu(1).build();
    let chain: Chain = chain.parse().expect("a chain");
    let chain = orchestrator.register(ChainWorkload::new(chain));
    let frames = Y4mReader::open(File::open(input).expect("the input is there")).expect("a stream");
    let mut out = BufWriter::new(io::stdout().lock());
    out.write_all(b"YUV4MPEG2 W1280 H720 F30:1 C420jpeg\n").expect("somebody reads");
    for frame in frames {
        let frame = frame.expect("a whole stream");
        let done = orchestrator.run(&chain, ChainWorkload::task(frame)).expect("it works");
        out.write_all(b"FRAME\n").expect("somebody reads");
        out.write_all(done.output.bytes()).expect("somebody reads");
    }
    out.flush().expect("somebody reads");
}
