//! The profile's file as several processes see it: real processes, real files, real kills.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::profile::{
    Cell, CellKey, DeviceSummary, FailedCell, Freshness, Hardware, Origin, Profile, UnsupportedCell,
};
use plimsoll_core::{Bytes, DeviceKind, MemoryMoment, Nanos, UnixSeconds};
use plimsoll_runtime::profile_file::{MACHINES_MAX, ProfileFile, ProfileFileError, Warning};
use tempfile::TempDir;

const NOW: UnixSeconds = UnixSeconds(1_760_000_000);
const SOFTWARE: &str = "0.1.0";

/// Set for a process that this test starts of itself: the folder, the writer's name, how many cells it writes.
const WRITER: [&str; 3] = ["PLIMSOLL_TEST_WRITER_PATH", "PLIMSOLL_TEST_WRITER_NAME", "PLIMSOLL_TEST_WRITER_COUNT"];

/// Until a started process does its part. Only a hang takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

fn machine(card: &str, driver: &str) -> Hardware {
    let device = DeviceSummary { name: card.into(), kind: DeviceKind::Gpu, driver: driver.into() };
    Hardware { key: format!("{card} {driver}"), devices: vec![device] }
}

fn home() -> Hardware {
    machine("RTX 5070", "580.1")
}

fn empty() -> Profile {
    Profile::new(home(), SOFTWARE, NOW)
}

fn key(name: &str) -> CellKey {
    CellKey::new(name, "gpu-full", "card")
}

fn learn(profile: &mut Profile, name: &str) {
    let mut cell = Cell::default();
    (10..20).for_each(|octave| cell.learn_run(1 << octave, Nanos(1_000 << octave)));
    profile.record(&key(name), &mut cell, NOW);
}

fn learnt(name: &str) -> Profile {
    let mut profile = empty();
    learn(&mut profile, name);
    profile
}

fn place() -> (TempDir, ProfileFile) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = ProfileFile::at(folder.path().join("cache/plimsoll/profile.toml"));
    (folder, file)
}

/// The folder that machines share.
fn shared(folder: &TempDir) -> PathBuf {
    folder.path().join("cache/plimsoll")
}

fn of_home(folder: &Path) -> ProfileFile {
    ProfileFile::of_machine_in(folder, &home())
}

fn learnt_on(machine: &Hardware, name: &str) -> Profile {
    let mut profile = Profile::new(machine.clone(), SOFTWARE, NOW);
    learn(&mut profile, name);
    profile
}

fn suffixed(file: &ProfileFile, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", file.path().display()))
}

/// Loads a profile that must be there and whole.
fn whole(file: &ProfileFile) -> Profile {
    let loaded = file.load(NOW).expect("readable");
    assert_eq!(loaded.warnings, []);
    loaded.profile.expect("there is one")
}

/// A process that writes. Killed when dropped, so that a failing test leaves none behind.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this very test binary as a writer of its own.
fn start_writer(file: &ProfileFile, name: &str, count: usize) -> Writer {
    let started = Command::new(env::current_exe().expect("this binary"))
        .args(["--exact", "writer_process", "--test-threads=1"])
        .env(WRITER[0], file.path().parent().expect("a folder"))
        .env(WRITER[1], name)
        .env(WRITER[2], count.to_string())
        .stdout(Stdio::null())
        .spawn();
    Writer(started.expect("started"))
}

