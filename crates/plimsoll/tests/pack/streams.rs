//! Frames without an end in sight, other programs' members, bombs, and long streams in flat memory.

use std::io::{self, Cursor, Read, Write};

use plimsoll::Bytes;
use plimsoll::pack::{Format, PackOptions, PackWatch, UnpackError, UnpackOptions};

use crate::data::{mixed, of, pack, packer, unpack};

/// A zstd frame of so many blocks that give 128 KiB of zeros each, out of four bytes.
fn bomb(blocks: u32) -> Vec<u8> {
    // Magic; no content size, no checksum; a window of 1 MiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3];
    for block in 1..=blocks {
        let header = (128 << 10) << 3 | 1 << 1 | u32::from(block == blocks);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// Counts what is written, and nothing else.
#[derive(Default)]
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(bytes.iter().all(|byte| *byte == 0));
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_bomb_streams_or_is_stopped_by_the_limit() {
    let packer = packer(2);
    let blocks = 4 << 10;
    let mut count = Count::default();
    let done = packer.unpack(Cursor::new(bomb(blocks)), &mut count, &UnpackOptions::default(), &PackWatch::default());
    assert_eq!((done.unwrap().raw, count.0), (512 << 20, 512 << 20));
    let options = UnpackOptions { limit: Some(Bytes(1 << 20)) };
    let mut count = Count::default();
    let stopped = packer.unpack(Cursor::new(bomb(blocks)), &mut count, &options, &PackWatch::default()).unwrap_err();
    assert!(matches!(stopped.damage(), Some(UnpackError::OverLimit { .. })), "{stopped}");
    assert!(count.0 <= 1 << 20);
}

#[test]
fn a_lying_header_allocates_nothing() {
    let packer = packer(1);
    // A frame that says it gives 2^60 bytes and holds one block of one byte.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1100_0000, 0];
    frame.extend((1_u64 << 60).to_le_bytes());
    frame.extend([0b1001, 0, 0, b'x']);
    assert!(unpack(&packer, &frame).unwrap_err().damage().is_some());
    // A member of ours that says it gives 40 MiB; its header is right otherwise.
    let one = pack(&packer, &of(Format::Gzip), &vec![7; 1000]);
    let mut lying = one;
    lying[20..24].copy_from_slice(&(40_u32 << 20).to_le_bytes());
    assert!(unpack(&packer, &lying).unwrap_err().damage().is_some());
}

#[test]
fn large_frames_of_other_programs_go_through_in_parts() {
    let packer = packer(2);
    let raw = mixed(60_000_000, 50);
    let mut context = zstd_safe::CCtx::create();
    for parameter in [zstd_safe::CParameter::CompressionLevel(1), zstd_safe::CParameter::ChecksumFlag(true)] {
        context.set_parameter(parameter).unwrap();
    }
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(raw.len()));
    context.compress2(&mut frame, &raw).unwrap();
    let both = [frame.clone(), pack(&packer, &of(Format::Zstd), b"and more"), frame.clone()].concat();
    assert!(unpack(&packer, &both).unwrap() == [&raw[..], b"and more", &raw].concat());
    let mut damaged = frame;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 4;
    assert!(unpack(&packer, &damaged).unwrap_err().damage().is_some());
}

/// A frame that gives a tebibyte, made up while it is read: 8 Mi blocks of 128 KiB of zeros, four bytes each.
fn tebibyte() -> impl Read + Send + 'static {
    let frame_header = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3];
    let block = ((128_u32 << 10) << 3 | 1 << 1).to_le_bytes();
    let blocks = vec![[block[0], block[1], block[2], 0]; 1 << 10].concat();
    let many = (0..8 << 10).map(move |_| blocks.clone());
    Pieces { pieces: std::iter::once(frame_header).chain(many), now: Cursor::new(Vec::new()) }
}

/// Pieces behind each other.
struct Pieces<I> {
    pieces: I,
    now: Cursor<Vec<u8>>,
}

impl<I: Iterator<Item = Vec<u8>>> Read for Pieces<I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.now.read(into)?;
            if read > 0 {
                return Ok(read);
            }
            match self.pieces.next() {
                Some(piece) => self.now = Cursor::new(piece),
                None => return Ok(0),
            }
        }
    }
}

#[test]
fn a_tebibyte_is_stopped_by_the_limit_in_flat_memory() {
    let name = "streams::a_tebibyte_is_stopped_by_the_limit_in_flat_memory";
    alone(name, || {
        let limit = Bytes(512 << 20);
        let (options, watch) = (UnpackOptions { limit: Some(limit) }, PackWatch::default());
        let mut count = Count::default();
        let stopped = packer(2).unpack(tebibyte(), &mut count, &options, &watch).unwrap_err();
        assert!(matches!(stopped.damage(), Some(UnpackError::OverLimit { .. })), "{stopped}");
        assert!(count.0 <= limit.0 && count.0 > limit.0 - (8 << 20), "{} bytes", count.0);
    });
}

/// As many MiB as rounds, packed on one side of a pipe and unpacked on the other: `cargo xtask campaign pack-stream` sends
/// 20 GiB.
#[test]
fn many_gigabytes_through_pipes_come_back_in_flat_memory() {
    alone("streams::many_gigabytes_through_pipes_come_back_in_flat_memory", || {
        let rounds = std::env::var("PLIMSOLL_CAMPAIGN_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
        let bytes = rounds.unwrap_or(400_u64) << 20;
        let (got, mut sent) = io::pipe().unwrap();
        let packing = std::thread::spawn(move || {
            let recipe = PackOptions { level: Some(1), ..PackOptions::default() }.recipe(None).unwrap();
            packer(2).pack(Lines::default().take(bytes), &mut sent, &recipe, &PackWatch::default()).map(|done| done.raw)
        });
        let mut same = Same { expected: Lines::default(), count: 0, buffer: Vec::new() };
        let unpacked = packer(2).unpack(got, &mut same, &UnpackOptions::default(), &PackWatch::default());
        assert_eq!((unpacked.unwrap().raw, same.count), (bytes, bytes));
        assert_eq!(packing.join().unwrap().unwrap(), bytes);
    });
}

/// Runs a test in a process of its own, because other tests of this one hold whole files; its memory must stay flat.
fn alone(name: &str, test: impl FnOnce()) {
    const ALONE: &str = "PLIMSOLL_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        assert!(alone.args(["--exact", name]).env(ALONE, "1").status().unwrap().success());
        return;
    }
    test();
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 400 << 10, "{kib} KiB at the peak");
    }
}

/// Numbered lines without an end, different everywhere.
#[derive(Default)]
struct Lines {
    line: u64,
    left: Vec<u8>,
}

impl Read for Lines {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            for _ in 0..1_000 {
                self.line += 1;
                let noise = self.line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                self.left.extend(noise.to_le_bytes());
                self.left.extend(self.line.to_le_bytes());
                self.left.extend(*b" is the number of this line here");
            }
        }
        let given = into.len().min(self.left.len());
        into[..given].copy_from_slice(&self.left[..given]);
        self.left.drain(..given);
        Ok(given)
    }
}

/// Takes only what is expected.
struct Same {
    expected: Lines,
    count: u64,
    buffer: Vec<u8>,
}

impl Write for Same {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.resize(bytes.len(), 0);
        self.expected.read_exact(&mut self.buffer)?;
        assert!(self.buffer == bytes, "other bytes come back after {}", self.count);
        self.count += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
