//! `plimsoll frames` as people and programs use it: ffmpeg at both ends, files, images, and every way it ends.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::frames::{Distributor, DistributorOptions};
use plimsoll::image::frames::stream::{Y4mReader, Y4mWriter};
use plimsoll::image::frames::{Chain, Frame};
use plimsoll::machine::GpuUse;
use plimsoll::{Machine, MachineOptions, Orchestrator};
use serde_json::Value;
use tempfile::TempDir;

/// Settings of the developer's own that would change what is seen here.
const OWN_SETTINGS: [&str; 5] =
    ["PLIMSOLL_ALONE", "PLIMSOLL_MEMORY_LIMIT", "PLIMSOLL_NO_GPU", "PLIMSOLL_SOFTWARE_GPU", "CLICOLOR_FORCE"];
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with videos, and a profile of its own.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A video of ffmpeg's test picture.
    fn video(&self, name: &str, size: &str, frames: u32) -> PathBuf {
        let path = self.at(name);
        let source = format!("testsrc2=size={size}:rate=25");
        let frames = frames.to_string();
        let words = ["-v", "error", "-f", "lavfi", "-i", &source, "-frames:v", &frames, "-pix_fmt", "yuv420p", "-y"];
        assert!(ffmpeg().args(words).arg(&path).status().expect("ffmpeg is installed").success());
        path
    }

    /// Image files of ffmpeg's test picture.
    fn images(&self, count: u32) -> Vec<PathBuf> {
        fs::create_dir_all(self.at("frames")).expect("made");
        let words =
            ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=48x32:rate=25", "-frames:v", &count.to_string()];
        let made = ffmpeg().args(words).arg("-y").arg(self.at("frames/%03d.png")).status();
        assert!(made.expect("ffmpeg is installed").success());
        (1..=count).map(|number| self.at(&format!("frames/{number:03}.png"))).collect()
    }

    fn frames(&self, op: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        OWN_SETTINGS.iter().for_each(|name| {
            command.env_remove(name);
        });
        command
            .env("PLIMSOLL_PROFILE", self.at("profile.toml"))
            .env("PLIMSOLL_BOOK", self.at("book"))
            .args(["frames", "--op", op]);
        command
    }

    /// A pipeline of the shell; `plimsoll` and the folder's names work in it.
    fn shell(&self, line: &str) -> Output {
        let binary = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().expect("in a folder");
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.args(["-o", "pipefail", "-c", line]).current_dir(self.0.path()).env("PATH", path);
        command
            .env("PLIMSOLL_PROFILE", self.at("profile.toml"))
            .env("PLIMSOLL_BOOK", self.at("book"))
            .output()
            .expect("bash is installed")
    }
}

fn ffmpeg() -> Command {
    let mut command = Command::new("ffmpeg");
    command.stdin(Stdio::null());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn succeeded(output: Output) -> Output {
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// Exit code and message of a command that must fail.
fn refused(command: &mut Command) -> (i32, String) {
    let output = command.stdin(Stdio::null()).output().expect("started");
    assert!(!output.status.success(), "{command:?} succeeded");
    (output.status.code().expect("no signal"), stderr(&output))
}

fn y4m_frames(stream: impl Read) -> Vec<Frame> {
    Y4mReader::open(stream).expect("a stream").collect::<Result<_, _>>().expect("whole frames")
}

fn frames_in(path: &Path) -> Vec<Frame> {
    y4m_frames(File::open(path).expect("it is there"))
}

/// What the library makes of a video, on the CPU.
fn by_the_library(video: &Path, chain: &str) -> Vec<Frame> {
    let machine = Machine::open(&MachineOptions { gpus: GpuUse::None, ..MachineOptions::default() });
    let distributor =
        Distributor::new(Orchestrator::builder().devices(machine.devices).build(), DistributorOptions::default());
    let chain: Chain = chain.parse().expect("a chain");
    let done = distributor.distribute(frames_in(video), &chain).expect("all frames");
    done.into_iter().map(|done| done.frame).collect()
}

fn worst_difference(a: &[Frame], b: &[Frame]) -> u8 {
    assert_eq!(a.len(), b.len(), "as many frames");
    let each = a.iter().zip(b).flat_map(|(a, b)| {
        assert_eq!(a.format(), b.format());
        a.bytes().iter().zip(b.bytes())
    });
    each.map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
}

#[test]
fn ffmpeg_pipes_in_and_out() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "162x122", 50);
    let by_us = folder.shell(
        "ffmpeg -v error -i in.y4m -f yuv4mpegpipe - | plimsoll frames --op crop=101x75+20+10,blur=1.5 --no-gpu - - \
         | ffmpeg -v error -f yuv4mpegpipe -i - -f framemd5 -",
    );
    let by_us = String::from_utf8(succeeded(by_us).stdout).expect("text");
    let frames = by_the_library(&video, "crop=101x75+20+10,blur=1.5");
    let mut header = *Y4mReader::open(File::open(&video).expect("there")).expect("a stream").header();
    header.format = frames[0].format();
    let mut writer = Y4mWriter::new(File::create(folder.at("library.y4m")).expect("made"), header).expect("written");
    frames.iter().for_each(|frame| writer.write(frame).expect("written"));
    let right = folder.shell("ffmpeg -v error -i library.y4m -f framemd5 -");
    assert_eq!(by_us, String::from_utf8(succeeded(right).stdout).expect("text"));
    assert_eq!(by_us.lines().filter(|line| !line.starts_with('#')).count(), 50, "{by_us}");
}

