//! The binary as people and programs use it: what it prints, where, and how it exits.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use plimsoll::profile;
use plimsoll_core::profile::{Cell, CellKey, FailedCell, Hardware, Profile, UnsupportedCell};
use plimsoll_core::{Bytes, MemoryMoment, Nanos};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::profile_file::ProfileFile;
use plimsoll_runtime::{Device, SOFTWARE, today};
use serde_json::Value;
use tempfile::TempDir;

/// Settings of the developer's own that would change what is seen here.
const OWN_SETTINGS: [&str; 6] = [
    "PLIMSOLL_MEMORY_LIMIT",
    "PLIMSOLL_NO_GPU",
    "PLIMSOLL_SOFTWARE_GPU",
    "PLIMSOLL_PROFILE",
    "COLUMNS",
    "CLICOLOR_FORCE",
];

fn plimsoll(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    OWN_SETTINGS.iter().for_each(|name| {
        command.env_remove(name);
    });
    // Other tests run beside this one.
    command.env("PLIMSOLL_ALONE", "1").args(arguments);
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("started")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// What a command that must succeed prints.
fn printed(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    stdout(&output)
}

fn json(command: &mut Command) -> Value {
    let text = printed(command);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What a command that must fail says, with its exit code.
fn refused(command: &mut Command) -> (i32, String) {
    let output = output(command);
    assert!(!output.status.success(), "{command:?}: {}", stdout(&output));
    (output.status.code().expect("not killed"), stderr(&output))
}

fn devices(report: &Value) -> &[Value] {
    report["devices"].as_array().expect("a list")
}

fn ids(report: &Value) -> Vec<&str> {
    devices(report).iter().map(|device| device["id"].as_str().expect("text")).collect()
}

#[test]
fn devices_lists_the_cpu_with_a_passed_check() {
    let report = json(&mut plimsoll(&["devices", "--json"]));
    let cpu = &devices(&report)[0];
    assert_eq!((&cpu["id"], &cpu["kind"], &cpu["api"]), (&"cpu".into(), &"cpu".into(), &"native".into()));
    assert_eq!((&cpu["check"]["passed"], &cpu["used"]), (&true.into(), &true.into()));
    let bytes = |key: &str| cpu[key].as_u64().expect("a number");
    assert!(bytes("line_bytes") < bytes("free_bytes") && bytes("free_bytes") <= bytes("capacity_bytes"));
    assert!(cpu["slots"].as_u64().expect("a number") >= 1);
    assert!(cpu["memory_source"].is_string());
}

#[test]
fn devices_keeps_the_keys_that_programs_read() {
    let report = json(plimsoll(&["devices", "--json"]).env("PLIMSOLL_NO_GPU", "1"));
    let keys: Vec<&str> = devices(&report)[0].as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = "api bus capacity_bytes check driver free_bytes id key kind limit_bytes line_bytes memory_source \
                    name nature slots unused_because used";
    let mut sorted = keys;
    sorted.sort_unstable();
    assert_eq!(sorted.join(" "), expected);
}

#[test]
fn a_software_gpu_is_used_when_asked_for() {
    let by_setting = json(plimsoll(&["devices", "--json"]).env("PLIMSOLL_SOFTWARE_GPU", "1"));
    let by_flag = json(&mut plimsoll(&["devices", "--json", "--software-gpu"]));
    for report in [by_setting, by_flag] {
        let gpu = devices(&report).iter().find(|device| device["kind"] == "gpu");
        let gpu = gpu.expect("tests need a Vulkan device: `cargo xtask test` installs one");
        assert_eq!((&gpu["check"]["passed"], &gpu["used"]), (&true.into(), &true.into()), "{gpu}");
    }
}

#[test]
fn a_software_gpu_is_listed_and_checked_though_not_used() {
    let report = json(&mut plimsoll(&["devices", "--json"]));
    for gpu in devices(&report).iter().filter(|device| device["nature"] == "software") {
        assert_eq!((&gpu["check"]["passed"], &gpu["used"]), (&true.into(), &false.into()));
        assert!(gpu["unused_because"].as_str().expect("a reason").contains("--software-gpu"));
    }
}

#[test]
fn without_gpus_only_the_cpu_is_left() {
    assert_eq!(ids(&json(plimsoll(&["devices", "--json"]).env("PLIMSOLL_NO_GPU", "1"))), ["cpu"]);
    assert_eq!(ids(&json(&mut plimsoll(&["devices", "--json", "--no-gpu"]))), ["cpu"]);
}

#[test]
fn a_flag_wins_over_the_environment() {
    let no_gpu = json(plimsoll(&["--no-gpu", "devices", "--json"]).env("PLIMSOLL_SOFTWARE_GPU", "1"));
    assert_eq!(ids(&no_gpu), ["cpu"]);
    let gpu = json(plimsoll(&["devices", "--json", "--software-gpu"]).env("PLIMSOLL_NO_GPU", "1"));
    assert!(ids(&gpu).len() > 1);
    let arguments = ["devices", "--json", "--no-gpu", "--memory-limit", "64MiB"];
    let limited = json(plimsoll(&arguments).env("PLIMSOLL_MEMORY_LIMIT", "32MiB"));
    assert_eq!(devices(&limited)[0]["line_bytes"], 64 << 20);
}

#[test]
fn parts_of_a_gpu_are_listed_each() {
    let report = json(&mut plimsoll(&["devices", "--json", "--logical-gpus", "3"]));
    assert_eq!(ids(&report)[..4], ["cpu", "gpu0", "gpu1", "gpu2"]);
    for part in &devices(&report)[1..4] {
        assert_eq!((&part["check"]["passed"], &part["used"]), (&true.into(), &true.into()), "{part}");
    }
}

#[test]
fn a_memory_limit_lowers_the_line() {
    let by_flag = json(&mut plimsoll(&["devices", "--json", "--memory-limit", "64MiB"]));
    let by_setting = json(plimsoll(&["devices", "--json"]).env("PLIMSOLL_MEMORY_LIMIT", "64MiB"));
    for report in [by_flag, by_setting] {
        for device in devices(&report) {
            let line = device["line_bytes"].as_u64().expect("a number");
            assert!((56 << 20..=64 << 20).contains(&line), "{device}");
        }
    }
    let cpu_only = json(&mut plimsoll(&["devices", "--json", "--no-gpu", "--memory-limit", "cpu=1GiB"]));
    assert_eq!(devices(&cpu_only)[0]["limit_bytes"], 1 << 30);
    assert_eq!(devices(&cpu_only)[0]["line_bytes"], 1 << 30);
    let shown = printed(&mut plimsoll(&["devices", "--no-gpu", "--memory-limit", "64MiB"]));
    assert!(shown.contains("64.0 MiB"), "{shown}");
}

#[test]
fn a_limit_for_nobody_is_told_and_stops_nothing() {
    let output = output(&mut plimsoll(&["devices", "--json", "--memory-limit", "gpu99=1GiB"]));
    assert!(output.status.success());
    assert!(stderr(&output).contains("no such device"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_exits_2_and_says_what_to_write() {
    let (code, said) = refused(&mut plimsoll(&["devices", "--memory-limit", "lots"]));
    assert_eq!(code, 2);
    assert!(said.starts_with("error:") && said.contains("for example 64MiB"), "{said}");
    assert_eq!(refused(&mut plimsoll(&["devices", "--memory-limit", "card=1GiB"])).0, 2);
    assert_eq!(refused(&mut plimsoll(&["devices", "--logical-gpus", "0"])).0, 2);
    assert_eq!(refused(&mut plimsoll(&["devices", "--no-gpu", "--software-gpu"])).0, 2);
    assert_eq!(refused(&mut plimsoll(&["devises"])).0, 2);
    assert_eq!(refused(&mut plimsoll(&[])).0, 2);
}

#[test]
fn a_wrong_setting_exits_1_and_says_what_to_write() {
    for (name, value) in [("PLIMSOLL_NO_GPU", "yes"), ("PLIMSOLL_MEMORY_LIMIT", "lots")] {
        let (code, said) = refused(plimsoll(&["devices"]).env(name, value));
        assert_eq!(code, 1);
        assert!(said.starts_with(&format!("error: {name} is '{value}'")) && said.contains("write"), "{said}");
    }
}

#[test]
fn tables_fit_the_width_they_are_given_and_hold_no_colour() {
    for columns in [60, 80, 120] {
        let shown = printed(plimsoll(&["devices", "--software-gpu"]).env("COLUMNS", columns.to_string()));
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let table = shown.lines().filter(|line| !line.contains("is not used"));
        for line in table {
            assert!(line.chars().count() <= columns && line == line.trim_end(), "{columns}: {line:?}");
        }
    }
}

#[test]
fn drivers_say_nothing_of_their_own() {
    let output = output(plimsoll(&["devices"]).env_remove("XDG_RUNTIME_DIR"));
    assert_eq!(stderr(&output), "");
}

#[test]
fn fuzzing_is_clean() {
    let report = json(&mut plimsoll(&["sim", "fuzz", "--seeds", "40", "--start", "7", "--jobs", "3", "--json"]));
    assert_eq!((&report["start"], &report["seeds"], &report["played"]), (&7.into(), &40.into(), &40.into()));
    assert_eq!(report["failure"], Value::Null);
    let number = |key: &str| report[key].as_u64().expect("a number");
    assert!(number("done") > 0 && number("done") <= number("tasks"));
    assert!(printed(&mut plimsoll(&["sim", "fuzz", "--seeds", "5"])).contains("Played 5 of 5 seeds, all clean"));
}

#[test]
fn a_broken_core_is_caught_and_the_same_seed_on_any_number_of_threads() {
    let fuzz = ["sim", "fuzz", "--seeds", "400", "--mutation", "forgetful-ledger"];
    let on = |jobs: &str| {
        let (code, said) = refused(plimsoll(&fuzz).args(["--jobs", jobs]));
        assert_eq!(code, 1);
        said
    };
    let said = on("1");
    assert_eq!(on("4"), said);
    let seed = said.strip_prefix("error: seed ").and_then(|rest| rest.split(' ').next()).expect("a seed");
    let replay = format!("plimsoll sim fuzz --start {seed} --seeds 1 --mutation forgetful-ledger");
    assert!(said.contains(&format!("try: {replay}")), "{said}");
    let words: Vec<&str> = replay.split(' ').skip(1).collect();
    let (code, again) = refused(&mut plimsoll(&words));
    assert_eq!((code, again), (1, said), "the printed command plays it again");
}

#[test]
fn a_failing_seed_is_json_too() {
    let output = output(&mut plimsoll(&["sim", "fuzz", "--mutation", "forgetful-ledger", "--json"]));
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert!(report["failure"]["seed"].is_u64());
    assert!(report["failure"]["replay"].as_str().expect("text").starts_with("plimsoll sim fuzz --start"));
}

#[test]
fn seeds_past_the_last_one_are_an_error() {
    let (code, said) = refused(&mut plimsoll(&["sim", "fuzz", "--start", "18446744073709551615", "--seeds", "9"]));
    assert_eq!(code, 1);
    assert!(said.contains("lower --start or --seeds"), "{said}");
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&mut plimsoll(&["completions", shell]));
        assert!(script.contains("devices") && script.contains("plimsoll"), "{shell}");
    }
}

#[test]
fn help_has_examples() {
    let commands: [&[&str]; 7] = [
        &[],
        &["devices"],
        &["profile"],
        &["profile", "show"],
        &["profile", "import"],
        &["sim", "fuzz"],
        &["completions"],
    ];
    for words in commands {
        let help = printed(plimsoll(words).arg("--help"));
        assert!(help.contains("Example"), "{words:?}: {help}");
        assert!(!help.contains("mutation"), "{words:?}");
    }
}

/// `plimsoll … | head -1`, for an output larger than a pipe holds, and for a short one.
#[test]
fn a_reader_that_leaves_is_no_error() {
    for words in [&["completions", "zsh"][..], &["devices", "--no-gpu"]] {
        let mut child = plimsoll(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        let mut first = String::new();
        let mut reader = BufReader::with_capacity(16, child.stdout.take().expect("piped"));
        reader.read_line(&mut first).expect("a line");
        drop(reader);
        let output = child.wait_with_output().expect("ended");
        assert!(output.status.success(), "{words:?}");
        assert_eq!(stderr(&output), "", "{words:?}");
    }
}

/// A profile of this machine, as if it had been measured.
fn measured(machine: Hardware) -> Profile {
    let mut learnt = Cell::default();
    learnt.learn_open(Nanos::millis(12));
    (10..24).step_by(2).for_each(|octave| learnt.learn_run(1 << octave, Nanos(100 << octave)));
    let key_of = |rung| CellKey::new("blur", rung, &CpuDevice::open().facts().key);
    let key = key_of("cpu");
    let mut profile = Profile::new(machine, SOFTWARE, today());
    profile.record(&key, &mut learnt, today());
    let failed = FailedCell::out_of_memory(key, 1 << 30, Bytes::gib(9), MemoryMoment::Run, SOFTWARE, today());
    let unsupported = UnsupportedCell::new(key_of("gpu-full"), "no f64", SOFTWARE, today());
    profile.failures_mut().remember_unsupported(unsupported);
    let failed = failed.expect("it happened").with_free(Some(Bytes::gib(2))).with_step(3);
    profile.failures_mut().remember(failed);
    profile
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn profile_command(file: &Path, words: &[&str]) -> Command {
    let mut command = plimsoll(&["profile"]);
    command.args(words).env("PLIMSOLL_PROFILE", file);
    command
}

#[test]
fn a_profile_is_shown_exported_imported_and_forgotten() {
    let folder = folder();
    let (file, copy) = (folder.path().join("profile.toml"), folder.path().join("copy.toml"));
    let copy_name = copy.to_str().expect("text");
    assert_eq!(printed(&mut profile_command(&file, &["path"])).trim_end(), file.display().to_string());
    assert!(printed(&mut profile_command(&file, &["show"])).contains("There is no profile"));
    assert_eq!(json(&mut profile_command(&file, &["show", "--json"]))["profile"], Value::Null);

    ProfileFile::at(&file).save(&measured(profile::hardware()), today()).expect("saved");
    let shown = printed(&mut profile_command(&file, &["show"]));
    for part in ["fresh", "blur", "cpu", "12.0 ms", "1024 in 102.4 µs", "Memory ran out", "with 2.0 GiB free", "no f64"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let report = json(&mut profile_command(&file, &["show", "--json"]));
    assert_eq!((&report["profile"]["state"], &report["cells"][0]["device"]), (&"fresh".into(), &"cpu".into()));
    assert_eq!(report["cells"][0]["sizes"].as_array().expect("a list").len(), 7);
    let failure = &report["failures"][0];
    assert_eq!((&failure["free"], &failure["step"]), (&Bytes::gib(2).0.into(), &3.into()));
    assert_eq!(report["unsupported"][0]["detail"], "no f64");

    printed(&mut profile_command(&file, &["export", copy_name]));
    assert!(printed(&mut profile_command(&file, &["forget", "sum"])).contains("No failure of sum"));
    assert!(printed(&mut profile_command(&file, &["forget"])).contains("Forgot 2 failures"));
    let report = json(&mut profile_command(&file, &["show", "--json"]));
    assert_eq!((&report["failures"], &report["unsupported"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    assert_eq!(report["cells"].as_array().expect("a list").len(), 1, "what was measured stays");
    assert!(printed(&mut profile_command(&file, &["clear"])).contains("Forgot"));
    assert!(printed(&mut profile_command(&file, &["clear"])).contains("There was no profile"));
    assert!(printed(&mut profile_command(&file, &["import", copy_name])).contains("Took over 1 cells"));
    assert_eq!(json(&mut profile_command(&file, &["show", "--json"]))["profile"]["state"], "fresh");
}

#[test]
fn a_profile_of_another_machine_is_refused_with_the_reason() {
    let folder = folder();
    let (file, foreign) = (folder.path().join("profile.toml"), folder.path().join("foreign.toml"));
    let other = Hardware { key: "machine-other".into(), devices: vec![] };
    ProfileFile::at(&foreign).save(&measured(other), today()).expect("saved");
    let (code, said) = refused(&mut profile_command(&file, &["import", foreign.to_str().expect("text")]));
    assert_eq!(code, 1);
    assert!(said.starts_with("error:") && said.contains("it was measured on"), "{said}");
    assert!(!file.exists());
    let (code, said) = refused(plimsoll(&["bench", "--quick", "--no-gpu"]).env("PLIMSOLL_PROFILE", &foreign));
    assert_eq!(code, 1);
    assert!(said.contains("another machine's") && said.contains("PLIMSOLL_PROFILE"), "{said}");
    let (code, said) = refused(&mut profile_command(&file, &["export", "nowhere.toml"]));
    assert_eq!(code, 1);
    assert!(said.contains("plimsoll bench"), "{said}");
}

/// Without `PLIMSOLL_PROFILE` each machine has its own file; one that is shared with another machine is left alone.
#[test]
fn the_cache_folder_holds_a_file_for_each_machine() {
    let folder = folder();
    let command = |words: &[&str]| {
        let mut command = plimsoll(&["profile"]);
        command.args(words).env("HOME", folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
        command
    };
    let path = printed(&mut command(&["path"]));
    let path = Path::new(path.trim_end());
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(name.starts_with("profile-") && name.ends_with(".toml"), "{name}");
    let common = path.with_file_name("profile.toml");
    ProfileFile::at(&common).save(&measured(profile::hardware()), today()).expect("saved");
    assert_eq!(json(&mut command(&["show", "--json"]))["profile"]["state"], "fresh", "taken over");
    assert!(path.exists() && !common.exists());
}

#[test]
fn bench_measures_every_device_and_rung_and_keeps_it() {
    let folder = folder();
    let (file, trace) = (folder.path().join("profile.toml"), folder.path().join("trace.json"));
    let arguments = ["bench", "--quick", "--json", "--software-gpu", "--trace", trace.to_str().expect("text")];
    let report = json(plimsoll(&arguments).env("PLIMSOLL_PROFILE", &file));
    let cells = report["cells"].as_array().expect("a list");
    for (device, rung) in [("cpu", "cpu"), ("gpu0", "gpu-full"), ("gpu0", "gpu-strip")] {
        let cell = cells.iter().find(|cell| cell["device"] == device && cell["rung"] == rung);
        let cell = cell.unwrap_or_else(|| panic!("no {rung} on {device}: {report}"));
        assert!(cell["run_ns"].as_u64().is_some_and(|run| run > 0) && cell["failure"].is_null(), "{cell}");
        assert_eq!(cell["bytes_peak"], cell["bytes_predicted"], "the footprint is exact: {cell}");
    }
    let kept = json(&mut profile_command(&file, &["show", "--json"]));
    assert_eq!(kept["profile"]["state"], "fresh");
    assert!(kept["cells"].as_array().is_some_and(|cells| cells.len() >= 5), "{kept}");
    let entries: Vec<Value> = serde_json::from_slice(&std::fs::read(&trace).expect("written")).expect("JSON");
    assert!(entries.iter().any(|entry| entry["cat"] == "run"), "a trace has runs");
}

#[test]
fn bench_says_when_the_profile_cannot_be_written() {
    let folder = folder();
    let (code, said) = refused(plimsoll(&["bench", "--quick", "--no-gpu"]).env("PLIMSOLL_PROFILE", folder.path()));
    assert_eq!(code, 1);
    assert!(said.starts_with("error:"), "{said}");
}

fn graph(name: &str) -> String {
    format!("{}/../plimsoll-testkit/graphs/{name}.tsv", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn replay_tells_makespan_bound_and_ratio() {
    let (cholesky, layered) = (graph("cholesky10"), graph("layered"));
    let arguments = ["sim", "replay", "--graph", &cholesky, &layered, "--cpu", "2", "--gpu", "3"];
    let report = json(plimsoll(&arguments).arg("--json"));
    let row = &report["graphs"][0];
    assert_eq!(
        (&row["graph"], &row["tasks"], &row["lower_bound_us"]),
        (&"cholesky10".into(), &220.into(), &127e3.into())
    );
    let ratio = row["ratio"].as_f64().expect("a number");
    assert!((1.0..1.16).contains(&ratio), "{row}");
    assert!((row["makespan_us"].as_f64().expect("a number") / 127e3 - ratio).abs() < 1e-9, "{row}");
    let shown = printed(&mut plimsoll(&arguments));
    assert!(shown.contains("cholesky10") && shown.contains("2C+3G") && shown.contains("Worst: "), "{shown}");
}

#[test]
fn replay_shows_every_cell_of_the_benchmark_with_and_without_knowledge() {
    let arguments = ["sim", "replay", "--all", "--noise", "0.3", "--draws", "1", "--unknown"];
    let report = json(plimsoll(&arguments).arg("--json"));
    assert_eq!(report["graphs"].as_array().map(Vec::len), Some(16));
    for mean in ["geometric_mean", "geometric_mean_learnt", "geometric_mean_unknown"] {
        assert!(report[mean].as_f64().is_some_and(|mean| (1.0..1.4).contains(&mean)), "{mean}: {report}");
    }
    let shown = printed(&mut plimsoll(&arguments));
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(shown.contains("UNKNOWN") && shown.contains("with none known"), "{shown}");
    let plain = json(&mut plimsoll(&["sim", "replay", "--graph", &graph("indep_mix"), "--json"]));
    assert_eq!((&plain["draws"], &plain["graphs"][0]["ratio_unknown"]), (&1.into(), &serde_json::Value::Null));
}

#[test]
fn replay_says_what_is_wrong_with_a_graph() {
    let folder = folder();
    let file = folder.path().join("wrong.tsv");
    std::fs::write(&file, "0\t0\t10\t10\t1\t-\n1\t0\t10\tten\t1\t0\n").expect("written");
    let name = file.to_str().expect("text");
    let (code, said) = refused(&mut plimsoll(&["sim", "replay", "--graph", name]));
    assert_eq!(code, 1);
    assert!(said.contains("wrong.tsv") && said.contains("line 2"), "{said}");
    let (_, said) = refused(&mut plimsoll(&["sim", "replay", "--graph", name, "--cpu", "0", "--gpu", "0"]));
    assert!(said.contains("raise --cpu or --gpu"), "{said}");
    assert_eq!(refused(&mut plimsoll(&["sim", "replay"])).0, 2);
    let (_, said) = refused(&mut plimsoll(&["sim", "replay", "--graph", "no-such-file.tsv"]));
    assert!(said.contains("no-such-file.tsv"), "{said}");
}

/// The program starts in time for a file of 4 KiB: what the loader has to set is written as ranges, not one by one.
#[cfg(all(packed_relocations, target_pointer_width = "64"))]
#[test]
fn the_loader_is_told_in_ranges_what_to_set() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_plimsoll")).expect("the program");
    let number = |at: usize, bytes: usize| {
        program[at..at + bytes].iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    // Of the header: where the sections are described, in how many bytes each, how many there are. Of each: its kind.
    let (table, entry, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    const RANGES: usize = 19;
    assert!((0..count).any(|section| number(table + section * entry + 4, 4) == RANGES), "{count} sections");
}
