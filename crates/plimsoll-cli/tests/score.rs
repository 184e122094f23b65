//! `plimsoll score` as people and programs use it: real files in, real rows out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Settings of the developer's own that would change what is seen here.
const OWN_SETTINGS: [&str; 5] =
    ["PLIMSOLL_ALONE", "PLIMSOLL_MEMORY_LIMIT", "PLIMSOLL_NO_GPU", "PLIMSOLL_SOFTWARE_GPU", "CLICOLOR_FORCE"];

/// A folder with made images, and a profile of its own.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A picture; a larger `noise` is further from the same picture without.
    fn picture(&self, name: &str, (width, height): (u32, u32), noise: u32) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().expect("inside the folder")).expect("made");
        let mut rng = 0x9e37_79b9_u32;
        let picture = image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([x * 3, y * 2, x ^ y].map(|base| {
                rng ^= rng << 13;
                rng ^= rng >> 17;
                rng ^= rng << 5;
                ((base % 200) + (rng >> 8) % (noise + 1)) as u8
            }))
        });
        picture.save(&path).expect("written");
        path
    }

    /// A reference and some variants of it.
    fn variants(&self, count: u32, size: (u32, u32)) -> (PathBuf, Vec<PathBuf>) {
        let reference = self.picture("reference.png", size, 0);
        let variant = |number| self.picture(&format!("v/{number:03}.png"), size, number % 50 + 1);
        (reference, (0..count).map(variant).collect())
    }

    fn score(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        OWN_SETTINGS.iter().for_each(|name| {
            command.env_remove(name);
        });
        command
            .env("PLIMSOLL_PROFILE", self.at("profile.toml"))
            .env("PLIMSOLL_BOOK", self.at("book"))
            .arg("score")
            .args(words);
        command
    }
}

fn printed(command: &mut Command) -> String {
    let output = command.output().expect("started");
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn rows(command: &mut Command) -> Vec<Value> {
    let text = printed(command);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn samples() -> (PathBuf, Vec<PathBuf>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let listed = fs::read_dir(folder.join("variants")).expect("the sample images");
    let mut variants: Vec<PathBuf> = listed.map(|entry| entry.expect("readable").path()).collect();
    variants.sort();
    (folder.join("harbour.png"), variants)
}

#[test]
fn the_samples_make_a_table_in_one_step() {
    let folder = Folder::new();
    let (reference, variants) = samples();
    assert!(variants.len() >= 12);
    let table = printed(folder.score(&["--no-gpu"]).arg(reference).args(&variants));
    assert!(table.contains("FILE") && table.contains("SSIM2"), "{table}");
    for variant in &variants {
        assert!(table.contains(&variant.display().to_string()), "{table}");
    }
    let hits = format!("{} cached hits, 1 miss", variants.len() - 1);
    assert!(table.contains(&hits) && table.contains("per second"), "{table}");
}

#[test]
fn a_reference_is_prepared_once_for_a_hundred_variants() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(100, (96, 64));
    let table = printed(folder.score(&["--no-gpu", "-m", "dssim"]).arg(reference).args(&variants));
    assert!(table.contains("99 cached hits, 1 miss"), "{table}");
    assert!(table.contains("100 on cpu (cpu)"), "{table}");
}

#[test]
fn with_memory_enough_nothing_steps_down_and_each_device_prepares_once() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(60, (96, 64));
    let table = printed(folder.score(&["--software-gpu", "-m", "psnr"]).arg(reference).args(&variants));
    assert!(table.contains("0 tasks on a lower rung"), "{table}");
    let prepared_by_each = table.contains("59 cached hits, 1 miss") || table.contains("58 cached hits, 2 misses");
    assert!(prepared_by_each, "{table}");
}

#[test]
fn every_metric_scores_a_pair_and_better_images_score_better() {
    let folder = Folder::new();
    let reference = folder.picture("reference.png", (80, 60), 0);
    let (near, far) = (folder.picture("near.png", (80, 60), 3), folder.picture("far.png", (80, 60), 50));
    let listed = rows(&mut folder.score(&["--list-metrics", "--json"]));
    assert_eq!(listed.len(), 9);
    let scored = rows(folder.score(&["--no-gpu", "-m", "all", "--json"]).args([reference, near, far]));
    for metric in &listed {
        let column = metric["name"].as_str().expect("text").replace('-', "_");
        let [near, far] = [0, 1].map(|at: usize| scored[at][&column].as_f64().expect("a score"));
        let better_is_higher = metric["better"] == "higher";
        assert_eq!(near > far, better_is_higher, "{column}: {near} near, {far} far");
    }
}