#[test]
fn the_first_command_of_the_manual_works() {
    let folder = Folder::new();
    folder.video("in.mkv", "96x64", 12);
    let piped = folder.shell(
        "ffmpeg -v error -i in.mkv -f yuv4mpegpipe - \
         | plimsoll frames --op \"scale=64x48:lanczos,denoise=bilateral\" - - | ffmpeg -v error -i - out.mkv",
    );
    succeeded(piped);
    let counted = folder
        .shell("ffprobe -v error -count_frames -show_entries stream=width,height,nb_read_frames -of csv=p=0 out.mkv");
    assert_eq!(String::from_utf8_lossy(&succeeded(counted).stdout).trim(), "64,48,12");
}

#[test]
fn the_second_command_of_the_manual_works() {
    let folder = Folder::new();
    folder.images(9);
    fs::write(folder.at("look.cube"), "LUT_1D_SIZE 2\n0 0 0\n1 0.9 0.8\n").expect("written");
    let done = folder.shell("plimsoll frames --op fit=64x64,lut=look.cube frames/*.png --out out/");
    let said = stderr(&succeeded(done));
    assert!(said.contains("→ fit=64x64,lut=look.cube →") && !said.contains("added"), "{said}");
    let mut names: Vec<String> = fs::read_dir(folder.at("out"))
        .expect("made")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, (1..=9).map(|number| format!("{number:03}.png")).collect::<Vec<_>>());
    let picture = image::open(folder.at("out/005.png")).expect("an image").to_rgb8();
    assert_eq!(picture.dimensions(), (64, 64));
    assert_eq!(picture.get_pixel(0, 0).0, [0; 3], "a bar");
    // A shade of the look: white has 229 of green and 204 of blue.
    assert!(picture.pixels().all(|pixel| pixel.0[1] <= 230 && pixel.0[2] <= 204));
}

/// HDR video is told from ordinary video by whoever has it: Y4M says neither its transfer nor its matrix.
#[test]
fn hdr_is_never_guessed() {
    let folder = Folder::new();
    let make =
        "ffmpeg -v error -f lavfi -i testsrc2=size=64x48:rate=25 -frames:v 2 -pix_fmt yuv420p10le -strict -1 -y in.y4m";
    succeeded(folder.shell(make));
    let (code, said) = refused(folder.frames("tonemap=bt2390").arg(folder.at("in.y4m")).arg(folder.at("out.y4m")));
    assert!(code == 2 && said.contains("from=pq"), "{code}: {said}");
    let (code, said) =
        refused(folder.frames("tonemap=bt2390:from=pq").arg(folder.at("in.y4m")).arg(folder.at("out.y4m")));
    assert!(code == 1 && said.contains("--matrix 2020"), "{code}: {said}");
    assert!(!folder.at("out.y4m").exists());
    let manual =
        "cat in.y4m | plimsoll frames --no-gpu --matrix 2020 --op tonemap=bt2390:from=pq,depth=8:dither - sdr.y4m";
    let said = stderr(&succeeded(folder.shell(manual)));
    assert!(!said.contains("matrix (") && frames_in(&folder.at("sdr.y4m")).len() == 2, "{said}");
    // What a picture needs is a guess that is told; what it does not need is not.
    let guess =
        |op: &str| stderr(&succeeded(folder.shell(&format!("plimsoll frames --no-gpu --op {op} in.y4m --out {op}/"))));
    assert!(guess("rgb").contains("matrix (601, from the size; --matrix says otherwise)"));
    assert!(
        !stderr(&succeeded(folder.shell("plimsoll frames --no-gpu --op blur=1 in.y4m - >/dev/null"))).contains("guess")
    );
}

/// ffmpeg calls 4:2:0 in the middle what it knows nothing about; under a name that means the left, chroma is moved there.
#[test]
fn chroma_lies_where_the_header_says() {
    let folder = Folder::new();
    folder.video("in.y4m", "64x48", 1);
    assert!(fs::read(folder.at("in.y4m")).expect("there").starts_with(b"YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg"));
    for (op, name, added) in
        [("depth=10", "C420p10", "yuv=left"), ("yuv=422", "C422", "yuv=left"), ("depth=8", "C420jpeg", "")]
    {
        let out = folder.at(&format!("{op}.y4m"));
        let done = folder.frames(op).arg("--no-gpu").arg(folder.at("in.y4m")).arg(&out).output().expect("started");
        let said = stderr(&succeeded(done));
        assert!(said.contains(&format!("({added} added")) != added.is_empty(), "{op}: {said}");
        let (header, frames) = (fs::read(&out).expect("there"), frames_in(&out));
        assert!(String::from_utf8_lossy(&header[..80]).contains(name), "{op}");
        let right = by_the_library(
            &folder.at("in.y4m"),
            &format!("{op},yuv={}", if added.is_empty() { "centre" } else { "left" }),
        );
        assert_eq!(worst_difference(&frames, &right), 0, "{op}");
    }
}

