//! `plimsoll array` as people and programs use it: other programs' readers on the other side, pipes, kills, and every way
//! it ends. `cargo xtask test` installs the readers.

mod shell;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use shell::{Folder, stderr};

/// Frames of 60 × 70 in u16, 8,400 bytes each.
const WRITE: &str = "plimsoll array write --shape 0,60,70 --dtype u16 --chunk 2,32,32 --shard 8,64,64 --levels 2";
const FRAME: usize = 60 * 70 * 2;

fn frames(count: usize) -> Vec<u8> {
    (0..count * FRAME).map(|at| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7] & 0x3f).collect()
}

/// Every file of an array with its bytes.
fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false => files.push((entry.strip_prefix(root).unwrap().to_owned(), fs::read(&entry).unwrap())),
            }
        }
    }
    files.sort();
    files
}

#[test]
fn frames_through_a_pipe_become_an_array_that_is_sound() {
    let folder = Folder::new();
    folder.write("frames.raw", &frames(21));
    let said = folder.works(&format!("cat frames.raw | {WRITE} --codec zstd:3 out.zarr"));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("21 steps"), "{said}");
    let info = folder.works("plimsoll array info out.zarr");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("21 × 60 × 70") && info.contains("21 × 30 × 35"), "{info}");
    assert!(info.lines().all(|line| line.chars().count() <= 80), "{info}");
    let sound = folder.works("plimsoll array verify out.zarr");
    assert!(String::from_utf8_lossy(&sound.stdout).contains("all sound"));
    let told: Value = serde_json::from_slice(&folder.works("plimsoll array info --json out.zarr").stdout).unwrap();
    assert_eq!(told["levels"][0]["shape"], json!([21, 60, 70]));
}

#[test]
fn damage_is_named_and_the_exit_code_tells() {
    let folder = Folder::new();
    folder.write("frames.raw", &frames(16));
    folder.works(&format!("{WRITE} -i frames.raw out.zarr"));
    let shard = folder.at("out.zarr/0/c/1/0/0");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[100] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let output = folder.shell("plimsoll array verify out.zarr");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("0/c/1/0/0"));
}

/// Frames of 256 × 256, each 128 KiB.
const WRITE_LARGE: [&str; 12] = [
    "array",
    "write",
    "--shape",
    "0,256,256",
    "--dtype",
    "u16",
    "--chunk",
    "2,128,128",
    "--shard",
    "8,256,256",
    "-q",
    "--levels=2",
];

/// Writes frames at the pace of a camera into a pipe, and kills the writer after a while.
fn killed_after(folder: &Folder, bytes: &[u8], after: Duration) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(WRITE_LARGE)
        .args(["--resume", "cut.zarr"])
        .current_dir(folder.0.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stdin, begun) = (child.stdin.take().unwrap(), Instant::now());
    for frame in bytes.chunks(1 << 20) {
        // A writer that is gone takes no more.
        if begun.elapsed() > after || stdin.write_all(frame).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn twenty_kills_and_a_resume_after_each() {
    let folder = Folder::new();
    let bytes: Vec<u8> =
        (0..64 << 20).map(|at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7] & 7).collect();
    folder.write("frames.raw", &bytes);
    let write = format!("plimsoll {}", WRITE_LARGE.join(" "));
    folder.works(&format!("{write} -i frames.raw whole.zarr"));
    let mut published = Vec::new();
    for round in 0..20 {
        killed_after(&folder, &bytes, Duration::from_millis(20 + 23 * round));
        if folder.at("cut.zarr/zarr.json").exists() {
            folder.works("plimsoll array verify cut.zarr");
            let info = folder.works("plimsoll array info --json cut.zarr").stdout;
            let info: Value = serde_json::from_slice(&info).unwrap();
            published.push(info["levels"][0]["shape"][0].as_u64().unwrap());
        }
    }
    folder.works(&format!("{write} --resume -i frames.raw cut.zarr"));
    assert!(files(&folder.at("cut.zarr")) == files(&folder.at("whole.zarr")));
    assert!(published.iter().any(|steps| (1..512).contains(steps)), "no kill came in the middle: {published:?}");
}

#[test]
fn levels_are_the_same_wherever_they_are_made() {
    let folder = Folder::new();
    folder.write("frames.raw", &frames(21));
    folder.works(&format!("{WRITE} -q --stage levels=cpu -i frames.raw cpu.zarr"));
    folder.works(&format!("{WRITE} -q --software-gpu --stage levels=gpu -i frames.raw gpu.zarr"));
    assert!(files(&folder.at("cpu.zarr")) == files(&folder.at("gpu.zarr")));
    let stages = "--stage levels=gpu,scatter=gpu,shuffle=gpu --codec blosc:lz4:5:shuffle";
    let told = folder.works(&format!("{WRITE} --software-gpu {stages} --explain -i frames.raw all.zarr"));
    assert!(
        stderr(&told).contains("levels, scatter, shuffle") && stderr(&told).contains("schedule:"),
        "{}",
        stderr(&told)
    );
    folder.works(&format!("{WRITE} -q --no-gpu --codec blosc:lz4:5:shuffle -i frames.raw plain.zarr"));
    assert!(files(&folder.at("all.zarr")) == files(&folder.at("plain.zarr")));
    let refused = folder.shell(&format!("{WRITE} -q --no-gpu --stage levels=gpu -i frames.raw none.zarr"));
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(!folder.at("none.zarr").exists());
}