/// Under a line of 64 MiB images up to 2048 x 2048 are all scored, in strips where they have to be, with the same result;
/// larger ones, whose pixels alone are more, are refused with what they need.
#[test]
fn a_small_memory_limit_changes_how_but_not_what() {
    let folder = Folder::new();
    for side in [256, 1024, 2048] {
        folder.picture(&format!("ref/{side}.png"), (side, side), 0);
        folder.picture(&format!("dist/{side}.png"), (side, side), 9);
    }
    let words = ["--no-gpu", "-m", "ssim", "--json", "--verbose"];
    let [references, distorted] = ["ref", "dist"].map(|name| folder.at(name));
    let free = rows(folder.score(&words).args([&references, &distorted]));
    let mut command = folder.score(&words);
    let output = command.args(["--memory-limit", "64MiB", "--explain"]).args([&references, &distorted]).output();
    let output = output.expect("started");
    assert!(output.status.success(), "{}", stderr(&output));
    let limited: Vec<Value> = serde_json::from_slice(&output.stdout).expect("rows");
    assert_eq!((free.len(), limited.len()), (3, 3));
    for (free, limited) in free.iter().zip(&limited) {
        let [a, b] = [free, limited].map(|row| row["ssim"].as_f64().expect("a score"));
        assert!((a - b).abs() < 1e-4, "{a} without a limit, {b} with: {limited}");
        assert!(limited["ssim_bytes_promised"].as_u64().expect("bytes") <= 64 << 20, "{limited}");
    }
    let rung_of = |file: &str| {
        let is_file = |row: &&Value| row["distorted"].as_str().is_some_and(|path| path.ends_with(file));
        limited.iter().find(is_file).expect("scored")["ssim_rung"].clone()
    };
    assert_eq!((rung_of("/256.png"), rung_of("/2048.png")), ("cpu".into(), "cpu-strip".into()));
    let explained = stderr(&output);
    assert!(explained.contains("chosen  cpu-strip on cpu") && explained.contains("refused cpu on cpu"), "{explained}");
    assert!(explained.contains("1 task on a lower rung"), "{explained}");
    let large = ["large-a.png", "large-b.png"].map(|name| folder.picture(name, (4096, 4096), 9));
    let output = folder.score(&words).args(["--memory-limit", "64MiB"]).args(&large).output().expect("started");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("rows");
    let told = rows[0]["error"].as_str().expect("refused");
    assert!(told.contains("64.0 MiB") && told.contains("raise the memory limit to"), "{told}");
}

/// The most memory that a program held. Asked of it while it runs: what the kernel tells of a process that has ended counts
/// the moment before it became that program too, when it was this test with all its pictures.
#[cfg(target_os = "linux")]
fn peak_of(command: &mut Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        // It has no such line when its memory is gone.
        if let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
            peak = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10;
        }
        if let Some(ended) = child.try_wait().expect("our child") {
            break ended;
        }
        thread::sleep(Duration::from_millis(1));
    };
    assert!(ended.success() && peak > 0, "it ends well: {ended}");
    peak
}

/// A limit is for all that a run holds: with decoded pixels and files it stays within a quarter above it, and what the program
/// itself takes. Without a limit the same run takes far more than the smallest of these.
#[cfg(target_os = "linux")]
#[test]
fn peak_memory_stays_near_the_limit() {
    const BASE: u64 = 32 << 20;
    let folder = Folder::new();
    let (reference, variants) = folder.variants(4, (2048, 1536));
    let run = |limit: Option<u64>| {
        let mut command = folder.score(&["--no-gpu", "-m", "ssim2,ssim,psnr"]);
        command.args(limit.map(|mib| format!("--memory-limit={mib}MiB")));
        peak_of(command.arg(&reference).args(&variants))
    };
    for mib in [64, 128, 256] {
        let (limit, peak) = (mib << 20, run(Some(mib)));
        assert!(peak <= limit + limit / 4 + BASE, "{} MiB with a limit of {mib} MiB", peak >> 20);
    }
    assert!(run(None) > (64 << 20) * 5 / 4 + BASE, "else a limit of 64 MiB shows nothing");
}

#[test]
fn a_gpu_scores_as_the_cpu_does() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(3, (120, 90));
    let words = ["-m", "ssim2,psnr", "--json", "--verbose"];
    let on = |more: &[&str]| rows(folder.score(&words).args(more).arg(&reference).args(&variants));
    let cpu = on(&["--device", "cpu"]);
    for rung in ["gpu-full", "gpu-strip"] {
        let gpu = on(&["--software-gpu", "--device", "gpu:0", "--rung", rung]);
        for (cpu, gpu) in cpu.iter().zip(&gpu) {
            assert_eq!((&gpu["ssim2_rung"], &gpu["ssim2_device"]), (&rung.into(), &"gpu0".into()));
            let [a, b] = [cpu, gpu].map(|row| row["ssim2"].as_f64().expect("a score"));
            assert!((a - b).abs() < 0.01, "{a} on the CPU, {b} on {rung}");
        }
    }
}

