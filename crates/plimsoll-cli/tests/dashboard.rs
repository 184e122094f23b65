//! The daemon's dashboard in a real browser: holders appear, a preemption is seen, names are text, nothing is complained of.
//! Needs Chromium, Node and playwright-core, which `cargo xtask test` finds or installs; without them it fails.
#![cfg(unix)]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use plimsoll_daemon::client::Client;
use plimsoll_daemon::wire::{Granted, LeaseId, LeaseRequest, Rung, Say, Urgency};

const GIB: u64 = 1 << 30;
/// How long anything may take here before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// As many as a busy machine may have.
const MANY: usize = 200;

/// A daemon with one scripted card of 24 GiB. It goes with the test.
struct Daemon {
    process: Child,
    socket: PathBuf,
    url: String,
    token: String,
    _said: BufReader<ChildStderr>,
    _folder: tempfile::TempDir,
}

impl Daemon {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("truth.toml");
        fs::write(&script, "[[devices]]\nname = \"gpu0\"\ncard = \"A scripted card\"\ncapacity = \"24GiB\"\n")
            .expect("a script");
        let socket = folder.path().join("run/daemon.sock");
        let mut serve = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        serve.args(["serve", "--http", "127.0.0.1:0", "--socket"]).arg(&socket).arg("--truth").arg(&script);
        serve.env("PLIMSOLL_BOOK", folder.path().join("book"));
        let mut process = serve.stderr(Stdio::piped()).spawn().expect("the daemon starts");
        let mut said = BufReader::new(process.stderr.take().expect("its words"));
        let mut find = |title: &str| {
            let mut line = String::new();
            while !line.contains(title) {
                line.clear();
                assert!(said.read_line(&mut line).expect("words") > 0, "the daemon ended without a {title}");
            }
            line.split_whitespace().last().expect("a value").to_owned()
        };
        let url = find("dashboard");
        let token = fs::read_to_string(find("token")).expect("the token's file").trim().to_owned();
        Self { process, socket, url, token, _said: said, _folder: folder }
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket).expect("the daemon serves")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn lease(name: &str, priority: Urgency, bytes: u64) -> LeaseRequest {
    serde_json::from_value(serde_json::json!({
        "name": name,
        "priority": priority,
        "ladder": [Rung { bytes, quality: 1.0, switch_ms: 0 }],
        "devices": ["gpu0"],
        "timeout_ms": 60_000,
    }))
    .expect("a request")
}

fn number(said: &Say) -> LeaseId {
    match said {
        Say::Granted(Granted { lease, .. }) => *lease,
        Say::Queued(queued) => queued.lease,
        other => panic!("neither granted nor queued: {other:?}"),
    }
}

fn tool(variable: &str) -> OsString {
    env::var_os(variable).unwrap_or_else(|| {
        panic!("{variable} is not set: this test needs a browser. `cargo xtask test test` installs what is missing and sets it")
    })
}

/// Where pictures of the page lie afterwards, for people to look at.
fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

#[test]
fn people_see_who_holds_what_and_who_has_to_leave() {
    let daemon = Daemon::start();
    let [browser, modules] = ["PLIMSOLL_BROWSER", "NODE_PATH"].map(tool);
    let with_token = format!("{}/#token={}", daemon.url, daemon.token);
    let mut node = Command::new("node");
    node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard.cjs"));
    node.arg(pictures()).args([&daemon.url, &with_token]);
    node.env("PLIMSOLL_BROWSER", which(browser)).env("NODE_PATH", modules);
    node.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().expect("node starts; `cargo xtask test test` installs it");
    let mut answers = node.stdin.take().expect("a pipe");
    let mut background = daemon.client();
    let mut urgent = daemon.client();
    let mut many = daemon.client();
    let (mut first, mut second) = (None, None);
    for word in BufReader::new(node.stdout.take().expect("a pipe")).lines() {
        match word.expect("a word").as_str() {
            "background" => {
                let name = "<img src=x onerror=document.title='owned'>";
                first = Some(number(&background.lease(lease(name, Urgency::Background, 16 * GIB)).expect("room")));
            }
            "critical" => {
                second = Some(number(&urgent.lease(lease("urgent", Urgency::Critical, 12 * GIB)).expect("a place")));
            }
            "leave" => {
                background.give_back(first.expect("a lease")).expect("it is given back");
                let granted = urgent.wait_for(second.expect("a lease"), Some(PATIENCE)).expect("an answer");
                assert_eq!(granted.expect("it is given in time").bytes, 12 * GIB);
            }
            "many" => {
                for at in 0..MANY {
                    number(&many.lease(lease(&format!("small {at}"), Urgency::Normal, 1 << 20)).expect("room"));
                }
            }
            other => panic!("the page's test says {other}"),
        }
        answers.write_all(b"done\n").expect("the page's test listens");
    }
    assert!(node.wait().expect("node ends").success(), "see what it said above");
}

/// A program's path: the driver of the browser wants one.
fn which(program: OsString) -> OsString {
    let paths = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&paths).map(|folder| folder.join(&program)).find(|path| path.is_file());
    found.map_or(program, PathBuf::into_os_string)
}
