//! Damaged streams and images through the whole path: every frame before the damage comes out, then an error or the end;
//! nothing panics or hangs, and nothing is kept. Seeds are fixed; `cargo xtask campaign frames` tries more of them.

use std::fs;
use std::sync::Arc;

use plimsoll::Device;
use plimsoll::frames::{Distributor, FrameError};
use plimsoll::image::Size;
use plimsoll::image::encode::{Encoding, JpegQuality, encode};
use plimsoll::image::frames::stream::{
    RawFormat, RawReader, Selection, StreamError, StreamHeader, Y4mReader, Y4mWriter,
};
use plimsoll::image::frames::{Chain, Colour, Format, Frame};
use plimsoll_core::rng::Rng;
use plimsoll_runtime::cpu::CpuDevice;

use crate::devices::distributor;
use crate::film::{film, format};

/// A few seconds' worth; a campaign asks for more.
const ROUNDS: u64 = 300;

fn rounds() -> u64 {
    std::env::var("PLIMSOLL_CAMPAIGN_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

fn damaged(whole: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..rng.within(1, 4) {
        let reach = if rng.chance(0.5) { bytes.len() } else { bytes.len().min(100) };
        if reach == 0 {
            break;
        }
        let at = rng.below(reach);
        let length = rng.below(40).min(bytes.len() - at);
        match rng.below(6) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = b" \n0129:WHCFAIXp"[rng.below(15)],
            2 => bytes[at..at + length].fill(0xff),
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + length)),
            _ => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

/// Frames that came out, numbered in order; then nothing, or one error.
fn outcome(
    distributor: &Distributor,
    frames: impl Iterator<Item = Result<Frame, StreamError>> + Send + 'static,
    chain: &Chain,
) -> (u64, Option<FrameError<StreamError>>) {
    let mut stream = distributor.stream(frames, chain);
    let mut count = 0;
    for done in stream.by_ref() {
        match done {
            Ok(done) => {
                assert_eq!(done.number, count);
                count += 1;
            }
            Err(error) => {
                assert_eq!(error.number(), count, "{error}");
                assert!(stream.next().is_none());
                return (count, Some(error));
            }
        }
    }
    (count, None)
}

fn chains() -> [Chain; 3] {
    ["crop=8x8+1+1", "scale=50%,blur=1", "denoise=temporal:1,flip=h"].map(|chain| chain.parse().expect("a chain"))
}

#[test]
fn damaged_streams_end_after_the_frames_before() {
    let cpu = Arc::new(CpuDevice::builder().slots(2).build());
    let distributor = distributor(vec![Arc::clone(&cpu) as Arc<dyn Device>]);
    let mut writer = Y4mWriter::new(Vec::new(), StreamHeader::new(format())).expect("a header");
    film(6).iter().for_each(|frame| writer.write(frame).expect("written"));
    let whole = writer.finish().expect("whole");
    let (mut refused, mut broken, mut through) = (0, 0, 0);
    for seed in 1..=rounds() {
        let mut rng = Rng::new(seed);
        let bytes = damaged(&whole, &mut rng);
        let chain = &chains()[rng.below(3)];
        let Ok(reader) = Y4mReader::open(std::io::Cursor::new(bytes)) else {
            refused += 1;
            continue;
        };
        match outcome(&distributor, reader, chain) {
            (_, Some(error)) => broken += usize::from(!error.to_string().is_empty()),
            (frames, None) => through += usize::from(frames > 0),
        }
        assert_eq!(cpu.memory().ours.0, 0, "seed {seed}: something is kept");
    }
    assert!(refused > 0 && broken > 0 && through > 0, "{refused} {broken} {through}");
}

#[test]
fn raw_streams_of_any_length_give_their_whole_frames() {
    let distributor = distributor(vec![Arc::new(CpuDevice::builder().slots(2).build()) as Arc<dyn Device>]);
    let names =
        ["rgb24", "gray", "yuv420p", "yuv422p10le", "nv12", "nv21", "rgba", "bgra", "gbrp", "gbrp12le", "rgba64le"];
    for seed in 1..=rounds() {
        let mut rng = Rng::new(seed);
        let size = Size { width: rng.within(1, 19) as u32, height: rng.within(1, 19) as u32 };
        let raw = RawFormat::named(names[rng.below(names.len())], size).expect("known");
        let bytes: Vec<u8> = (0..rng.below(5 * raw.stream_bytes() + 2)).map(|_| rng.below(256) as u8).collect();
        let (whole, rest) = (bytes.len() / raw.stream_bytes(), bytes.len() % raw.stream_bytes());
        let frames = RawReader::new(std::io::Cursor::new(bytes), raw);
        let part = ["trim=2", "select=2", "fps=2"][rng.below(3)];
        let selection = Selection::part(part).expect("one of them").expect("well written");
        let rate = "1".parse().ok();
        let wanted = selection.count(whole as u64, rate);
        let chain: Chain = format!("crop={size}+0+0").parse().expect("a chain");
        let (count, error) = outcome(&distributor, selection.select(frames, rate), &chain);
        assert_eq!(
            (count, error.is_some()),
            (wanted, rest > 0),
            "seed {seed}: {part} of {whole} frames and {rest} bytes"
        );
    }
}

#[test]
fn damaged_images_end_after_those_before() {
    let distributor = distributor(vec![Arc::new(CpuDevice::builder().slots(2).build()) as Arc<dyn Device>]);
    let folder = tempfile::tempdir().expect("a folder");
    let format = Format::new(Size { width: 23, height: 17 }, 8, Colour::Rgb).expect("a format");
    let frame =
        Frame::new(format, (0..format.frame_bytes()).map(|at| (at * 5 % 256) as u8).collect()).expect("a frame");
    for seed in 1..=rounds() {
        let mut rng = Rng::new(seed);
        let encoding = Encoding::ALL[rng.below(Encoding::ALL.len())];
        let mut file = std::io::Cursor::new(Vec::new());
        encode(&frame, encoding, JpegQuality::default(), &mut file).expect("coded");
        let whole = file.into_inner();
        let [good, bad] = ["good", "bad"].map(|name| folder.path().join(name).with_extension(encoding.endings()[0]));
        fs::write(&good, &whole).expect("written");
        fs::write(&bad, damaged(&whole, &mut rng)).expect("written");
        let chain: Chain = "flip=h".parse().expect("a chain");
        let done: Vec<_> = distributor.stream_images([good, bad], &chain).collect();
        assert!(done[0].is_ok() && done.len() <= 2, "seed {seed}: {encoding}");
    }
}
