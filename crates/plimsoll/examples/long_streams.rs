//! Memory over long streams: each kind of chain on 1, 2 and 8 threads, and what the process holds on the way.
//!
//! `cargo run --release -p plimsoll --example long_streams -- FRAMES WIDTHxHEIGHT`; 20,000 frames of 160x90 if not said.
//! Fails if any of them holds more in its second half than at the end of its first tenth, by more than [`SLACK`].

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use plimsoll::frames::{Distributor, DistributorOptions};
use plimsoll::image::Size;
use plimsoll::image::frames::stream::pixel_format;
use plimsoll::image::frames::{Chain, Format, Frame};
use plimsoll::{Device, Orchestrator};
use plimsoll_core::Bytes;
use plimsoll_runtime::cpu::{CpuDevice, memory};

/// One of each kind: rows alone, several planes and tables, whole planes, other frames, and other frames in the middle.
const CHAINS: [&str; 5] =
    ["flip=h", "scale=50%:lanczos,blur=2", "rotate=90", "denoise=temporal", "blur=1,denoise=temporal:2,scale=50%"];
const THREADS: [usize; 3] = [1, 2, 8];
/// What an allocator may keep that nobody uses: about a window of frames, however long the stream is.
const SLACK: Bytes = Bytes::mib(48);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let frames = words.first().map_or(Ok(20_000), |word| word.parse())?;
    let size = words.get(1).map_or("160x90", String::as_str);
    let (width, height) = size.split_once('x').ok_or("write a size as 160x90")?;
    let size = Size { width: width.parse()?, height: height.parse()? };
    let chains = words.get(2..).filter(|chains| !chains.is_empty());
    let chains = chains.map_or(CHAINS.to_vec(), |chains| chains.iter().map(String::as_str).collect());
    let mut grew = false;
    for chain in chains {
        for threads in THREADS {
            grew |= !is_flat(chain, threads, frames, pixel_format("yuv420p", size)?)?;
        }
    }
    if grew { Err("memory grows with the stream".into()) } else { Ok(()) }
}

/// Sends a stream through a chain; prints what the process holds after each tenth.
fn is_flat(chain: &str, threads: usize, frames: u64, format: Format) -> Result<bool, Box<dyn Error>> {
    let cpu = Arc::new(CpuDevice::builder().slots(threads).build());
    let orchestrator = Orchestrator::builder().device(Arc::clone(&cpu) as Arc<dyn Device>).build();
    let distributor = Distributor::new(orchestrator, DistributorOptions::default());
    let source = (0..frames).map(move |number| Ok::<_, Infallible>(frame(format, number)));
    let (mut held, mut kept) = (Vec::new(), Bytes::ZERO);
    for (number, done) in (1..).zip(distributor.stream(source, &chain.parse::<Chain>()?)) {
        done?;
        kept = kept.max(cpu.memory().ours);
        if number % (frames / 10).max(1) == 0 {
            held.push(memory::resident().unwrap_or_default());
        }
    }
    let (first, later) = (held[0], held[held.len() / 2..].iter().copied().max().unwrap_or_default());
    let is_flat = later <= first + SLACK;
    let verdict = if is_flat { "flat" } else { "GROWS" };
    let shown: Vec<String> = held.iter().map(|bytes| format!("{:.0}", bytes.0 as f64 / f64::from(1 << 20))).collect();
    println!("{chain:<40} {threads} threads  kept at most {kept}  MiB held {}  {verdict}", shown.join(" "));
    Ok(is_flat)
}

/// Noise that differs from frame to frame, made quickly.
fn frame(format: Format, number: u64) -> Frame {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let bytes = (0..format.frame_bytes().div_ceil(8)).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let bytes: Vec<u8> = bytes.take(format.frame_bytes()).collect();
    Frame::new(format, bytes).expect("as many bytes as the format says")
}