/// What [`start_writer`] runs. Started by the test runner it starts itself once more, as a writer, and looks at what
/// that wrote: the other tests rely on it.
#[test]
fn writer_process() {
    if let Ok(path) = env::var(WRITER[0]) {
        return write_as_told(&path);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = of_home(&shared(&folder));
    let ended = start_writer(&file, "alone", 3).0.wait().expect("ours");
    assert!(ended.success(), "{ended:?}");
    assert_eq!(whole(&file).cells().len(), 3);
}

/// Learns one cell after another and saves only what it learnt since, so that all that others wrote must come through
/// the merge.
fn write_as_told(path: &str) {
    let text = |at: usize| env::var(WRITER[at]).expect("set by start_writer");
    let (name, count): (String, usize) = (text(1), text(2).parse().expect("a number"));
    let file = of_home(Path::new(path)).with_lock_wait(PATIENCE);
    for i in 0..count {
        file.save(&learnt(&format!("{name}-{i}")), NOW).expect("saved");
    }
}

#[test]
fn no_update_is_lost_between_processes() {
    const CELLS: usize = 100;
    let folder = tempfile::tempdir().expect("a folder");
    let file = of_home(&shared(&folder));
    file.save(&empty(), NOW).expect("saved");
    let mut writers = [start_writer(&file, "a", CELLS), start_writer(&file, "b", CELLS)];
    let mut seen = 0;
    loop {
        let done = writers.iter_mut().map(|writer| writer.0.try_wait().expect("ours")).collect::<Option<Vec<_>>>();
        let cells = whole(&file).cells().len();
        assert!(cells >= seen, "{seen} cells were there, now {cells}");
        seen = cells;
        if let Some(ended) = done {
            assert!(ended.iter().all(|status| status.success()), "{ended:?}");
            break;
        }
    }
    let profile = whole(&file);
    for name in (0..CELLS).flat_map(|i| [format!("a-{i}"), format!("b-{i}")]) {
        assert!(profile.cell(&key(&name)).is_some(), "{name} was lost");
    }
    assert!(!suffixed(&file, ".new").exists());
}

#[test]
fn a_killed_writer_leaves_a_whole_file_and_no_lock() {
    const ROUNDS: u64 = 25;
    let folder = tempfile::tempdir().expect("a folder");
    let file = of_home(&shared(&folder));
    for round in 0..ROUNDS {
        let name = format!("child{round}");
        let writer = start_writer(&file, &name, usize::MAX);
        wait_for_cell(&file, &format!("{name}-0"));
        // Spread over the few milliseconds that one save takes, so that the kills fall into every part of it.
        thread::sleep(Duration::from_micros(round * 2_654_435_761 % 8_000));
        drop(writer);

        let before = whole(&file).cells().len();
        file.save(&learnt(&format!("parent{round}")), NOW).expect("the lock is free again");
        let after = whole(&file);
        assert_eq!(after.cells().len(), before + 1, "round {round}");
        assert!((0..=round).all(|i| after.cell(&key(&format!("parent{i}"))).is_some()));
        file.replace(&only_parents(round)).expect("written");
    }
}

/// Each round begins small, so that the last is as quick as the first.
fn only_parents(last: u64) -> Profile {
    let mut profile = empty();
    (0..=last).for_each(|i| learn(&mut profile, &format!("parent{i}")));
    profile
}

fn wait_for_cell(file: &ProfileFile, name: &str) {
    let start = Instant::now();
    let missing = |profile: Profile| profile.cell(&key(name)).is_none();
    while file.load(NOW).expect("readable").profile.is_none_or(missing) {
        assert!(start.elapsed() < PATIENCE, "the writer never wrote {name}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_lock_that_is_held_is_an_error_after_a_while() {
    let (_folder, file) = place();
    file.save(&learnt("a"), NOW).expect("saved");
    let held = OpenOptions::new().write(true).open(suffixed(&file, ".lock")).expect("it stays");
    held.lock().expect("free");
    let file = file.with_lock_wait(Duration::from_millis(20));
    assert!(matches!(file.save(&learnt("b"), NOW), Err(ProfileFileError::Busy { .. })));
    assert!(whole(&file).cell(&key("a")).is_some(), "reading needs no lock");
    drop(held);
    file.save(&learnt("b"), NOW).expect("free again");
}

#[test]
fn nothing_is_there_at_first_and_after_clear() {
    let (_folder, file) = place();
    assert!(file.load(NOW).expect("readable").profile.is_none());
    assert!(!file.clear().expect("nothing to do"));
    assert!(!file.path().parent().expect("a folder").exists(), "looking creates nothing");
    file.save(&learnt("a"), NOW).expect("saved");
    assert!(file.clear().expect("cleared"));
    assert!(file.load(NOW).expect("readable").profile.is_none());
}

#[test]
fn a_damaged_file_is_set_aside_with_the_reason() {
    let (_folder, file) = place();
    file.save(&learnt("a"), NOW).expect("saved");
    for damage in [&b"schema = 1\nsoftware ="[..], b"", b"\xff\xfe", b"hello"] {
        fs::write(file.path(), damage).expect("written");
        let loaded = file.load(NOW).expect("not in the way");
        assert!(loaded.profile.is_none());
        let aside = suffixed(&file, ".corrupt");
        let [Warning::SetAside { moved_to, .. }] = &loaded.warnings[..] else { panic!("{:?}", loaded.warnings) };
        assert_eq!(moved_to.as_ref(), Some(&aside));
        assert_eq!(fs::read(&aside).expect("it lies there"), damage);
        assert!(!file.path().exists());
    }
    fs::write(file.path(), "nonsense").expect("written");
    let saved = file.save(&learnt("b"), NOW).expect("saved all the same");
    assert_eq!(saved.warnings.len(), 1);
    assert!(whole(&file).cell(&key("b")).is_some());
}

#[test]
fn a_file_too_large_is_not_even_read() {
    let (_folder, file) = place();
    file.save(&empty(), NOW).expect("saved");
    File::create(file.path()).and_then(|huge| huge.set_len(1 << 40)).expect("sparse");
    let loaded = file.load(NOW).expect("not in the way");
    assert!(loaded.warnings[0].to_string().contains("it holds 1.0 TiB"), "{}", loaded.warnings[0]);
}

#[test]
fn a_later_version_is_left_alone() {
    let (_folder, file) = place();
    file.save(&empty(), NOW).expect("saved");
    fs::write(file.path(), "schema = 99\nshiny = true\n").expect("written");
    assert!(matches!(file.load(NOW), Err(ProfileFileError::Newer { found: 99, .. })));
    assert!(matches!(file.save(&learnt("a"), NOW), Err(ProfileFileError::Newer { found: 99, .. })));
    assert_eq!(fs::read_to_string(file.path()).expect("read"), "schema = 99\nshiny = true\n");
}

#[test]
fn a_changed_driver_begins_a_new_profile_and_says_so() {
    let (_folder, file) = place();
    file.save(&learnt("a"), NOW).expect("saved");
    let after_update = Profile::new(machine("RTX 5070", "590.0"), SOFTWARE, NOW);
    let saved = file.save(&after_update, NOW).expect("saved");
    assert!(saved.replaced.is_some_and(|why| why.to_string().contains("590.0")));
    assert_eq!(whole(&file).cells().len(), 0);
}

#[test]
fn a_refuted_failure_does_not_come_back_from_the_file() {
    let (_folder, file) = place();
    let mut profile = empty();
    let failed = FailedCell::out_of_memory(key("a"), 10, Bytes(40), MemoryMoment::Run, SOFTWARE, NOW);
    profile.failures_mut().remember(failed.expect("it happened"));
    file.save(&profile, NOW).expect("saved");
    profile.failures_mut().succeeded(&key("a"), 10, Bytes(40), NOW.plus(1));
    file.save(&profile, NOW.plus(1)).expect("saved");
    let later = NOW.plus(2);
    let loaded = file.load(later).expect("readable").profile.expect("there is one");
    assert!(loaded.failures().refuses(&key("a"), 10, Bytes(40), later, SOFTWARE).is_none());
}

#[test]
fn a_profile_travels_to_an_identical_machine_only() {
    let (folder, file) = place();
    let exported = folder.path().join("shared.toml");
    assert!(matches!(file.export(&exported, NOW), Err(ProfileFileError::Missing { .. })));
    file.save(&learnt("a"), NOW).expect("saved");
    file.export(&exported, NOW).expect("exported");

    let (_other, there) = place();
    let import = |machine: &Hardware, software, now| there.import(&exported, Origin { machine, software }, now);
    for (machine, software) in [(machine("Arc", "1"), SOFTWARE), (machine("RTX 5070", "1"), SOFTWARE), (home(), "9")] {
        let refused = import(&machine, software, NOW).expect_err("not ours");
        assert!(matches!(refused, ProfileFileError::Foreign { .. }), "{refused}");
        assert!(refused.to_string().contains("it was measured"), "{refused}");
        assert!(!there.path().exists());
    }
    let imported = import(&home(), SOFTWARE, NOW).expect("identical");
    assert_eq!(imported.freshness, Freshness::Fresh);
    assert_eq!(whole(&there), whole(&file));
    let old = import(&home(), SOFTWARE, NOW.plus(30 * 24 * 3600)).expect("old, yet of this machine");
    assert!(!old.freshness.is_fresh());
}

#[test]
fn what_is_no_profile_is_not_imported_and_what_was_there_stays() {
    let (folder, file) = place();
    file.save(&learnt("a"), NOW).expect("saved");
    let machine = home();
    let import = |from: &Path| {
        let refused = file.import(from, Origin { machine: &machine, software: SOFTWARE }, NOW);
        assert!(whole(&file).cell(&key("a")).is_some());
        refused.expect_err("refused")
    };
    let odd = folder.path().join("odd.toml");
    assert!(matches!(import(&odd), ProfileFileError::Missing { .. }));
    fs::write(&odd, "hello = 1").expect("written");
    assert!(matches!(import(&odd), ProfileFileError::Corrupt { .. }));
    assert!(odd.exists(), "the user's own file is not moved");
    assert!(matches!(import(folder.path()), ProfileFileError::NotAFile { .. }));
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let blocked = folder.path().join("file");
    fs::write(&blocked, "").expect("written");
    let file = ProfileFile::at(blocked.join("profile.toml"));
    let error = file.save(&learnt("a"), NOW).expect_err("a file is no folder");
    assert!(error.to_string().contains(&blocked.display().to_string()), "{error}");
}

#[test]
fn the_profile_of_another_machine_is_never_written_over() {
    let (folder, file) = place();
    file.save(&learnt("a"), NOW).expect("saved");
    let other = machine("Arc", "1");
    let theirs = learnt_on(&other, "b");
    let exported = folder.path().join("shared.toml");
    ProfileFile::at(&exported).save(&theirs, NOW).expect("saved");
    let here = Origin { machine: &other, software: SOFTWARE };
    let refused = [
        file.save(&theirs, NOW).map(|_| ()),
        file.save_anew(&theirs, NOW).map(|_| ()),
        file.replace(&theirs),
        file.import(&exported, here, NOW).map(|_| ()),
        file.forget_failures(here, None, NOW).map(|_| ()),
    ];
    for refused in refused {
        let error = refused.expect_err("it is of another machine");
        assert!(matches!(error, ProfileFileError::Occupied { .. }), "{error}");
        assert!(error.to_string().contains("RTX 5070") && error.to_string().contains("PLIMSOLL_PROFILE"), "{error}");
    }
    assert_eq!(whole(&file), learnt("a"));
    assert!(file.clear().expect("whoever asks for that means it"));
    file.save(&theirs, NOW).expect("nobody's place");
}

#[test]
fn each_machine_has_its_own_file_in_a_shared_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let machines = [home(), machine("RTX 5070", "590.0"), machine("Arc", "1"), machine("none", "")];
    let file = |machine: &Hardware| ProfileFile::of_machine_in(folder.path(), machine);
    for (at, machine) in machines.iter().enumerate() {
        assert!(file(machine).load(NOW).expect("readable").profile.is_none());
        file(machine).save(&learnt_on(machine, &format!("w{at}")), NOW).expect("saved");
    }
    for (at, machine) in machines.iter().enumerate() {
        let kept = whole(&file(machine));
        assert_eq!(kept.cells().map(|(key, _)| key.workload().to_owned()).collect::<Vec<_>>(), [format!("w{at}")]);
    }
    assert!(file(&home()).clear().expect("cleared"));
    assert!(whole(&file(&machines[2])).cell(&key("w2")).is_some(), "only one's own is cleared");
}

#[test]
fn what_this_machine_wrote_before_each_had_its_own_file_is_taken_over_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let common = ProfileFile::at(folder.path().join("profile.toml"));
    common.save(&learnt("before"), NOW).expect("saved");
    let other = machine("Arc", "1");
    ProfileFile::of_machine_in(folder.path(), &other).save(&learnt_on(&other, "b"), NOW).expect("saved");
    assert!(common.path().exists(), "it is not that machine's");

    let ours = of_home(folder.path());
    assert!(whole(&ours).cell(&key("before")).is_some());
    assert!(!common.path().exists());
    // An earlier version that is still in use begins a new one; it is left alone.
    common.save(&learnt("earlier version"), NOW).expect("saved");
    ours.save(&learnt("now"), NOW).expect("saved");
    assert!(whole(&ours).cell(&key("earlier version")).is_none() && common.path().exists());
    assert!(whole(&ours).cell(&key("before")).is_some() && whole(&ours).cell(&key("now")).is_some());
}

#[test]
fn what_is_taken_over_is_there_for_whatever_is_done_first() {
    let first: [fn(&ProfileFile, &Path); 3] = [
        |file, _| drop(file.save(&learnt("now"), NOW).expect("saved")),
        |file, folder| file.export(&folder.join("copy.toml"), NOW).expect("exported"),
        |file, _| assert!(file.clear().expect("cleared"), "there was something to clear"),
    ];
    for (at, act) in first.into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        ProfileFile::at(folder.path().join("profile.toml")).save(&learnt("before"), NOW).expect("saved");
        let ours = of_home(folder.path());
        act(&ours, folder.path());
        let found = ours.load(NOW).expect("readable").profile;
        assert_eq!(found.is_some_and(|profile| profile.cell(&key("before")).is_some()), at < 2);
    }
}