#[test]
fn what_is_no_image_fails_alone() {
    let folder = Folder::new();
    let reference = folder.picture("reference.png", (32, 32), 0);
    let good = folder.picture("good.png", (32, 32), 5);
    let other_size = folder.picture("other-size.png", (31, 32), 5);
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.at(name), bytes).expect("written");
        folder.at(name)
    };
    let whole = fs::read(&good).expect("there");
    let mut huge = whole.clone();
    huge[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let wrong = [
        write("empty.png", b""),
        write("text.png", b"this is no image"),
        write("cut.png", &whole[..whole.len() / 2]),
        write("huge.png", &huge),
        folder.at("missing.png"),
        other_size,
    ];
    let output =
        folder.score(&["--no-gpu", "--json"]).arg(&reference).arg(&good).args(&wrong).output().expect("started");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("rows");
    assert_eq!(rows.len(), 7);
    assert!(rows[0]["ssim2"].is_f64() && rows[0]["error"].is_null(), "{}", rows[0]);
    for row in &rows[1..] {
        assert!(row["ssim2"].is_null() && row["error"].as_str().is_some_and(|text| text.len() > 10), "{row}");
    }
    assert!(stderr(&output).contains("6 of 7 images have no score"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_exits_with_two() {
    let folder = Folder::new();
    let reference = folder.picture("reference.png", (16, 16), 0);
    let reference = reference.to_str().expect("text");
    let wrong: [&[&str]; 9] = [
        &[],
        &[reference],
        &["--metric", "nonsense", reference, reference],
        &["--device", "tpu", reference, reference],
        &["--device", "gpu7", "--no-gpu", reference, reference],
        &["--rung", "ladder", reference, reference],
        &["--format", "parquet", reference, reference],
        &["--output", "scores.xls", reference, reference],
        &["--pairs", "/does/not/exist.csv"],
    ];
    for words in wrong {
        let output = folder.score(words).output().expect("started");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("error:"), "{words:?}");
    }
}

#[test]
fn folders_and_lists_pair_files() {
    let folder = Folder::new();
    for name in ["a", "b"] {
        folder.picture(&format!("ref/deep/{name}.png"), (24, 24), 0);
        folder.picture(&format!("dist/deep/{name}.bmp"), (24, 24), 4);
    }
    folder.picture("dist/alone.png", (24, 24), 4);
    let output =
        folder.score(&["--no-gpu", "--format", "csv"]).args(["ref", "dist"].map(|name| folder.at(name))).output();
    let output = output.expect("started");
    assert!(output.status.success() && stderr(&output).contains("alone.png has no reference"), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    let list = folder.at("pairs.csv");
    let line = |name: &str| format!("4,{0}/dist/deep/{name}.bmp,{0}/ref/deep/{name}.png\n", folder.0.path().display());
    fs::write(&list, format!("q,distorted,reference\n{}{}", line("a"), line("b"))).expect("written");
    let lines = printed(folder.score(&["--no-gpu", "--format", "jsonl", "--pairs"]).arg(&list));
    let names: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    assert!(names[0]["distorted"].as_str().expect("text").ends_with("a.bmp"), "in the order of the list: {names:?}");
}

/// Rows by file name, from a file that a run wrote.
fn by_name(path: &Path) -> BTreeMap<String, Vec<String>> {
    let mut reader = csv::Reader::from_path(path).expect("the output");
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in reader.records() {
        let record = record.expect("a row");
        rows.entry(record[1].to_owned()).or_default().push(record[7].to_owned());
    }
    rows
}

#[test]
fn a_killed_run_goes_on_without_losing_or_doubling_a_row() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(60, (200, 150));
    let whole = folder.at("whole.csv");
    let run = |output: &Path, more: &[&str]| {
        let mut command = folder.score(&["--no-gpu", "--jobs", "1", "--output"]);
        command.arg(output).args(more).arg(&reference).args(&variants);
        command.stdout(Stdio::null());
        command
    };
    assert!(run(&whole, &[]).status().expect("started").success());
    let output = folder.at("scores.csv");
    let mut journal_rows = 0;
    for _ in 0..3 {
        let child = run(&output, &["--resume"]).stderr(Stdio::null()).spawn().expect("started");
        journal_rows = kill_after_rows(child, &folder.at("scores.csv.journal"), journal_rows + 10);
        assert!(!output.exists(), "nothing stands under the final name before the end");
    }
    let refused = run(&output, &[]).output().expect("started");
    assert!(!refused.status.success() && stderr(&refused).contains("--resume"), "{}", stderr(&refused));
    let resumed = run(&output, &["--resume"]).stdout(Stdio::piped()).output().expect("started");
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    let summary = String::from_utf8_lossy(&resumed.stdout).into_owned();
    assert!(summary.contains("from an earlier run"), "{summary}");
    assert_eq!(by_name(&output), by_name(&whole), "every row once, with the same score");
    assert!(by_name(&output).values().all(|scores| scores.len() == 1));
    let again = run(&output, &["--resume"]).stdout(Stdio::piped()).output().expect("started");
    assert!(String::from_utf8_lossy(&again.stdout).contains("60 from an earlier run"), "{again:?}");
}

/// Kills the run once its journal has this many lines; says how many it had then.
fn kill_after_rows(mut child: Child, journal: &Path, rows: usize) -> usize {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let lines = fs::read_to_string(journal).map_or(0, |text| text.lines().count());
        if lines > rows {
            child.kill().expect("killed");
            child.wait().expect("gone");
            return lines;
        }
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it could be killed");
        assert!(Instant::now() < patience, "only {lines} rows in a minute");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn ctrl_c_keeps_finished_rows() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(60, (200, 150));
    let output = folder.at("scores.csv");
    let mut command = folder.score(&["--no-gpu", "--jobs", "1", "--output"]);
    let child = command.arg(&output).arg(&reference).args(&variants).stderr(Stdio::piped()).spawn().expect("started");
    let journal = folder.at("scores.csv.journal");
    let patience = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 6 {
        assert!(Instant::now() < patience, "no rows in a minute");
        thread::sleep(Duration::from_millis(2));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill is everywhere").success());
    let ended = child.wait_with_output().expect("gone");
    assert_eq!(ended.status.code(), Some(130), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("--resume"), "{}", stderr(&ended));
    let kept = by_name(&output).len();
    assert!((5..60).contains(&kept), "{kept} rows kept");
}

#[test]
fn parquet_is_written_and_continued() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(6, (64, 64));
    let output = folder.at("scores.parquet");
    let run = |count: usize, more: &[&str]| {
        let mut command = folder.score(&["--no-gpu", "--output"]);
        printed(command.arg(&output).args(more).arg(&reference).args(&variants[..count]))
    };
    run(4, &[]);
    assert!(fs::read(&output).expect("there").starts_with(b"PAR1"));
    let summary = run(6, &["--resume"]);
    assert!(summary.contains("4 from an earlier run"), "{summary}");
    // A changed file is scored again.
    folder.picture("v/001.png", (64, 64), 49);
    let summary = run(6, &["--resume"]);
    assert!(summary.contains("5 from an earlier run"), "{summary}");
}

#[test]
fn a_closed_pipe_ends_the_run_quietly() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(40, (64, 64));
    let mut command = folder.score(&["--no-gpu", "--format", "jsonl"]);
    let mut child =
        command.arg(reference).args(variants).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("gone");
    assert!(ended.status.success() && !stderr(&ended).contains("panicked"), "{}", stderr(&ended));
}

/// A real run's report in a real browser. `cargo xtask test test` installs the browser and says where it is.
#[test]
fn the_report_is_a_page_that_a_browser_shows() {
    let needs = |name: &str| {
        std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set; `cargo xtask test test` does"))
    };
    let (browser, modules) = (needs("PLIMSOLL_BROWSER"), needs("NODE_PATH"));
    let folder = Folder::new();
    let (reference, variants) = samples();
    let shown = Path::new(env!("CARGO_TARGET_TMPDIR")).join("score.html");
    let mut command = folder.score(&["--no-gpu", "-m", "ssim2,butteraugli", "--report"]);
    printed(command.arg(&shown).arg(reference).args(&variants));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report.cjs");
    let mut node = Command::new("node");
    node.arg(script)
        .arg(&shown)
        .arg(variants.len().to_string())
        .env("PLIMSOLL_BROWSER", browser)
        .env("NODE_PATH", modules);
    let looked = node.output().expect("node starts");
    assert!(looked.status.success(), "{}", stderr(&looked));
}

#[test]
fn heat_maps_are_files_of_every_pixel() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(2, (90, 61));
    let maps = folder.at("deep/maps");
    let mut command = folder.score(&["--no-gpu", "--heat-maps", maps.to_str().unwrap()]);
    printed(command.arg(&reference).arg(&reference).args(&variants));
    let mut files: Vec<PathBuf> = fs::read_dir(&maps).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let names: Vec<_> = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["00001-reference.png.png", "00002-000.png.png", "00003-001.png.png"]);
    let lightest = files.iter().map(|path| {
        let map = image::open(path).unwrap().to_rgb8();
        assert_eq!(map.dimensions(), (90, 61));
        map.pixels().map(|pixel| pixel.0[0]).max().unwrap()
    });
    let lightest: Vec<u8> = lightest.collect();
    assert!(lightest[0] < 10 && lightest[1] > 20 && lightest[2] > 20, "the same is dark: {lightest:?}");

    let taken =
        folder.score(&["--heat-maps", reference.to_str().unwrap()]).args([&reference, &reference]).output().unwrap();
    assert!(!taken.status.success() && stderr(&taken).contains("--heat-maps"), "{}", stderr(&taken));
}