#[test]
fn a_plan_advises_chunks_that_fit() {
    let folder = Folder::new();
    let advised = folder.works("plimsoll array plan --shape 0,2048,2304 --dtype u16 --memory 256MiB");
    let advised = String::from_utf8_lossy(&advised.stdout).into_owned();
    let options = advised.lines().next().unwrap();
    assert!(options.starts_with("--chunk ") && options.contains(" --shard "), "{advised}");
    folder.works(&format!("plimsoll array plan --shape 0,2048,2304 --dtype u16 --memory 256MiB {options}"));
    let refused =
        folder.shell("plimsoll array plan --shape 0,2048,2304 --dtype u16 --chunk 64,256,256 --memory 256MiB");
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--chunk "), "{}", stderr(&refused));
}

#[test]
fn errors_say_what_to_do_next() {
    let folder = Folder::new();
    folder.write("frames.raw", &frames(2));
    folder.write("half.raw", &frames(2)[..FRAME + 1]);
    folder.works(&format!("{WRITE} -q -i frames.raw there.zarr"));
    folder.write("notes/todo.txt", b"mine");
    folder.write("broken.zarr/zarr.json", b"{");
    for (line, code, says) in [
        (format!("{WRITE} -i frames.raw there.zarr"), 1, "--overwrite"),
        (format!("{WRITE} --overwrite -i frames.raw notes"), 1, "no Zarr array"),
        (format!("{WRITE} -i half.raw half.zarr"), 1, "within a step"),
        (format!("{WRITE} -i missing.raw x.zarr"), 1, "missing.raw"),
        (format!("{WRITE} --codec zip -i frames.raw x.zarr"), 2, "zip"),
        ("plimsoll array write --shape 0,60 --dtype u16 --chunk 1,2,3 x.zarr < frames.raw".to_owned(), 2, "dimension"),
        ("plimsoll array write --shape 0,60 --dtype u16 x.zarr < frames.raw".to_owned(), 2, "plan"),
        (format!("{WRITE} --resume --fill 7 -i frames.raw there.zarr"), 1, "another fill_value than"),
        (format!("{WRITE} -i notes x.zarr"), 1, "--input takes a file"),
        (format!("{WRITE} -i frames.raw half.raw"), 1, "another name"),
        ("plimsoll array info broken.zarr".to_owned(), 1, "write the array anew"),
        (
            "plimsoll array write --shape 0,1000000,1000000 --dtype u16 --chunk 1,1000,1000 x.zarr < frames.raw"
                .to_owned(),
            1,
            "at least",
        ),
        ("plimsoll array info nowhere.zarr".to_owned(), 1, "nowhere.zarr"),
        ("plimsoll array verify frames.raw".to_owned(), 1, "frames.raw"),
        (
            "plimsoll array plan --shape 0,4096,4096 --dtype u16 --chunk 64,256,256 --memory 10MiB".to_owned(),
            1,
            "more than 10.0 MiB",
        ),
    ] {
        let output = folder.shell(&line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{line}: {}", stderr(&output));
        assert_eq!(
            stderr(&output).matches("EOF").count(),
            usize::from(line.contains("broken")),
            "causes are said once"
        );
    }
    assert!(folder.at("notes/todo.txt").exists());
    assert!(!folder.at("x.zarr").exists(), "nothing is begun for what cannot be");
}

#[test]
fn an_address_of_something_else_is_no_folder() {
    let folder = Folder::new();
    let output = folder.shell("plimsoll array info gs://bucket/out.zarr");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("s3://bucket/folder"), "{}", stderr(&output));
}

#[cfg(not(feature = "s3"))]
#[test]
fn a_program_without_buckets_says_how_to_get_them() {
    let folder = Folder::new();
    let output = folder.shell("plimsoll array info s3://bucket/out.zarr");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("--features s3"), "{}", stderr(&output));
}

/// Written, killed, gone on with, looked at and checked in a bucket.
#[cfg(feature = "s3")]
#[test]
fn an_array_in_a_bucket_is_written_gone_on_with_and_sound() {
    let server = plimsoll_testkit::bucket::Bucket::start();
    let run = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(words.split(' ')).envs(server.variables()).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let write = WRITE.trim_start_matches("plimsoll ").to_owned() + " --resume s3://data/runs/out.zarr";
    let mut killed = run(&write);
    killed.stdin.take().unwrap().write_all(&frames(40)).unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut whole = run(&write);
    let mut input = whole.stdin.take().unwrap();
    input.write_all(&frames(50)).unwrap();
    drop(input);
    let output = whole.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let info = run("array info s3://data/runs/out.zarr").wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&info.stdout).contains("50 × 60 × 70"), "{}", stderr(&info));
    let sound = run("array verify s3://data/runs/out.zarr").wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&sound.stdout).contains("all sound"), "{}", stderr(&sound));
    let none = run("array info s3://elsewhere/out.zarr").wait_with_output().unwrap();
    assert!(!none.status.success() && stderr(&none).contains("there is no bucket 'elsewhere'"), "{}", stderr(&none));
}