#[test]
fn a_damaged_common_file_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let common = folder.path().join("profile.toml");
    fs::write(&common, "hello").expect("written");
    of_home(folder.path()).save(&learnt("a"), NOW).expect("saved");
    assert_eq!(fs::read_to_string(&common).expect("it lies there"), "hello");
}

#[test]
fn the_files_are_bounded_and_the_oldest_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("profile-of-mine.toml");
    fs::write(&kept, "not one of ours").expect("written");
    let file = |at: usize| ProfileFile::of_machine_in(folder.path(), &machine(&format!("card {at}"), "1"));
    for at in 0..MACHINES_MAX + 3 {
        let path = file(at).path().to_owned();
        file(at).save(&learnt_on(&machine(&format!("card {at}"), "1"), "w"), NOW).expect("saved");
        // As if each had been written a day after the one before.
        let written = std::time::UNIX_EPOCH + Duration::from_secs(86_400 * (1 + at as u64));
        File::options().write(true).open(&path).and_then(|file| file.set_modified(written)).expect("dated");
        fs::write(suffixed(&file(at), ".corrupt"), "").expect("written");
    }
    let there: Vec<usize> = (0..MACHINES_MAX + 3).filter(|at| file(*at).path().exists()).collect();
    assert_eq!(there, (3..MACHINES_MAX + 3).collect::<Vec<_>>());
    assert!(!suffixed(&file(0), ".corrupt").exists() && kept.exists());
    let locks = fs::read_dir(folder.path()).expect("read").flatten();
    assert_eq!(locks.filter(|entry| entry.path().extension().is_some_and(|end| end == "lock")).count(), 1);
}