#[test]
fn pixels_keep_their_shape_and_fields_stay_apart() {
    let folder = Folder::new();
    let header = "YUV4MPEG2 W4 H6 F25:1 IKIND A2:1 C444 XCOLORRANGE=LIMITED\nFRAME\n";
    let stream = |kind: &str| [header.replace("KIND", kind).into_bytes(), vec![90; 72]].concat();
    fs::write(folder.at("in.y4m"), stream("p")).expect("written");
    fs::write(folder.at("fields.y4m"), stream("t")).expect("written");
    for (op, aspect) in [("rotate=90", " A1:2 "), ("scale=8x6", " A1:1 "), ("flip=h", " A2:1 ")] {
        let done = folder.shell(&format!("plimsoll frames --no-gpu --op {op} in.y4m -"));
        let line = String::from_utf8_lossy(&succeeded(done).stdout[..50]).into_owned();
        assert!(line.contains(aspect), "{op}: {line}");
    }
    let (code, said) = refused(folder.frames("blur=1").arg(folder.at("fields.y4m")).arg(folder.at("out.y4m")));
    assert!(code == 1 && said.contains("interlaced") && said.contains("assume=progressive"), "{code}: {said}");
    succeeded(folder.shell("plimsoll frames --no-gpu --op flip=h fields.y4m - >/dev/null"));
}

#[test]
fn the_third_command_of_the_manual_works() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "96x64", 40);
    let done = folder.shell(
        "plimsoll frames --op scale=50% in.y4m out.y4m --devices gpu:0,gpu:1,cpu --strategy earliest-finish --stats \
         --logical-gpus 2",
    );
    let table = String::from_utf8(succeeded(done).stdout).expect("text");
    for word in ["DEVICE", "RETRIED", "P99", "BUSY", "cpu", "gpu0", "gpu1", "40 frames in", "is the least"] {
        assert!(table.contains(word), "no {word}: {table}");
    }
    let right = by_the_library(&video, "scale=50%");
    assert!(worst_difference(&frames_in(&folder.at("out.y4m")), &right) <= 1);
    assert!(!folder.at("out.y4m.part").exists());
}

#[test]
fn frames_that_look_at_others_are_the_same_on_several_devices() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "64x48", 60);
    let done = folder.shell("plimsoll frames --op denoise=temporal:2 in.y4m out.y4m --logical-gpus 2");
    succeeded(done);
    let right = by_the_library(&video, "denoise=temporal:2");
    assert!(worst_difference(&frames_in(&folder.at("out.y4m")), &right) <= 1);
}

#[test]
fn a_truncated_stream_gives_its_whole_frames_and_exit_1() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "64x48", 10);
    let bytes = fs::read(&video).expect("read");
    fs::write(folder.at("cut.y4m"), &bytes[..bytes.len() - 100]).expect("written");
    let piped = folder.shell("plimsoll frames --op crop=32x24 --no-gpu - - <cut.y4m");
    assert_eq!(piped.status.code(), Some(1));
    assert!(stderr(&piped).contains("in the middle of frame 10") && stderr(&piped).contains("9 frames"));
    let right = by_the_library(&video, "crop=32x24");
    assert!(y4m_frames(&piped.stdout[..]) == right[..9]);

    let (code, said) = refused(folder.frames("crop=32x24").arg(folder.at("cut.y4m")).arg(folder.at("out.y4m")));
    assert!(code == 1 && said.contains("out.y4m.part"), "{code}: {said}");
    assert!(!folder.at("out.y4m").exists(), "a file that is not whole has no name");
    assert!(frames_in(&folder.at("out.y4m.part")) == right[..9]);
}

#[test]
fn what_is_no_stream_is_told() {
    let folder = Folder::new();
    for (name, bytes, told) in [
        ("empty.y4m", &b""[..], "empty"),
        ("other.y4m", b"RIFF....", "YUV4MPEG2"),
        ("no-width.y4m", b"YUV4MPEG2 H2 F25:1\nFRAME\n", "width"),
        ("wide.y4m", b"YUV4MPEG2 Wwide H2 F25:1\nFRAME\n", "Wwide"),
    ] {
        fs::write(folder.at(name), bytes).expect("written");
        let (code, said) = refused(folder.frames("crop=1x1").arg(folder.at(name)).arg(folder.at("out.y4m")));
        assert!(code == 1 && said.contains(told), "{name}: {code}: {said}");
        assert!(!folder.at("out.y4m").exists() && !folder.at("out.y4m.part").exists());
    }
}

