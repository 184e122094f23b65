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
const OWN_SETTINGS: [&str; 4] = ["PLIMSOLL_MEMORY_LIMIT", "PLIMSOLL_NO_GPU", "PLIMSOLL_SOFTWARE_GPU", "CLICOLOR_FORCE"];

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
        command.env("PLIMSOLL_PROFILE", self.at("profile.toml")).arg("score").args(words);
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

/// Under a line of 64 MiB images up to 4096 x 4096 are all scored, in strips where they have to be, with the same result.
#[test]
fn a_small_memory_limit_changes_how_but_not_what() {
    let folder = Folder::new();
    for side in [256, 1024, 4096] {
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
    assert_eq!((rung_of("/256.png"), rung_of("/4096.png")), ("cpu".into(), "cpu-strip".into()));
    let explained = stderr(&output);
    assert!(explained.contains("refused cpu on cpu: 192.0 MiB never fits under the line of 64.0 MiB"), "{explained}");
    assert!(explained.contains("1 task on a lower rung"), "{explained}");
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