#[test]
fn a_limit_without_its_unit_is_refused_at_once() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(1, (16, 16));
    let output = folder.score(&["--memory-limit", "64"]).arg(reference).args(variants).output().expect("started");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("64MiB"), "{}", stderr(&output));
}

#[test]
fn a_report_that_cannot_be_written_fails_before_the_work() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(2, (32, 32));
    let mut command = folder.score(&["--no-gpu", "--json", "--report"]);
    let output = command.arg(folder.at("missing/report.html")).arg(reference).args(variants).output().expect("started");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && stderr(&output).contains("--report"), "{}", stderr(&output));
}

/// Runs a command of the shell with the program as `$0` and these words behind it.
fn in_a_shell(folder: &Folder, script: &str, words: &[&std::ffi::OsStr]) -> Output {
    let mut command = Command::new("bash");
    OWN_SETTINGS.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.env("PLIMSOLL_PROFILE", folder.at("profile.toml")).args(["-c", script, env!("CARGO_BIN_EXE_plimsoll")]);
    command.args(words).output().expect("started")
}

#[test]
fn a_stderr_that_nobody_reads_never_ends_a_run() {
    let folder = Folder::new();
    let (reference, mut variants) = folder.variants(3, (32, 32));
    variants.push(folder.at("missing.png"));
    let words: Vec<&std::ffi::OsStr> =
        [reference.as_os_str()].into_iter().chain(variants.iter().map(|it| it.as_os_str())).collect();
    for closed in ["2>&-", "2>/dev/full"] {
        let output = in_a_shell(&folder, &format!("\"$0\" score --no-gpu --explain --json \"$@\" {closed}"), &words);
        assert_eq!(output.status.code(), Some(1), "{closed}: one file is missing");
        let rows: Vec<Value> =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{closed}: {error}"));
        assert_eq!(rows.iter().filter(|row| row["ssim2"].is_f64()).count(), 3, "{closed}");
    }
}

