//! A panic in each stage, on 1, 2 and 8 threads: it ends at once, with that panic as its cause, and what was written before
//! is right. One test, because what is planned to panic is planned for the whole process.

use std::io::{Cursor, Seek, Write};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use plimsoll::pack::{
    Draft, Format, Method, PackError, PackOptions, PackWatch, Packer, PackerOptions, SmallPacker, UnpackOptions,
};
use plimsoll::{Bytes, Orchestrator};
use plimsoll_blocks::faults::{STAGES, panic_in};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Runs before the one that panics: some blocks are under way then, and some are done.
const RUNS_BEFORE: u64 = 3;
const BLOCK: u64 = 64 << 10;

fn packer(threads: usize) -> Packer {
    Packer::new(Orchestrator::builder().cpu(threads).build(), PackerOptions::default())
}

/// Two megabytes of numbers with some order in them.
fn raw() -> Vec<u8> {
    (0..500_000_u32).flat_map(|n| (n / 3).to_le_bytes()).collect()
}

/// Options whose blocks come through the stage.
fn options(stage: &str) -> PackOptions {
    let staged = PackOptions { method: Some(Method::Staged), block: Some(Bytes(BLOCK)), ..PackOptions::default() };
    match stage {
        "filter" => PackOptions { filter: "shuffle:u32".parse().ok(), ..staged },
        "match" | "code-frame" => staged,
        "code-member" => PackOptions { format: Format::Gzip, ..staged },
        _ => PackOptions { method: None, ..staged },
    }
}

/// One frame that is too large to be unpacked as a whole.
fn long_frame() -> Vec<u8> {
    let raw = raw().repeat(30);
    let mut frame = vec![0; zstd_safe::compress_bound(raw.len())];
    let length = zstd_safe::compress(&mut frame[..], &raw, 1).expect("there is room");
    frame.truncate(length);
    frame
}

fn pack(threads: usize, stage: &str, output: &mut Vec<u8>) -> Result<(), PackError> {
    let recipe = options(stage).recipe(None).expect("options that can be meant");
    packer(threads).pack(Cursor::new(raw()), output, &recipe, &PackWatch::default()).map(|_| ())
}

/// The same on this thread alone.
fn small(stage: &str, packed: &[u8], output: &mut Vec<u8>) -> Result<(), PackError> {
    let (packer, watch) = (SmallPacker::default(), PackWatch::default());
    let recipe = options(stage).recipe(None).expect("options that can be meant");
    match stage {
        "unpack" | "unpack-part" => packer.unpack(packed, output, &UnpackOptions::default(), &watch).map(|_| ()),
        _ => packer.pack(&raw()[..], output, &recipe, &watch).map(|_| ()),
    }
}

/// Takes whatever is written.
struct Nowhere;

impl Draft for Nowhere {
    fn write_at(&self, _: &[u8], _: u64) -> std::io::Result<()> {
        Ok(())
    }
}

/// By a few threads without a scheduler, which must end by themselves.
fn by_few(stage: &'static str, packed: Vec<u8>) -> Result<(), PackError> {
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&packed).and_then(|()| file.rewind()).expect("written");
        let (packer, watch) = (SmallPacker::default(), PackWatch::default());
        let done = packer.unpack_file(file, Arc::new(Nowhere), 3, &UnpackOptions::default(), &watch);
        ended.send(done.map(|_| ()))
    });
    end.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("a panic in '{stage}' by a few threads hangs"))
}

fn unpack(threads: usize, packed: Vec<u8>, output: &mut Vec<u8>) -> Result<(), PackError> {
    let (options, watch) = (UnpackOptions::default(), PackWatch::default());
    packer(threads).unpack(Cursor::new(packed), output, &options, &watch).map(|_| ())
}

/// What comes out, and how it ended.
fn through(threads: usize, stage: &'static str, packed: Vec<u8>) -> (Vec<u8>, Result<(), PackError>) {
    let mut output = Vec::new();
    let ended = match stage {
        "unpack" | "unpack-part" => unpack(threads, packed, &mut output),
        _ => pack(threads, stage, &mut output),
    };
    (output, ended)
}

/// The same, and it must end by itself.
fn bounded(threads: usize, stage: &'static str, packed: Vec<u8>) -> (Vec<u8>, Result<(), PackError>) {
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || _ = ended.send(through(threads, stage, packed)));
    end.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("a panic in '{stage}' on {threads} threads hangs"))
}

#[test]
fn a_panic_in_any_stage_ends_it_with_that_cause() {
    let mut packed = Vec::new();
    pack(2, "pack", &mut packed).expect("nothing panics yet");
    let long = long_frame();
    for stage in STAGES {
        let input = if stage == "unpack-part" { &long } else { &packed };
        let (whole, ended) = through(2, stage, input.clone());
        assert!(ended.is_ok(), "{stage}: {ended:?}");
        for threads in [1, 2, 8] {
            panic_in(Some((stage, RUNS_BEFORE)));
            let (output, ended) = bounded(threads, stage, input.clone());
            panic_in(None);
            let ended = ended.expect_err(stage);
            let told = std::error::Error::source(&ended).map_or_else(|| ended.to_string(), ToString::to_string);
            assert!(told.contains(&format!("the stage '{stage}' panics on purpose")), "{threads} threads: {told}");
            assert!(whole.starts_with(&output) && output.len() < whole.len(), "{stage} on {threads} threads");
        }
        if ["pack", "unpack", "unpack-part"].contains(&stage) {
            panic_in(Some((stage, RUNS_BEFORE)));
            let mut output = Vec::new();
            let ended = small(stage, input, &mut output);
            panic_in(None);
            let told = ended.expect_err(stage).to_string();
            assert!(told.contains(&format!("the stage '{stage}' panics on purpose")), "on this thread: {told}");
            if stage != "pack" {
                panic_in(Some((stage, RUNS_BEFORE)));
                let ended = by_few(stage, input.clone());
                panic_in(None);
                let told = ended.expect_err(stage).to_string();
                assert!(told.contains(&format!("the stage '{stage}' panics on purpose")), "by a few: {told}");
            }
            assert!(whole.starts_with(&output) && output.len() < whole.len(), "{stage} on this thread");
        }
    }
}