/// Feeds a child frames for ever, as long as it reads.
fn feed(child: &mut Child, header: &'static str, frame_bytes: usize) -> thread::JoinHandle<()> {
    let mut stdin = child.stdin.take().expect("piped");
    thread::spawn(move || {
        let frame = [b"FRAME\n".to_vec(), vec![128; frame_bytes]].concat();
        let mut fed = stdin.write_all(header.as_bytes());
        while fed.is_ok() {
            fed = stdin.write_all(&frame);
        }
    })
}

fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
}

fn ended_soon(mut child: Child) -> (Option<i32>, String) {
    let started = Instant::now();
    while child.try_wait().expect("ours").is_none() {
        assert!(started.elapsed() < PATIENCE, "it does not end");
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("ended");
    (output.status.code(), stderr(&output))
}

#[test]
fn who_reads_no_more_ends_it_though_the_input_goes_on_and_is_told_of() {
    let folder = Folder::new();
    let mut child = piped(folder.frames("crop=8x8").args(["--no-gpu", "--stats", "-", "-"]));
    let feeder = feed(&mut child, "YUV4MPEG2 W16 H16 F25:1 C444\n", 768);
    let mut some = [0; 1000];
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut some).expect("frames come out");
    drop(stdout);
    let (code, said) = ended_soon(child);
    assert_eq!(code, Some(141), "as for any program whose reader leaves: {said}");
    assert!(said.contains("whoever read the output left") && said.contains("delivered"), "{said}");
    assert!(said.contains("DEVICE") && said.contains("frames in"), "{said}");
    feeder.join().expect("it was told by the closed pipe");
}

#[test]
fn a_full_disk_is_told() {
    let folder = Folder::new();
    folder.video("in.y4m", "64x48", 5);
    let output = folder.shell("plimsoll frames --op crop=32x24 --no-gpu in.y4m - >/dev/full");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("No space left") && said.contains("make room"), "{said}");
}

#[test]
fn ctrl_c_ends_it_with_130_though_the_input_is_silent() {
    let folder = Folder::new();
    let mut child = piped(folder.frames("crop=8x8").args(["--no-gpu", "-", "-"]));
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"YUV4MPEG2 W16 H16 F25:1 C444\nFRAME\n").and_then(|()| stdin.write_all(&[7; 768])).expect("fed");
    let mut frame = vec![0; "YUV4MPEG2 W8 H8 F25:1".len() + 3 * 64];
    child.stdout.as_mut().expect("piped").read_exact(&mut frame).expect("the frame comes out");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("sent");
    let (code, said) = ended_soon(child);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("stopped:"), "{said}");
    drop(stdin);
}

/// As `kill` and a terminal that goes away do.
#[test]
fn other_signals_end_it_in_order_with_codes_of_their_own() {
    use rustix::process::Signal;
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let folder = Folder::new();
        let mut child = piped(folder.frames("crop=8x8").args(["--no-gpu", "-"]).arg(folder.at("out.y4m")));
        let mut stdin = child.stdin.take().expect("piped");
        let frame = [&b"FRAME\n"[..], &[7; 768]].concat();
        stdin.write_all(b"YUV4MPEG2 W16 H16 F25:1 C444\n").and_then(|()| stdin.write_all(&frame)).expect("fed");
        let started = Instant::now();
        while fs::metadata(folder.at("out.y4m.part")).map_or(0, |part| part.len()) < 3 * 64 {
            assert!(started.elapsed() < PATIENCE, "the frame does not come out");
            thread::sleep(Duration::from_millis(5));
        }
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).expect("sent");
        let (ended, said) = ended_soon(child);
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains("stopped:") && said.contains("1 frame is in"), "{said}");
        drop(stdin);
    }
}

#[test]
fn a_program_that_nobody_may_hang_up_goes_on() {
    let folder = Folder::new();
    folder.video("in.y4m", "64x48", 3);
    let hung_up = folder.shell(
        "trap '' HUP; plimsoll frames --op crop=8x8 --no-gpu - out.y4m < <(cat in.y4m; sleep 1) & sleep 0.3; kill -HUP $!; wait $!",
    );
    assert_eq!(hung_up.status.code(), Some(0), "{}", stderr(&hung_up));
}

/// A full disk or a closed terminal takes nobody's frames.
#[test]
fn a_stderr_that_takes_nothing_ends_no_run() {
    let folder = Folder::new();
    folder.video("in.y4m", "64x48", 5);
    for redirected in ["2>/dev/full", "2>&-"] {
        let line = format!("plimsoll frames --op crop=8x8 --no-gpu --stats in.y4m - {redirected}");
        let output = folder.shell(&line);
        assert_eq!(output.status.code(), Some(0), "{redirected}");
        assert_eq!(y4m_frames(&output.stdout[..]).len(), 5, "{redirected}");
    }
}