/// Memory that cannot be had is an error of a row, not the end of the program.
#[test]
fn a_small_address_space_ends_no_run() {
    let folder = Folder::new();
    // Its pixels alone take all there is.
    let huge = folder.picture("huge.png", (6000, 5000), 3);
    let small = folder.picture("small.png", (32, 32), 3);
    for (file, scored) in [(&huge, false), (&small, true)] {
        let words = [file.as_os_str(), file.as_os_str()];
        let script = "ulimit -v 240000; exec \"$0\" score --no-gpu --jobs 1 -m butteraugli --json \"$@\"";
        let output = in_a_shell(&folder, script, &words);
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{file:?}: {error}, {:?}: {}", output.status, stderr(&output)));
        assert_eq!(rows[0]["butteraugli"].is_f64(), scored, "{}", rows[0]);
    }
}

#[test]
fn signals_end_a_run_with_their_own_code() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(200, (300, 200));
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let output = folder.at(&format!("{signal}.csv"));
        let mut command = folder.score(&["--no-gpu", "--jobs", "1", "--output"]);
        let child =
            command.arg(&output).arg(&reference).args(&variants).stderr(Stdio::piped()).spawn().expect("started");
        let journal = folder.at(&format!("{signal}.csv.journal"));
        let patience = Instant::now() + Duration::from_secs(60);
        while fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 3 {
            assert!(Instant::now() < patience, "no rows in a minute");
            thread::sleep(Duration::from_millis(2));
        }
        let pid = child.id().to_string();
        assert!(
            Command::new("kill").args([&format!("-{signal}"), &pid]).status().expect("kill is everywhere").success()
        );
        let ended = child.wait_with_output().expect("gone");
        assert_eq!(ended.status.code(), Some(code), "{}", stderr(&ended));
        assert!(!by_name(&output).is_empty(), "finished rows are kept");
    }
}

