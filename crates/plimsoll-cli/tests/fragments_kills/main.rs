//! `plimsoll fragments` killed before every single step that it takes on a disk: the store is whole, what had a name keeps it,
//! and what was fetched is not fetched again.
#![cfg(target_os = "linux")]

mod traced;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use plimsoll_fragments::Digest;
use plimsoll_fragments::file::FragmentFile;
use plimsoll_fragments::http::{Origin, PullWatch, Server, pull, pull_index};
use plimsoll_fragments::store::{DiskStore, StoreLimits};
use tempfile::TempDir;

use traced::Run;

/// Steps of one run at most: more are no small model any more, and the test would take minutes.
const STEPS_MAX: u64 = 400;

fn plimsoll(words: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(words).current_dir(folder).env("PLIMSOLL_ALONE", "1");
    command.env("PLIMSOLL_PROFILE", folder.join(".profile.toml"));
    command
}

/// A model of two tensors, one of which is quantised, packed at two levels and exact.
fn packed(folder: &Path, name: &str, from: u32) -> PathBuf {
    let weights: Vec<u8> = (from..from + 20_000).flat_map(|n| ((n as f32) * 0.11).sin().to_le_bytes()).collect();
    let (all, large) = (weights.len(), weights.len() - 400);
    let header = format!(
        "{{\"w\":{{\"dtype\":\"F32\",\"shape\":[19900],\"data_offsets\":[0,{large}]}},\
         \"b\":{{\"dtype\":\"F32\",\"shape\":[100],\"data_offsets\":[{large},{all}]}}}}"
    );
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &weights].concat();
    fs::write(folder.join(format!("{name}.safetensors")), file).unwrap();
    let words = ["fragments", "pack", "-q", "--levels", "3,8", &format!("{name}.safetensors")];
    assert!(plimsoll(&words, folder).status().unwrap().success());
    folder.join(format!("{name}.frags"))
}

