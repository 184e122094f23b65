//! Who makes the same frames: ffmpeg's filters, a plain loop over our own chain, and `plimsoll frames`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll::Orchestrator;
use plimsoll::image::frames::stream::Y4mReader;
use plimsoll::image::frames::{Chain, ChainWorkload};

use crate::child::{self, Measured};
use crate::{CHAIN, CHAIN_OF_FFMPEG, plimsoll};

/// Who makes frames.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Side {
    /// ffmpeg with all cores.
    Ffmpeg,
    /// One frame after the other on one device of one core.
    PlainLoop,
    /// `plimsoll frames` on the CPU.
    Ours,
}

impl Side {
    pub(crate) const ALL: [Self; 3] = [Self::Ffmpeg, Self::PlainLoop, Self::Ours];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ffmpeg => "ffmpeg -vf scale,gblur, all cores",
            Self::PlainLoop => "plain loop, one device, one core",
            Self::Ours => "plimsoll frames --no-gpu",
        }
    }

    /// Runs this side in a new process.
    pub(crate) fn measure(self, input: &Path) -> Measured {
        child::measure(&mut self.command(input))
    }

    fn command(self, input: &Path) -> Command {
        match self {
            Self::Ffmpeg => {
                let mut command = ffmpeg();
                command.arg("-i").arg(input).args(["-vf", CHAIN_OF_FFMPEG, "-f", "yuv4mpegpipe", "-"]);
                command
            }
            Self::PlainLoop => {
                let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
                command.arg("--plain-loop").arg(input);
                command
            }
            Self::Ours => {
                let mut command = Command::new(plimsoll());
                command.args(["frames", "--no-gpu", "--op", CHAIN]).arg(input).arg("-");
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
pub(crate) fn make_input(folder: &Path, frames: usize) -> PathBuf {
    let path = folder.join("input.y4m");
    let picture = "testsrc2=size=1920x1080:rate=30,noise=alls=12:allf=t,format=yuv420p";
    let made = ffmpeg()
        .args(["-f", "lavfi", "-i", picture, "-frames:v", &frames.to_string(), "-f", "yuv4mpegpipe"])
        .arg(&path)
        .status();
    let made = made.expect("ffmpeg is needed: `apt-get install ffmpeg`, or `cargo xtask test` once");
    assert!(made.success(), "ffmpeg could not make the frames");
    path
}

/// Reads, works and writes one after the other: what people write first.
pub(crate) fn plain_loop(input: &Path) {
    let orchestrator = Orchestrator::builder().cpu(1).build();
    let chain: Chain = CHAIN.parse().expect("a chain");
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