#[test]
fn a_file_that_changed_and_now_fails_replaces_its_old_score() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(2, (48, 48));
    let output = folder.at("scores.csv");
    let run = || {
        let mut command = folder.score(&["--no-gpu", "--resume", "--output"]);
        command.arg(&output).arg(&reference).args(&variants).output().expect("started")
    };
    assert!(run().status.success());
    fs::write(&variants[1], b"no image any more").expect("written");
    assert_eq!(run().status.code(), Some(1));
    let scores = by_name(&output);
    let of = |at: usize| scores[&variants[at].display().to_string()][0].clone();
    assert!(!of(0).is_empty() && of(1).is_empty(), "{scores:?}");
}

#[test]
fn rows_of_another_version_or_decoder_are_scored_again() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(3, (48, 48));
    let output = folder.at("scores.csv");
    let run =
        || printed(folder.score(&["--no-gpu", "--resume", "--output"]).arg(&output).arg(&reference).args(&variants));
    run();
    let text = fs::read_to_string(&output).expect("there");
    let version = text
        .lines()
        .nth(1)
        .and_then(|line| line.split(',').find(|cell| cell.starts_with("plimsoll ")))
        .expect("a version");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1] = lines[1].replace(version, "plimsoll 0.0.1");
    lines[2] = lines[2].replace("png ", "libpng ");
    fs::write(&output, lines.join("\n") + "\n").expect("written");
    assert!(run().contains("1 from an earlier run"));
    assert!(run().contains("3 from an earlier run"));
}

#[test]
fn metrics_are_added_to_rows_that_are_there() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(4, (48, 48));
    for ending in ["csv", "json", "jsonl", "parquet"] {
        let output = folder.at(&format!("scores.{ending}"));
        let run = |metric: &str, count: usize| {
            let mut command = folder.score(&["--no-gpu", "--resume", "-m", metric, "--output"]);
            printed(command.arg(&output).arg(&reference).args(&variants[..count]))
        };
        run("psnr", 3);
        let summary = run("ssim", 4);
        assert!(summary.contains("4 on cpu"), "{ending}: ssim alone is scored: {summary}");
        let summary = run("psnr,ssim", 4);
        assert!(summary.contains("3 from an earlier run") && summary.contains("1 on cpu"), "{ending}: {summary}");
        assert!(run("psnr,ssim", 4).contains("4 from an earlier run"), "{ending}");
    }
    let text = fs::read_to_string(folder.at("scores.csv")).expect("there");
    assert!(text.starts_with("reference,distorted,settings,width,height,bytes,bits_per_pixel,psnr,ssim,"), "{text}");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    assert!(reader.records().all(|row| row.is_ok_and(|row| !row[7].is_empty() && !row[8].is_empty())));
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_keep_rows_of_their_own_and_steer_no_terminal() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let reference = folder.picture("reference.png", (24, 24), 0);
    let names: Vec<PathBuf> = [&b"a\xff.png"[..], b"a\xfe.png", b"red\x1b[31m.png"]
        .iter()
        .map(|name| folder.0.path().join(std::ffi::OsStr::from_bytes(name)))
        .collect();
    for name in &names {
        fs::copy(&reference, name).expect("copied");
    }
    let output = folder.at("scores.csv");
    let shown = printed(folder.score(&["--no-gpu", "--output"]).arg(&output).arg(&reference).args(&names));
    assert_eq!(by_name(&output).len(), 3, "{shown}");
    let table = folder
        .score(&["--no-gpu"])
        .arg(&reference)
        .args(&names)
        .arg(folder.at("missing\u{7}.png"))
        .output()
        .expect("started");
    let all = [&table.stdout[..], &table.stderr[..]].concat();
    assert!(!all.contains(&0x1b) && !all.contains(&7), "{}", String::from_utf8_lossy(&all));
}

#[test]
fn a_resumed_report_shows_all_rows() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(4, (48, 48));
    let (output, page) = (folder.at("scores.csv"), folder.at("report.html"));
    let run = |count: usize| {
        let mut command = folder.score(&["--no-gpu", "--resume", "--report"]);
        command.arg(&page).arg("--output").arg(&output).arg(&reference).args(&variants[..count]);
        printed(&mut command);
        fs::read_to_string(&page).expect("a page").matches("<tr id=\"row-").count()
    };
    assert_eq!((run(2), run(4)), (2, 4));
}