#[test]
fn what_was_measured_anew_takes_the_place_of_the_same_cells_only() {
    let (_folder, file) = place();
    let mut profile = learnt("a");
    learn(&mut profile, "b");
    let failed = |name: &str| FailedCell::out_of_memory(key(name), 10, Bytes(40), MemoryMoment::Run, SOFTWARE, NOW);
    for name in ["a", "b"] {
        profile.failures_mut().remember(failed(name).expect("it happened"));
    }
    file.save(&profile, NOW).expect("saved");
    let mut anew = empty();
    let mut cell = Cell::default();
    cell.learn_run(7, Nanos(7));
    anew.record(&key("a"), &mut cell, NOW);
    file.save_anew(&anew, NOW).expect("saved");
    let kept = whole(&file);
    assert_eq!(kept.cell(&key("a")).map(|cell| cell.sizes().count()), Some(1));
    assert_eq!(kept.cell(&key("b")), profile.cell(&key("b")));
    assert_eq!(kept.failures().iter().map(FailedCell::key).collect::<Vec<_>>(), [&key("b")]);
}

#[test]
fn failures_are_forgotten_and_figures_stay() {
    let (_folder, file) = place();
    let machine = home();
    let here = Origin { machine: &machine, software: SOFTWARE };
    assert_eq!(file.forget_failures(here, None, NOW).expect("nothing there"), 0);
    assert!(!file.path().parent().expect("a folder").exists(), "looking creates nothing");
    let mut profile = learnt("a");
    let failed = |name: &str| FailedCell::out_of_memory(key(name), 10, Bytes(40), MemoryMoment::Run, SOFTWARE, NOW);
    for name in ["a", "b"] {
        profile.failures_mut().remember(failed(name).expect("it happened"));
    }
    profile.failures_mut().remember_unsupported(UnsupportedCell::new(key("a"), "no f64", SOFTWARE, NOW));
    file.save(&profile, NOW).expect("saved");
    assert_eq!(whole(&file), profile, "all of it is written");
    assert_eq!(file.forget_failures(here, Some("a"), NOW).expect("forgotten"), 2);
    assert_eq!(whole(&file).failures().iter().map(FailedCell::key).collect::<Vec<_>>(), [&key("b")]);
    assert_eq!(file.forget_failures(here, None, NOW).expect("forgotten"), 1);
    assert_eq!(whole(&file), learnt("a"));
}