#[test]
fn a_closed_stdout_is_an_error() {
    let folder = Folder::new();
    folder.video("in.y4m", "64x48", 2);
    let output = folder.shell("plimsoll frames --op crop=8x8 --no-gpu in.y4m - >&-");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("stdout, and that is closed"), "{}", stderr(&output));
    succeeded(folder.shell("plimsoll frames --op crop=8x8 --no-gpu in.y4m - >/dev/null"));
}

/// Memory that the system has not got costs frames, never the program.
#[test]
fn a_small_address_space_is_an_error_and_no_abort() {
    let folder = Folder::new();
    folder.video("in.y4m", "1280x720", 4);
    for kilobytes in [400_000, 160_000, 120_000, 100_000, 80_000, 60_000] {
        let output = folder.shell(&format!(
            "ulimit -v {kilobytes}; plimsoll frames --no-gpu --op scale=3840x2160,blur=2 in.y4m - >/dev/null"
        ));
        let (code, said) = (output.status.code(), stderr(&output));
        // 127: not even the program itself found memory.
        assert!(matches!(code, Some(0 | 1 | 127)), "{kilobytes} kB: {code:?}: {said}");
        assert!(code == Some(0) || !said.trim().is_empty(), "{kilobytes} kB: {code:?} without a word");
    }
}

#[test]
fn a_limit_without_a_unit_is_refused_at_once() {
    let folder = Folder::new();
    let (code, said) = refused(folder.frames("crop=8x8").args(["--memory-limit", "64", "no.y4m", "out.y4m"]));
    assert!(code == 2 && said.contains("64 of what? write 64MiB"), "{code}: {said}");
}

#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    let folder = Folder::new();
    let name = folder.at("a\u{1b}[2J\u{7}b.y4m");
    let (_, said) = refused(folder.frames("crop=8x8").arg(&name).arg(folder.at("out.y4m")));
    assert!(said.contains("a\\u{1b}[2J\\u{7}b.y4m") && !said.contains('\u{1b}') && !said.contains('\u{7}'), "{said:?}");
}

#[test]
fn errors_name_devices_as_people_type_them() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "1920x1080", 2);
    let words = ["--logical-gpus", "2", "--devices", "gpu:1", "--memory-limit", "gpu:1=1MiB"];
    let (code, said) = refused(folder.frames("blur=2").args(words).arg(&video).arg(folder.at("out.y4m")));
    assert!(code == 1 && said.contains("gpu on gpu:1: ") && !said.contains("on device"), "{code}: {said}");
}

#[test]
fn frames_of_an_earlier_run_are_not_lost_unasked() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "64x48", 2);
    fs::write(folder.at("out.y4m.part"), b"mine").expect("written");
    let (code, said) = refused(folder.frames("crop=8x8").arg("--no-gpu").arg(&video).arg(folder.at("out.y4m")));
    assert!(code == 1 && said.contains("out.y4m.part") && said.contains("--overwrite"), "{code}: {said}");
    assert_eq!(fs::read(folder.at("out.y4m.part")).expect("there"), b"mine");
    succeeded(folder.shell("plimsoll frames --op crop=8x8 --no-gpu in.y4m out.y4m --overwrite"));
    assert!(frames_in(&folder.at("out.y4m")).len() == 2 && !folder.at("out.y4m.part").exists());
}

#[test]
fn a_link_as_output_is_followed() {
    let folder = Folder::new();
    folder.video("in.y4m", "64x48", 2);
    fs::create_dir(folder.at("disk")).expect("made");
    std::os::unix::fs::symlink("disk/real.y4m", folder.at("link.y4m")).expect("made");
    succeeded(folder.shell("plimsoll frames --op crop=8x8 --no-gpu in.y4m link.y4m"));
    assert!(folder.at("link.y4m").is_symlink(), "it is still one");
    assert_eq!(frames_in(&folder.at("disk/real.y4m")).len(), 2);
}

#[test]
fn a_raw_file_holds_what_its_name_says() {
    let folder = Folder::new();
    folder.video("in.y4m", "64x48", 2);
    for (name, bytes) in
        [("out.rgb", 3 * 64 * 48), ("out.yuv", 64 * 48 * 3 / 2), ("out.gray", 64 * 48), ("out.rgba", 4 * 64 * 48)]
    {
        let done = folder.shell(&format!("plimsoll frames --op flip=h --no-gpu in.y4m {name}"));
        let said = stderr(&succeeded(done));
        assert_eq!(fs::metadata(folder.at(name)).expect("there").len(), 2 * bytes, "{name}: {said}");
    }
}