#[test]
fn what_pairs_with_nothing_is_told_and_short_headings_are_headings() {
    let folder = Folder::new();
    folder.picture("ref/a.png", (24, 24), 0);
    folder.picture("ref/lonely.png", (24, 24), 0);
    folder.picture("dist/a.png", (24, 24), 4);
    let output =
        folder.score(&["--no-gpu"]).args(["ref", "dist"].map(|name| folder.at(name))).output().expect("started");
    assert!(stderr(&output).contains("lonely.png has no variant"), "{}", stderr(&output));
    let list = folder.at("pairs.csv");
    let line = format!("{0}/ref/a.png,{0}/dist/a.png", folder.0.path().display());
    fs::write(&list, format!("ref,dist\n{line}\n")).expect("written");
    assert_eq!(rows(folder.score(&["--no-gpu", "--json", "--pairs"]).arg(&list)).len(), 1);
}

#[test]
fn labels_make_series_and_figures() {
    let folder = Folder::new();
    let reference = folder.picture("reference.png", (64, 64), 0);
    let quality =
        |encoder: &str, quality: u32| folder.picture(&format!("{encoder}-q{quality}.png"), (64, 64), 60 / quality);
    let variants: Vec<PathBuf> =
        ["old", "new"].iter().flat_map(|encoder| [1, 2, 3].map(|at| quality(encoder, at))).collect();
    let page = folder.at("report.html");
    let mut command = folder.score(&["--no-gpu", "-m", "psnr", "--labels", "{encoder}-q{quality}", "--report"]);
    let table = printed(command.arg(&page).arg(&reference).args(&variants));
    assert!(table.contains("BD-RATE") && table.contains("old") && table.contains("new"), "{table}");
    let page = fs::read_to_string(&page).expect("a page");
    assert!(page.contains("By series") && page.contains("data-series=\"1\""), "two series");
    assert!(page.contains("BD-RATE") && !page.contains("[1m"), "colours are for terminals");
    let mut command = folder.score(&["--no-gpu", "-m", "psnr", "--labels", "{encoder}-q{quality}", "--json"]);
    let labelled = rows(command.arg(&reference).args(&variants));
    assert_eq!((&labelled[4]["encoder"], &labelled[4]["quality"]), (&"new".into(), &"2".into()));
    assert!(!table.contains("no label"), "{table}");
    let others = [folder.picture("newest-d1.png", (64, 64), 9), folder.picture("newest-d2.png", (64, 64), 19)];
    let mut command = folder.score(&["--no-gpu", "-m", "psnr", "--labels", "{encoder}-q{quality}"]);
    let table = printed(command.arg(&reference).args(&variants).args(&others));
    assert!(table.contains("no label for 2 files, ") && table.contains("newest-d1.png the first"), "{table}");
}

#[test]
fn images_that_will_not_do_have_an_exit_code_of_their_own() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(3, (64, 64));
    let code = |threshold: &str| {
        let mut command = folder.score(&["--no-gpu", "-m", "psnr,butteraugli", "--fail-below", threshold]);
        command.arg(&reference).args(&variants).output().expect("started").status.code()
    };
    assert_eq!((code("psnr=1"), code("psnr=99"), code("butteraugli=0.001")), (Some(0), Some(3), Some(3)));
    assert_eq!((code("ssim2=80"), code("psnr")), (Some(2), Some(2)), "what is not scored, and what is no threshold");
}

#[test]
fn many_metrics_leave_names_readable_in_a_narrow_terminal() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(2, (64, 64));
    let names: Vec<String> =
        variants.iter().map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect();
    let mut command = folder.score(&["--no-gpu", "-m", "all"]);
    command.current_dir(folder.0.path()).env("COLUMNS", "80").arg(reference.file_name().expect("a name"));
    let table = printed(command.args(names.iter().map(|name| format!("v/{name}"))));
    for name in names {
        assert!(table.lines().filter(|line| line.starts_with(&format!("v/{name}"))).count() >= 2, "{table}");
    }
    assert!(
        table.lines().take_while(|line| !line.starts_with("images")).all(|line| line.chars().count() <= 80),
        "{table}"
    );
}

#[test]
fn stats_tell_the_bound_and_the_regret() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(8, (96, 64));
    let table = printed(folder.score(&["--no-gpu", "--stats"]).arg(&reference).args(&variants));
    assert!(table.contains("lower bound") && table.contains("regret"), "{table}");
    let output = folder
        .score(&["--no-gpu", "--stats=json", "--json"])
        .arg(&reference)
        .args(&variants)
        .output()
        .expect("started");
    let told = stderr(&output);
    let stats: Value = serde_json::from_str(&told[told.find('{').expect("an object")..]).expect("figures");
    let seconds = |name: &str| stats[name].as_f64().expect("a number");
    assert!(
        seconds("lower_bound_seconds") > 0.0 && seconds("lower_bound_seconds") <= seconds("elapsed_seconds"),
        "{stats}"
    );
    assert_eq!(stats["devices"][0]["tasks"], 17, "8 variants and a reference loaded, 8 scored: {stats}");
}

