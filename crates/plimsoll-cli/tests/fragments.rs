//! `plimsoll fragments` as people and programs use it: round trips, servers, kills, damage, and every way it ends.

mod shell;
#[path = "../../plimsoll-fragments/tests/weights/mod.rs"]
#[allow(dead_code, reason = "plain quantisers are compared with elsewhere")]
mod weights;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use shell::{Folder, stderr};
use weights::Kind;

/// A model of these many weights, in two tensors and a small one.
fn model(folder: &Folder, weights: usize) -> Vec<u8> {
    let bytes =
        |kind: Kind, count, seed| kind.weights(count, seed).iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let tensors = [
        ("up", bytes(Kind::HeavyTails, weights / 2, 1)),
        ("down", bytes(Kind::OutlierChannels, weights / 2, 2)),
        ("norm", bytes(Kind::Gaussian, 64, 3)),
    ];
    let (mut end, mut entries) = (0, Vec::new());
    for (name, bytes) in &tensors {
        entries.push(format!(
            "{name:?}:{{\"dtype\":\"F32\",\"shape\":[{}],\"data_offsets\":[{end},{}]}}",
            bytes.len() / 4,
            end + bytes.len()
        ));
        end += bytes.len();
    }
    let header = format!("{{{}}}", entries.join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    tensors.iter().for_each(|(_, bytes)| file.extend_from_slice(bytes));
    folder.write("model.safetensors", &file);
    file
}

fn json(folder: &Folder, line: &str) -> Value {
    serde_json::from_slice(&folder.works(line).stdout).unwrap()
}

/// A server in a process of its own, until it is dropped.
struct Serving(Child, String);

impl Serving {
    fn of(path: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["fragments", "serve", "--json", "--listen", "127.0.0.1:0"])
            .arg(path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Self(child, said["urls"][0].as_str().unwrap().to_owned())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_model_goes_there_and_back() {
    let folder = Folder::new();
    let file = model(&folder, 200_000);
    let said = folder.works("plimsoll fragments pack model.safetensors");
    assert!(String::from_utf8_lossy(&said.stdout).contains("model.frags: 3 tensors"));
    folder.works("plimsoll fragments restore model.frags -o again.safetensors");
    assert!(folder.read("again.safetensors") == file, "the very bytes");
    let info = folder.works("plimsoll fragments info model.frags");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("2 bits") && info.contains("exact"), "{info}");
    // What it says of each tensor is what is measured in what it restores.
    let told = json(&folder, "plimsoll fragments info --tensors --json model.frags");
    folder.works("plimsoll fragments restore model.frags --quality 0.9 -o small.safetensors");
    let small = folder.read("small.safetensors");
    assert_eq!(small.len(), file.len());
    let data = file.len() - 4 * 200_064;
    for (tensor, at) in [(0, 0), (1, 100_000)] {
        let floats = |bytes: &[u8]| -> Vec<f64> {
            let bytes = &bytes[data + 4 * at..data + 4 * (at + 100_000)];
            bytes.as_chunks::<4>().0.iter().map(|four| f64::from(f32::from_le_bytes(*four))).collect()
        };
        let (was, is) = (floats(&file), floats(&small));
        let squares: f64 = was.iter().map(|x| x * x).sum();
        let off: f64 = was.iter().zip(&is).map(|(a, b)| (a - b) * (a - b)).sum();
        let error = (off / squares).sqrt();
        let stated = told["tensors"][tensor]["errors"].as_array().unwrap().iter().map(|error| error.as_f64().unwrap());
        let stated = stated.into_iter().find(|error| *error <= 0.1).unwrap();
        assert!((error - stated).abs() < 1e-9 * stated, "{error} is measured, {stated} is stated");
    }
    assert_eq!(folder.names().iter().filter(|name| name.contains(".part")).count(), 0);
}

#[test]
fn the_output_does_not_depend_on_the_threads() {
    let folder = Folder::new();
    model(&folder, 100_000);
    folder.works("plimsoll fragments pack model.safetensors -j 1 -q && cp model.frags one.frags");
    folder.works("plimsoll fragments pack model.safetensors -j 4 -q --force && cmp model.frags one.frags");
    folder.works("plimsoll fragments pack model.safetensors --levels 4,8 --no-exact -q -o small.frags");
    let told = json(&folder, "plimsoll fragments info --json small.frags");
    assert_eq!(told["levels"].as_array().unwrap().len(), 2);
}

#[test]
fn what_goes_wrong_is_said_and_leaves_nothing() {
    let folder = Folder::new();
    model(&folder, 40_000);
    folder.works("plimsoll fragments pack model.safetensors -q");
    let fails = |line: &str, code: i32, says: &str| {
        let output = folder.shell(line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{line}: {}", stderr(&output));
    };
    fails("plimsoll fragments pack model.safetensors", 1, "there already");
    fails("plimsoll fragments pack model.frags -o x.frags", 1, "not a safetensors file");
    fails("plimsoll fragments info model.safetensors", 1, "fragments pack");
    fails("plimsoll fragments info nothing.frags", 1, "nothing.frags");
    let told = stderr(&folder.shell("plimsoll fragments info nothing.frags"));
    assert_eq!(told.matches("os error").count(), 1, "a cause is told once: {told}");
    fails("plimsoll fragments restore model.frags --quality 2 -o x", 2, "from 0 to 1");
    fails("plimsoll fragments pack model.safetensors --levels 9 -o x", 2, "rising numbers");
    fails("plimsoll fragments pull model.frags", 2, "needs no pull");
    fails("plimsoll fragments pull http://127.0.0.1:9/model.frags --store s", 1, "127.0.0.1:9");
    let says = if cfg!(feature = "https") { "127.0.0.1:9" } else { "the feature `https`" };
    fails("plimsoll fragments pull https://127.0.0.1:9/model.frags --store s", 1, says);
    fails("plimsoll fragments restore model.frags -o /dev/full/x", 1, "/dev/full/x");
    fails("plimsoll fragments serve model.frags model.frags", 1, "another file is served");
    let mut bytes = folder.read("model.frags");
    bytes[5_000] ^= 1;
    folder.write("damaged.frags", &bytes);
    fails("plimsoll fragments restore damaged.frags -o x.safetensors", 1, "damaged");
    let left: Vec<String> =
        folder.names().into_iter().filter(|name| name.starts_with("x") || name.contains(".part")).collect();
    assert!(left.is_empty(), "{left:?}");
    // A disk that is full while it is written.
    fails("ulimit -f 40; trap '' XFSZ; plimsoll fragments pack model.safetensors -q -o y.frags", 1, "y.frags");
    assert!(!folder.at("y.frags").exists() && !folder.names().iter().any(|name| name.contains(".part")));
}

/// Killed at any moment, the next one goes on: hardly a byte is fetched twice, and the model is whole.
#[test]
fn a_killed_pull_goes_on() {
    let folder = Folder::new();
    let file = model(&folder, 6_000_000);
    folder.works("plimsoll fragments pack model.safetensors -q");
    let serving = Serving::of(&folder.at("model.frags"));
    let all = fs::metadata(folder.at("model.frags")).unwrap().len();
    let held = || -> u64 {
        let below = |name: &str| walk(&folder.at("store").join(name));
        below("objects") + below("partial")
    };
    let mut kills = 0;
    for share in 1..6 {
        let line = format!("plimsoll fragments pull -q --store store --disk-reserve 0 {}", serving.1);
        let mut child = Command::new("bash")
            .args(["-c", &format!("exec {}", line.replace("plimsoll", env!("CARGO_BIN_EXE_plimsoll")))])
            .current_dir(folder.0.path())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let until = all * share / 7;
        while held() < until && begun.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        kills += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(kills > 0, "it was too quick to be killed: make the model larger");
    let before = held();
    let last = json(&folder, &format!("plimsoll fragments pull --json --store store --disk-reserve 0 {}", serving.1));
    let fetched = last["fetched_bytes"].as_u64().unwrap();
    assert!(before > all / 8, "what came before a kill stays");
    assert!(fetched + before <= all + (1 << 20), "{fetched} were fetched though {before} of {all} were there");
    folder.works(&format!(
        "plimsoll fragments restore --store store --disk-reserve 0 {} -q -o again.safetensors",
        serving.1
    ));
    assert!(folder.read("again.safetensors") == file);
    // And without its server, from what is in the store.
    let url = serving.1.clone();
    drop(serving);
    let output = folder
        .works(&format!("plimsoll fragments restore --store store --disk-reserve 0 {url} -q -o alone.safetensors"));
    assert!(stderr(&output).contains("does not answer"));
    assert!(folder.read("alone.safetensors") == file);
}

fn walk(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    entries
        .flatten()
        .map(
            |entry| {
                if entry.path().is_dir() {
                    walk(&entry.path())
                } else {
                    entry.metadata().map_or(0, |facts| facts.len())
                }
            },
        )
        .sum()
}

#[test]
fn three_processes_fetch_each_byte_once() {
    let folder = Folder::new();
    let file = model(&folder, 4_000_000);
    folder.works("plimsoll fragments pack model.safetensors -q");
    let serving = Serving::of(&folder.at("model.frags"));
    let pull =
        |n: u32| format!("plimsoll fragments pull --json --store store --disk-reserve 0 {} > {n}.json", serving.1);
    folder.works(&format!("{} & {} & {} & wait", pull(1), pull(2), pull(3)));
    let said: Vec<Value> =
        (1..=3).map(|n| serde_json::from_slice(&folder.read(&format!("{n}.json"))).unwrap()).collect();
    let fetched: u64 = said.iter().map(|said| said["fetched_bytes"].as_u64().unwrap()).sum();
    assert_eq!(fetched, said[0]["bytes"].as_u64().unwrap(), "{said:?}");
    folder.works(&format!(
        "plimsoll fragments restore --store store --disk-reserve 0 {} -q -o again.safetensors",
        serving.1
    ));
    assert!(folder.read("again.safetensors") == file);
}

#[test]
fn a_store_with_a_limit_says_when_it_is_full() {
    let folder = Folder::new();
    model(&folder, 400_000);
    folder.works("plimsoll fragments pack model.safetensors -q");
    let serving = Serving::of(&folder.at("model.frags"));
    let output = folder.shell(&format!("plimsoll fragments pull --store store --store-limit 100KiB {}", serving.1));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no room"), "{}", stderr(&output));
    folder.works(&format!(
        "plimsoll fragments pull --quality 0.3 --store store --disk-reserve 0 --store-limit 300KiB {}",
        serving.1
    ));
}

/// Two processes fetch two models into a store that has room for one: at no moment does it hold more than it may, one of them
/// gets there, and the other one does or says why not.
#[test]
fn two_processes_keep_one_limit() {
    let folder = Folder::new();
    for (name, weights) in [("a", 1_000_000), ("b", 1_200_000)] {
        model(&folder, weights);
        folder.works(&format!("plimsoll fragments pack model.safetensors -q --no-exact -o {name}.frags"));
    }
    let [a, b] = ["a.frags", "b.frags"].map(|name| Serving::of(&folder.at(name)));
    let limit = fs::metadata(folder.at("b.frags")).unwrap().len() * 5 / 4;
    for round in 0..4 {
        let _ = fs::remove_dir_all(folder.at("store"));
        let pull = |serving: &Serving| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
            command.args(["fragments", "pull", "-q", "--store", "store", "--disk-reserve", "0"]);
            command.arg(format!("--store-limit={limit}")).arg(&serving.1).current_dir(folder.0.path());
            command.env("PLIMSOLL_ALONE", "1").stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut pulls = [pull(&a), pull(&b)];
        let mut most = 0;
        while pulls.iter_mut().any(|pull| pull.try_wait().unwrap().is_none()) {
            most = most.max(walk(&folder.at("store/objects")) + walk(&folder.at("store/partial")));
        }
        assert!(most <= limit, "round {round}: {most} of {limit}");
        let ended = pulls.map(|pull| pull.wait_with_output().unwrap());
        assert!(ended.iter().any(|output| output.status.success()), "round {round}: {ended:?}");
        for output in ended.iter().filter(|output| !output.status.success()) {
            assert!(stderr(output).contains("no room"), "round {round}: {}", stderr(output));
        }
    }
}

#[test]
fn an_address_where_nobody_serves_is_said_to_be_one() {
    let folder = Folder::new();
    // A port that was just free.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = folder.shell(&format!("plimsoll fragments pull http://127.0.0.1:{port}/model.frags"));
    assert_eq!(nobody.status.code(), Some(1));
    assert!(stderr(&nobody).contains("nobody serves there"), "{}", stderr(&nobody));
}

#[test]
fn the_environment_names_the_store_unless_it_is_empty() {
    let folder = Folder::new();
    model(&folder, 4_096);
    folder.works("plimsoll fragments pack model.safetensors");
    let serving = Serving::of(&folder.at("model.frags"));
    let pull = format!("plimsoll fragments pull {}", serving.1);
    folder.works(&format!("PLIMSOLL_FRAGMENTS=$PWD/named {pull}"));
    assert!(fs::read_dir(folder.at("named")).unwrap().count() > 0);
    folder.works(&format!("PLIMSOLL_FRAGMENTS= XDG_CACHE_HOME=$PWD/usual {pull}"));
    assert!(fs::read_dir(folder.at("usual")).unwrap().count() > 0);
}
