//! Memory over a long stream: what a process holds after a tenth of it, and at the end.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use crate::peers::ffmpeg;
use crate::plimsoll;

const SIZE: &str = "640x360";
const CHAIN: &str = "scale=320x180,blur=1";
/// A frame that comes out: its mark and 4:2:0 samples.
const FRAME_BYTES: u64 = 6 + 320 * 180 * 3 / 2;

/// Sends a long stream through a pipe and prints what the process held.
pub(crate) fn show(frames: usize) {
    if frames == 0 {
        return;
    }
    let mut source = source(frames);
    let mut ours = ours(&mut source);
    let mut stdout = ours.stdout.take().expect("it was asked for");
    let (mut buffer, mut read, mut early) = (vec![0; 1 << 20], 0, None);
    while let Ok(count @ 1..) = stdout.read(&mut buffer) {
        read += count as u64;
        if early.is_none() && read >= frames as u64 * FRAME_BYTES / 10 {
            early = Some(held(ours.id()));
        }
        if read >= (frames as u64 - 1) * FRAME_BYTES {
            break;
        }
    }
    let (early, late) = (early.unwrap_or(0.0), held(ours.id()));
    std::io::copy(&mut stdout, &mut std::io::sink()).expect("the rest is read");
    assert!(ours.wait().expect("it ends").success() && source.wait().expect("it ends").success());
    println!("\nmemory over {frames} frames of {SIZE} through pipes, {CHAIN}");
    println!("after {} frames {early:.1} MiB, after {} frames {late:.1} MiB", frames / 10, frames - 1);
    assert!(late < early * 1.1 + 8.0, "memory grows with the stream");
}

fn source(frames: usize) -> Child {
    let picture = format!("testsrc2=size={SIZE}:rate=30,format=yuv420p");
    let mut command = ffmpeg();
    command.args(["-f", "lavfi", "-i", &picture, "-frames:v", &frames.to_string(), "-f", "yuv4mpegpipe", "-"]);
    command.stdout(Stdio::piped()).spawn().expect("ffmpeg starts")
}

fn ours(source: &mut Child) -> Child {
    let mut command = Command::new(plimsoll());
    command.args(["frames", "--no-gpu", "--op", CHAIN, "-", "-"]);
    command.stdin(source.stdout.take().expect("it was asked for")).stdout(Stdio::piped()).spawn().expect("it starts")
}

/// The most memory a process ever had, in MiB, as Linux tells it.
fn held(id: u32) -> f64 {
    crate::child::peak_bytes(id).unwrap_or(0) as f64 / f64::from(1 << 20)
}