#[test]
fn equal_images_are_identical_and_different_ones_never_perfect() {
    let folder = Folder::new();
    let reference = folder.picture("reference.png", (640, 480), 0);
    let mut pixels = image::open(&reference).expect("there").into_rgb8();
    pixels.get_pixel_mut(7, 9).0[1] ^= 1;
    let near = folder.at("near.png");
    pixels.save(&near).expect("written");
    let table = printed(folder.score(&["--no-gpu", "-m", "psnr"]).args([&reference, &reference, &near]));
    assert_eq!(table.matches("identical").count(), 1, "{table}");
    let scored = rows(folder.score(&["--no-gpu", "-m", "psnr", "--json"]).args([&reference, &reference, &near]));
    let [equal, near] = [0, 1].map(|at: usize| scored[at]["psnr"].as_f64().expect("a score"));
    assert!(near > 100.0 && near < equal, "{near} near, {equal} equal");
}

#[test]
fn images_too_small_for_all_scales_are_told() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(2, (100, 200));
    let table = printed(folder.score(&["--no-gpu", "-m", "ms-ssim,iwssim,psnr"]).arg(reference).args(variants));
    assert!(table.contains("2 images below 161 pixels a side: ms-ssim") && !table.contains("side: psnr"), "{table}");
}

#[test]
fn strict_works_without_a_gpu() {
    let folder = Folder::new();
    let (reference, variants) = folder.variants(2, (64, 64));
    let table = printed(folder.score(&["--no-gpu", "--strict", "-m", "all"]).arg(reference).args(variants));
    assert!(table.contains("(cpu)"), "{table}");
}

/// A PNG that says its colours are those of ITU-T H.273 with these numbers.
fn with_colours(png: &Path, primaries: u8, transfer: u8) {
    let bytes = fs::read(png).expect("there");
    let chunk = [b"cICP", &[primaries, transfer, 0, 1][..]].concat();
    // CRC-32 as zlib has it, bit by bit: eight bytes.
    let crc = !chunk
        .iter()
        .fold(!0_u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1))));
    let header = 8 + 25;
    let parts = [&bytes[..header], &4_u32.to_be_bytes(), &chunk, &crc.to_be_bytes(), &bytes[header..]];
    fs::write(png, parts.concat()).expect("written");
}

/// Files that are not read are answered with a command that makes one that is.
#[test]
fn what_is_not_read_is_answered_with_a_line_that_works() {
    let folder = Folder::new();
    let run = |words: &str| {
        let run = Command::new("sh").args(["-c", words]).current_dir(folder.0.path()).status();
        assert!(run.expect("a shell").success(), "{words}");
    };
    let picture = "ffmpeg -v error -f lavfi -i testsrc2=size=96x64 -frames:v 1";
    run(&format!("{picture} -pix_fmt yuv444p -c:v libaom-av1 -still-picture 1 a.avif"));
    run(&format!("{picture} -pix_fmt gbrpf32le a.exr"));
    run(&format!("{picture} -pix_fmt rgb48be pq.png; cp pq.png hlg.png; cp pq.png plain.png"));
    with_colours(&folder.at("pq.png"), 9, 16);
    with_colours(&folder.at("hlg.png"), 9, 18);
    for file in ["a.avif", "a.exr", "pq.png", "hlg.png"] {
        let output = folder
            .score(&["--no-gpu", "--json", "-m", "psnr"])
            .args([folder.at("plain.png"), folder.at(file)])
            .output()
            .expect("started");
        let refused: Vec<Value> = serde_json::from_slice(&output.stdout).expect("rows");
        let told = refused[0]["error"].as_str().unwrap_or_else(|| panic!("{file} was read"));
        let line = &told[told.find("ffmpeg ").unwrap_or_else(|| panic!("{file}: {told}"))..];
        assert!(line.ends_with("out.png"), "it can be copied as it stands: {told}");
        run(&format!("{} -v error -y", line.replace("FILE", file)));
        let pair = [folder.at("plain.png"), folder.at("out.png")];
        let scored = rows(folder.score(&["--no-gpu", "--json", "-m", "psnr"]).args(pair));
        assert!(scored[0]["psnr"].is_f64(), "{file}: {scored:?}");
    }
}