/// Our own server of these files, until it is dropped.
struct Serving {
    address: String,
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Serving {
    fn of(files: &[&Path]) -> Self {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), files).unwrap();
        let (address, is_over) = (server.address().unwrap().to_string(), Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || server.run(|| over.load(Ordering::Relaxed)).unwrap());
        Self { address, is_over, thread: Some(thread) }
    }

    fn url(&self, name: &str) -> String {
        format!("http://{}/{name}.frags", self.address)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Every fragment that has a name, by that name.
fn named(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for folder in fs::read_dir(store.join("objects")).into_iter().flatten().flatten() {
        for file in fs::read_dir(folder.path()).unwrap().flatten() {
            let name = folder.file_name().to_string_lossy().into_owned() + &file.file_name().to_string_lossy();
            all.insert(name, fs::read(file.path()).unwrap());
        }
    }
    all
}

/// What has a name is what that says, and every part is a beginning of what it will be.
#[track_caller]
fn is_whole(store: &Path, file: &FragmentFile) {
    for (name, bytes) in named(store) {
        assert_eq!(Digest::of(&bytes).to_string(), name, "a name that lies");
    }
    for part in fs::read_dir(store.join("partial")).into_iter().flatten().flatten() {
        let name = part.file_name().to_string_lossy().into_owned();
        let fragments = file.model().index.fragments_for(1.0);
        let Some(fragment) = fragments.iter().find(|fragment| name.starts_with(&fragment.digest.to_string())) else {
            continue;
        };
        assert!(file.read(fragment).unwrap().starts_with(&fs::read(part.path()).unwrap()), "half of something else");
    }
}

/// Bytes of the fragments of a file that lie in the store, whole or in part.
fn there(store: &Path, file: &FragmentFile) -> u64 {
    let bytes = |fragment: &plimsoll_fragments::index::Fragment| {
        let name = fragment.digest.to_string();
        let object = fs::metadata(store.join("objects").join(&name[..2]).join(&name[2..]));
        let part = || fs::metadata(store.join("partial").join(name.clone() + ".part"));
        object.or_else(|_| part()).map_or(0, |facts| facts.len())
    };
    file.model().index.fragments_for(1.0).iter().map(bytes).sum()
}

/// Goes on where the killed one was: everything is there in the end, nothing that had a name has gone, and not a byte that
/// lay there is fetched again.
#[track_caller]
fn goes_on(root: &Path, url: &str, file: &FragmentFile, limits: StoreLimits) {
    let (before, lay_there) = (named(root), there(root, file));
    let store = DiskStore::open(root, limits).unwrap();
    store.recall(url).expect("a model that is remembered is whole");
    let (origin, watch) = (Origin::open(url).unwrap(), PullWatch::default());
    let model = pull_index(&store, &origin, &watch).unwrap();
    let wanted = model.index.fragments_for(1.0);
    let pulled = pull(&store, &origin, &wanted, &watch).unwrap();
    assert_eq!(pulled.fetched + lay_there, pulled.bytes, "bytes that lay there were fetched again");
    for fragment in &wanted {
        assert_eq!(store.read(fragment).unwrap().unwrap(), file.read(fragment).unwrap());
    }
    let after = named(root);
    let has_all = |of: &BTreeMap<String, Vec<u8>>| before.keys().all(|name| of.contains_key(name));
    assert!(limits.bytes.is_some() || has_all(&after), "something lost its name");
    assert_eq!(fs::read_dir(root.join("partial")).unwrap().count(), 0, "nothing is left half");
    store.make_room(0, &HashSet::new()).unwrap();
    assert_eq!(fs::read_dir(root.join("wants")).unwrap().count(), 0, "nothing stays promised to the dead");
}

fn pull_command(folder: &Path, url: &str, limit: Option<u64>) -> Command {
    let mut command = plimsoll(&["fragments", "pull", "-q", "--store", "store", "--disk-reserve", "0"], folder);
    command.args(limit.map(|limit| format!("--store-limit={limit}"))).arg(url);
    command
}

#[test]
fn a_pull_is_killed_before_each_of_its_steps() {
    let folder = TempDir::new().unwrap();
    let path = packed(folder.path(), "model", 0);
    let (file, serving) = (FragmentFile::open(&path).unwrap(), Serving::of(&[&path]));
    let url = serving.url("model");
    let root = folder.path().join("store");
    let mut killed = 0;
    for step in 1..=STEPS_MAX {
        let _ = fs::remove_dir_all(&root);
        let run = traced::run(&mut pull_command(folder.path(), &url, None), folder.path(), Some(step));
        is_whole(&root, &file);
        goes_on(&root, &url, &file, StoreLimits { bytes: None, reserve: 0 });
        if let Run::Ended { steps, code } = run {
            assert_eq!(code, 0);
            println!("{steps} steps, killed before each");
            assert!(killed + 1 >= step && steps > 30, "{steps} steps are fewer than a pull takes");
            return;
        }
        killed = step;
    }
    panic!("more than {STEPS_MAX} steps: make the model smaller");
}

/// An older model has to go for a newer one: removing is killed as well.
#[test]
fn a_pull_that_makes_room_is_killed_before_each_of_its_steps() {
    let folder = TempDir::new().unwrap();
    let (old, new) = (packed(folder.path(), "old", 0), packed(folder.path(), "new", 50_000));
    let (old_file, new_file) = (FragmentFile::open(&old).unwrap(), FragmentFile::open(&new).unwrap());
    let serving = Serving::of(&[&old, &new]);
    let root = folder.path().join("store");
    let limit = fs::metadata(&new).unwrap().len() * 5 / 4;
    let limits = StoreLimits { bytes: Some(limit), reserve: 0 };
    let mut has_made_room = false;
    for step in 1..=STEPS_MAX {
        let _ = fs::remove_dir_all(&root);
        goes_on(&root, &serving.url("old"), &old_file, limits);
        let before = named(&root).len();
        let run =
            traced::run(&mut pull_command(folder.path(), &serving.url("new"), Some(limit)), folder.path(), Some(step));
        has_made_room |= named(&root).len() < before;
        is_whole(&root, &new_file);
        goes_on(&root, &serving.url("new"), &new_file, limits);
        assert!(DiskStore::open(&root, limits).unwrap().held() <= limit);
        if let Run::Ended { steps, code } = run {
            assert_eq!(code, 0);
            println!("{steps} steps, killed before each");
            assert!(has_made_room, "no kill came while room was made");
            return;
        }
    }
    panic!("more than {STEPS_MAX} steps: make the models smaller");
}

/// Killed again and again after a few steps, it gets there all the same.
#[test]
fn a_pull_that_is_killed_again_and_again_gets_there() {
    let folder = TempDir::new().unwrap();
    let path = packed(folder.path(), "model", 0);
    let (file, serving) = (FragmentFile::open(&path).unwrap(), Serving::of(&[&path]));
    let root = folder.path().join("store");
    let mut before = 0;
    for runs in 1..=STEPS_MAX {
        let run = traced::run(&mut pull_command(folder.path(), &serving.url("model"), None), folder.path(), Some(30));
        is_whole(&root, &file);
        assert!(there(&root, &file) >= before, "what lay there has gone");
        before = there(&root, &file);
        if let Run::Ended { code, .. } = run {
            assert_eq!(code, 0);
            println!("there after {runs} runs");
            assert!(runs > 1, "it was never killed");
            return goes_on(&root, &serving.url("model"), &file, StoreLimits { bytes: None, reserve: 0 });
        }
    }
    panic!("it never gets there");
}

/// A file of fragments has its name when it is whole, and not before.
#[test]
fn packing_is_killed_before_each_of_its_steps() {
    let folder = TempDir::new().unwrap();
    let whole = fs::read(packed(folder.path(), "model", 0)).unwrap();
    let words = ["fragments", "pack", "-q", "--levels", "3,8", "-o", "again.frags", "model.safetensors"];
    for step in 1..=STEPS_MAX {
        let _ = fs::remove_file(folder.path().join("again.frags"));
        let run = traced::run(&mut plimsoll(&words, folder.path()), folder.path(), Some(step));
        match fs::read(folder.path().join("again.frags")) {
            Ok(bytes) => assert!(bytes == whole, "half a file got its name"),
            Err(_) => assert_eq!(run, Run::Killed),
        }
        if let Run::Ended { steps, code } = run {
            assert_eq!(code, 0);
            println!("{steps} steps, killed before each");
            assert!(steps > 5, "{steps} steps are fewer than packing takes");
            return;
        }
    }
    panic!("more than {STEPS_MAX} steps: make the model smaller");
}
