//! How fast frames come out of Y4M files and pipes, and go into them, and how long an image file takes.
//!
//! `cargo run --release -p plimsoll-image --example stream_speed`
//!
//! Writes 200 frames of 1920 x 1080 in 8-bit 4:2:0 into a temporary file and reads them again, beside a plain loop of
//! reads into one buffer. Prints the best of several turns in megabytes a second. Turns alternate, so that a busy machine
//! treats all alike.

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{Cursor, Read, Seek};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_image::Size;
use plimsoll_image::encode::{Encoding, JpegQuality, encode};
use plimsoll_image::frames::stream::{StreamHeader, Y4mReader, Y4mWriter, pixel_format};
use plimsoll_image::frames::{Format, Frame};

const SIZE: Size = Size { width: 1920, height: 1080 };
const FRAMES: usize = 200;
const TURNS: u32 = 5;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    streams(&drawn(pixel_format("yuv420p", SIZE)?)?)?;
    for name in ["rgb24", "rgb48le"] {
        images(&drawn(pixel_format(name, SIZE)?)?)?;
    }
    Ok(())
}

/// Slopes with some grain, much as in a photograph.
fn drawn(format: Format) -> Outcome<Frame> {
    let grain = |at: u32| at.wrapping_mul(0x9e37_79b1).wrapping_mul(at ^ 0x85eb_ca77) >> 29;
    let row = SIZE.width * 3;
    let bytes = (0..format.frame_bytes() as u32).map(|at| ((at % row) / 29 + (at / row) / 9 + grain(at)) as u8);
    Ok(Frame::new(format, bytes.collect())?)
}

fn streams(frame: &Frame) -> Outcome<()> {
    let mut file = tempfile::tempfile()?;
    let [mut writing, mut plain, mut reading, mut piping] = [Duration::MAX; 4];
    for _ in 0..TURNS {
        shortest(&mut writing, || write(&file, frame))?;
        file.rewind()?;
        shortest(&mut plain, || read_plainly(&file, frame.bytes().len()))?;
        file.rewind()?;
        shortest(&mut reading, || read(&file))?;
        file.rewind()?;
        shortest(&mut piping, || through_a_pipe(frame))?;
        file.rewind()?;
    }
    let rate = |time: Duration| (FRAMES * frame.bytes().len()) as f64 / 1e6 / time.as_secs_f64();
    println!("{}, MB/s:", frame.format());
    println!("  write a file       {:6.0}", rate(writing));
    println!("  read it            {:6.0}   (into one buffer, no frames: {:.0})", rate(reading), rate(plain));
    println!("  through a pipe     {:6.0}", rate(piping));
    Ok(())
}

fn shortest(best: &mut Duration, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let start = Instant::now();
    work()?;
    *best = start.elapsed().min(*best);
    Ok(())
}

fn write(file: impl std::io::Write, frame: &Frame) -> Outcome<()> {
    let mut writer = Y4mWriter::new(file, StreamHeader::new(frame.format()))?;
    for _ in 0..FRAMES {
        writer.write(frame)?;
    }
    writer.finish()?;
    Ok(())
}

fn read(file: impl Read) -> Outcome<()> {
    let mut count = 0;
    for frame in Y4mReader::open(file)? {
        black_box(frame?);
        count += 1;
    }
    assert_eq!(count, FRAMES);
    Ok(())
}

fn read_plainly(mut file: &File, bytes: usize) -> Outcome<()> {
    let mut buffer = vec![0; bytes];
    while file.read(black_box(&mut buffer))? > 0 {}
    Ok(())
}

fn through_a_pipe(frame: &Frame) -> Outcome<()> {
    let (reader, writer) = std::io::pipe()?;
    let frame = frame.clone();
    let writing = thread::spawn(move || write(writer, &frame).map_err(|error| error.to_string()));
    read(reader)?;
    Ok(writing.join().expect("the writer does not panic")?)
}

fn images(frame: &Frame) -> Outcome<()> {
    println!("{}, ms:", frame.format());
    for encoding in [Encoding::Png, Encoding::Ppm, Encoding::Tiff, Encoding::Qoi, Encoding::Jpeg] {
        if frame.format().depth() > 8 && !encoding.holds_16_bits() {
            continue;
        }
        let (mut best, mut bytes) = (Duration::MAX, 0);
        for _ in 0..TURNS {
            shortest(&mut best, || {
                let mut file = Cursor::new(Vec::new());
                encode(frame, encoding, JpegQuality::default(), &mut file)?;
                bytes = file.into_inner().len();
                Ok(())
            })?;
        }
        println!("  {encoding:5} {:6.1}, {bytes} bytes", best.as_secs_f64() * 1e3);
    }
    Ok(())
}