#[test]
fn raw_frames_lie_as_ffmpeg_has_them() {
    let folder = Folder::new();
    folder.video("in.y4m", "66x50", 3);
    for name in ["nv12", "nv21", "rgba", "bgra", "argb", "bgr24", "gbrp", "yuv444p10le"] {
        let line = format!(
            "ffmpeg -v error -i in.y4m -f rawvideo -pix_fmt {name} in.raw -y && plimsoll frames --op crop=66x50+0+0 \
             --no-gpu --raw 66x50:{name} - - <in.raw >out.raw && cmp in.raw out.raw"
        );
        let done = folder.shell(&line);
        let said = stderr(&done);
        assert_eq!(said.contains("alpha is passed over"), ["rgba", "bgra", "argb"].contains(&name), "{said}");
        succeeded(done);
    }
    succeeded(folder.shell(
        "ffmpeg -v error -i in.y4m -f rawvideo -pix_fmt nv12 right.raw && plimsoll frames --op crop=66x50+0+0 --no-gpu \
         --raw-out nv12 in.y4m - >ours.raw && cmp right.raw ours.raw",
    ));
}

#[test]
fn streams_are_known_by_what_they_hold() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "64x48", 4);
    fs::copy(&video, folder.at("nameless")).expect("copied");
    for (at, input) in ["/dev/stdin <in.y4m", "<(cat in.y4m)", "nameless"].into_iter().enumerate() {
        let (input, redirected) =
            input.split_once(" <").map_or((input, String::new()), |(name, from)| (name, format!("<{from}")));
        succeeded(folder.shell(&format!("plimsoll frames --op crop=8x8 --no-gpu {input} out{at}.y4m {redirected}")));
        assert_eq!(frames_in(&folder.at(&format!("out{at}.y4m"))).len(), 4, "{input}");
    }
    succeeded(folder.shell("mkfifo pipe; cat in.y4m >pipe & plimsoll frames --op crop=8x8 --no-gpu pipe fifo.y4m"));
    assert_eq!(frames_in(&folder.at("fifo.y4m")).len(), 4);
}

#[test]
fn names_have_numbers() {
    let folder = Folder::new();
    folder.images(5);
    succeeded(folder.shell(
        "plimsoll frames --op flip=h --no-gpu frames/%03d.png out/still%02d.jpg --quality 90; \
         plimsoll frames --op flip=h --no-gpu frames/%03d.png out/small%02d.jpg --quality 5",
    ));
    let bytes = |name: &str| fs::metadata(folder.at(name)).expect(name).len();
    assert!(bytes("out/still05.jpg") > bytes("out/small05.jpg") && !folder.at("out/still06.jpg").exists());
    succeeded(folder.shell("plimsoll frames --op flip=h --no-gpu frames/%03d.png film.y4m"));
    assert_eq!(frames_in(&folder.at("film.y4m")).len(), 5);
    let missing = folder.shell("plimsoll frames --op flip=h --no-gpu nothing%03d.png film2.y4m");
    assert!(missing.status.code() == Some(1) && stderr(&missing).contains("nothing000.png"), "{}", stderr(&missing));
}

#[test]
fn frames_are_chosen_as_ffmpeg_does() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "64x48", 40);
    let all = frames_in(&video);
    let chosen = |op: &str| {
        succeeded(folder.shell(&format!("plimsoll frames --op {op} --no-gpu in.y4m out.y4m --overwrite")));
        frames_in(&folder.at("out.y4m"))
    };
    assert!(chosen("trim=11:20") == all[10..20] && chosen("select=5:2").len() == 8);
    for rate in ["10", "30", "60", "24000/1001"] {
        let right = folder.shell(&format!("ffmpeg -v error -i in.y4m -vf fps={rate} -f yuv4mpegpipe -"));
        let right: Vec<Vec<u8>> = y4m_frames(&succeeded(right).stdout[..]).into_iter().map(Frame::into_bytes).collect();
        let ours: Vec<Vec<u8>> = chosen(&format!("fps={rate}")).into_iter().map(Frame::into_bytes).collect();
        assert_eq!(ours.len(), right.len(), "{rate}");
        assert!(ours == right, "other frames at {rate} a second");
    }
    let (code, said) =
        refused(folder.frames("denoise=temporal,trim=1:2").arg("--no-gpu").arg(&video).arg(folder.at("no.y4m")));
    assert!(code == 2 && said.contains("before denoise=temporal"), "{code}: {said}");
}

#[test]
fn what_becomes_of_transparency_is_said() {
    let folder = Folder::new();
    let picture = image::RgbaImage::from_pixel(8, 8, image::Rgba([10, 20, 30, 128]));
    picture.save(folder.at("glass.png")).expect("written");
    let said = stderr(&succeeded(folder.shell("plimsoll frames --op flip=h --no-gpu glass.png out.png")));
    assert!(said.contains("laid on white"), "{said}");
    folder.images(1);
    let said = stderr(&succeeded(folder.shell("plimsoll frames --op flip=h --no-gpu frames/001.png opaque.png")));
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn what_cannot_be_meant_is_refused_with_help() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "64x48", 2);
    let cases: [(&str, &[&str], &str); 9] = [
        ("sharpen=9000", &[], "--list-ops"),
        ("crop=wide", &[], "crop=WxH"),
        ("crop=8x8", &["--devices", "tpu"], "gpu:0"),
        ("crop=8x8", &["--devices", "gpu:77"], "plimsoll devices"),
        ("crop=8x8", &["--strategy", "fastest"], "earliest-finish"),
        ("crop=8x8", &["--weights", "cpu=0"], "gpu0=2"),
        ("crop=8x8", &["--weights", "cpu=1", "--strategy", "round-robin"], "--strategy weighted"),
        ("crop=8x8", &["--raw", "64"], "1920x1080"),
        ("crop=8x8", &["third.y4m"], "--out"),
    ];
    for (op, words, helps) in cases {
        let (code, said) = refused(folder.frames(op).arg(&video).arg(folder.at("out.y4m")).args(words));
        assert!(code == 2 && said.contains(helps), "{op} {words:?}: {code}: {said}");
    }
    let (code, said) = refused(folder.frames("crop=8x8").arg(&video));
    assert!(code == 2 && said.contains("name an output"), "{code}: {said}");
    let (code, said) = refused(folder.frames("crop=8x8").arg("film.mkv").arg(folder.at("out.y4m")));
    assert!(code == 2 && said.contains("ffmpeg -i film.mkv -f yuv4mpegpipe"), "{code}: {said}");
    let (code, said) = refused(folder.frames("crop=8x8").arg(folder.at("")).arg("--out").arg(folder.at("out/")));
    assert!(code == 2 && said.contains("*.png"), "{code}: {said}");
    let (code, said) = refused(folder.frames("crop=800x800").arg(&video).arg(folder.at("out.y4m")));
    assert!(code == 1 && said.contains("crop=800x800"), "{code}: {said}");
    assert!(!folder.at("out.y4m").exists());
}

#[test]
fn raw_frames_go_in_and_out() {
    let folder = Folder::new();
    let frames: Vec<u8> = (0..3 * 4 * 2 * 3).collect();
    fs::write(folder.at("in.rgb"), &frames).expect("written");
    let piped = folder.shell("plimsoll frames --op crop=2x2+2+0 --raw 4x2 --no-gpu - - <in.rgb");
    let right: Vec<u8> = frames.chunks(12).flat_map(|row| row[6..].to_vec()).collect();
    assert_eq!(succeeded(piped).stdout, right);
}

#[test]
fn images_become_a_video_and_a_video_images() {
    let folder = Folder::new();
    folder.images(6);
    let done = folder.shell("plimsoll frames --op crop=40x30 --no-gpu frames/*.png --out film.y4m --rate 30000/1001");
    let said = stderr(&succeeded(done));
    assert!(said.contains("yuv=601:limited:420 added for the output"), "{said}");
    let reader = Y4mReader::open(File::open(folder.at("film.y4m")).expect("there")).expect("a stream");
    assert_eq!(reader.header().rate.map(|rate| rate.to_string()).as_deref(), Some("30000:1001"));
    assert_eq!(reader.count(), 6);
    succeeded(folder.shell("plimsoll frames --op crop=20x20 --no-gpu --frames 4 film.y4m --out stills"));
    assert!(folder.at("stills/000004.png").exists() && !folder.at("stills/000005.png").exists());
    let again = folder.shell("plimsoll frames --op crop=20x20 --no-gpu --frames 4 film.y4m --out stills");
    assert!(again.status.code() == Some(1) && stderr(&again).contains("--overwrite"), "{}", stderr(&again));
    succeeded(folder.shell("plimsoll frames --op crop=20x20 --no-gpu --frames 4 film.y4m --out stills --overwrite"));
}

#[test]
fn an_image_of_another_size_ends_a_video_after_those_before() {
    let folder = Folder::new();
    let images = folder.images(3);
    fs::create_dir(folder.at("small")).expect("made");
    succeeded(folder.shell("plimsoll frames --op crop=20x20 --no-gpu frames/003.png small/003.png"));
    fs::copy(folder.at("small/003.png"), &images[2]).expect("copied");
    let (code, said) =
        refused(folder.frames("flip=h").arg("--no-gpu").args(&images).arg("--out").arg(folder.at("film.y4m")));
    assert!(code == 1 && said.contains("frame 3 is 20x20") && said.contains("scale=48x32"), "{code}: {said}");
    assert!(said.contains("2 frames are in") && !folder.at("film.y4m").exists(), "{said}");
    assert_eq!(frames_in(&folder.at("film.y4m.part")).len(), 2);
}

#[test]
fn a_later_image_of_a_stream_of_unknown_length_is_not_replaced_unasked() {
    let folder = Folder::new();
    folder.video("in.y4m", "32x32", 3);
    fs::create_dir(folder.at("stills")).expect("made");
    fs::write(folder.at("stills/000002.png"), b"mine").expect("written");
    let piped = folder.shell("cat in.y4m | plimsoll frames --op flip=h --no-gpu - --out stills");
    assert!(piped.status.code() == Some(1) && stderr(&piped).contains("--overwrite"), "{}", stderr(&piped));
    assert_eq!(fs::read(folder.at("stills/000002.png")).expect("there"), b"mine");
    assert!(folder.at("stills/000001.png").exists());
}

#[test]
fn a_matrix_that_players_would_not_guess_is_told() {
    let folder = Folder::new();
    folder.video("in.y4m", "1280x64", 1);
    let said = |chain: &str| {
        stderr(&succeeded(folder.shell(&format!("plimsoll frames --op {chain} --no-gpu in.y4m - >/dev/null"))))
    };
    assert!(said("scale=50%").contains("-colorspace bt709"));
    assert!(!said("scale=50%,yuv=601").contains("warning"));
    assert!(!said("flip=h").contains("warning"));
}

#[test]
fn an_image_that_cannot_be_read_ends_it_after_those_before() {
    let folder = Folder::new();
    let images = folder.images(5);
    fs::write(&images[3], b"no image").expect("written");
    let (code, said) =
        refused(folder.frames("crop=20x20").arg("--no-gpu").args(&images).arg("--out").arg(folder.at("out/")));
    assert!(code == 1 && said.contains("004.png") && said.contains("3 frames"), "{code}: {said}");
    assert!(folder.at("out/003.png").exists() && !folder.at("out/005.png").exists());
}

#[test]
fn figures_add_up() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "64x48", 60);
    let words = ["--logical-gpus", "2", "--strategy", "round-robin", "--stats=json"];
    let output = folder.frames("crop=32x24").arg(&video).arg("-").args(words).output().expect("started");
    let output = succeeded(output);
    assert_eq!(y4m_frames(&output.stdout[..]).len(), 60);
    let figures: Value = serde_json::from_slice(&output.stderr).expect("nothing but JSON beside the frames");
    let devices = figures["devices"].as_array().expect("devices");
    let sum = |field: &str| devices.iter().map(|device| device[field].as_u64().expect("a count")).sum::<u64>();
    assert_eq!((sum("dispatched"), sum("completed"), sum("failed"), sum("retried")), (60, 60, 0, 0));
    assert_eq!((sum("bytes_in"), sum("bytes_out")), (60 * 64 * 48 * 3 / 2, 60 * 32 * 24 * 3 / 2));
    assert_eq!((figures["frames"].as_u64(), devices.len()), (Some(60), 3));
    let figure = |name: &str| figures[name].as_f64().expect(name);
    assert!(figure("lower_bound_seconds") > 0.0 && figure("regret_seconds") >= 0.0, "{figures}");
    let share = figure("regret_seconds") / figure("lower_bound_seconds");
    assert!((figure("regret_share") - share).abs() < 1e-3 * share.max(1.0), "{figures}");
    for device in devices {
        assert_eq!(device["completed"], 20, "{figures}");
        let busy = device["busy_share"].as_f64().expect("a share");
        assert!(busy > 0.0 && busy <= 1.0, "{figures}");
        assert!(device["p50_ms"].as_f64() <= device["p99_ms"].as_f64(), "{figures}");
    }
}

#[test]
fn weights_are_kept() {
    let folder = Folder::new();
    let video = folder.video("in.y4m", "64x48", 100);
    let words = ["--logical-gpus", "2", "--weights", "gpu0=2,gpu:1=1,cpu=1", "--json"];
    let output = folder.frames("crop=32x24").arg(&video).arg(folder.at("out.y4m")).args(words).output();
    let figures: Value = serde_json::from_slice(&succeeded(output.expect("started")).stdout).expect("JSON");
    let done: Vec<u64> = figures["devices"]
        .as_array()
        .expect("devices")
        .iter()
        .filter_map(|device| device["completed"].as_u64())
        .collect();
    assert_eq!(done.len(), 3);
    for (done, promised) in done.iter().zip([25_u64, 50, 25]) {
        assert!(done.abs_diff(promised) <= promised / 20 + 1, "{figures}");
    }
}

/// Reading and writing files are tasks of the CPU too, and cost it no turn.
#[test]
fn images_are_worked_on_in_turn() {
    let folder = Folder::new();
    let images = folder.images(30);
    let words = ["--logical-gpus", "2", "--strategy", "round-robin", "--json", "--out"];
    let output = folder.frames("scale=50%").args(&images).args(words).arg(folder.at("out/")).output();
    let figures: Value = serde_json::from_slice(&succeeded(output.expect("started")).stdout).expect("JSON");
    for device in figures["devices"].as_array().expect("devices") {
        let done = device["completed"].as_u64().expect("a count");
        assert!((9..=11).contains(&done), "{figures}");
    }
    assert_eq!(figures["strategy"], "round-robin");
}

#[test]
fn operations_are_listed() {
    let folder = Folder::new();
    let listed = succeeded(folder.shell("plimsoll frames --list-ops --json"));
    let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).expect("JSON");
    let names: Vec<&str> = listed.iter().filter_map(|op| op["name"].as_str()).collect();
    assert!(names.contains(&"crop"), "{names:?}");
    let text = String::from_utf8(succeeded(folder.shell("plimsoll frames --list-ops")).stdout).expect("text");
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
}
