//! `plimsoll serve`, `run`, `who`, `lease`, `why` and `events` as people use them, on a scripted machine.

#[path = "../shell/mod.rs"]
mod shell;

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use console::measure_text_width;
use plimsoll_daemon::client::Client;
use serde_json::{Value, json};
use shell::{Folder, stderr};

/// A daemon that shares one device of 1,000 MiB, and the folder it is in.
struct Shared {
    folder: Folder,
    daemon: Child,
}

impl Shared {
    fn new() -> Self {
        let folder = Folder::new();
        let script = "[[devices]]\nname = 'gpu0'\ncapacity = '1000MiB'\nin_book = 'card'\nuses_folder = 'uses'\n";
        folder.write("truth.toml", script.as_bytes());
        fs::create_dir(folder.at("uses")).unwrap();
        let daemon = Self::start(&folder);
        let shared = Self { folder, daemon };
        shared.until("the daemon", |shared| shared.state().is_some());
        shared
    }

    fn start(folder: &Folder) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["serve", "--truth", "truth.toml", "--http", "off", "--socket", "run/serve.sock"]);
        command.env("PLIMSOLL_BOOK", folder.at("book")).env_remove("PLIMSOLL_ALONE");
        command.current_dir(folder.0.path()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn restart(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
        self.daemon = Self::start(&self.folder);
    }

    fn shell(&self, line: &str) -> Output {
        self.folder.shell(&format!("export PLIMSOLL_SOCKET=$PWD/run/serve.sock; {line}"))
    }

    fn works(&self, line: &str) -> String {
        let output = self.shell(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn state(&self) -> Option<Value> {
        let output = self.shell("plimsoll who --json");
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    fn holders(&self) -> usize {
        let state = self.state().unwrap_or_default();
        let held = state["holders"].as_array().into_iter().flatten();
        held.filter(|holder| holder["sort"] == "lease" && holder["phase"] != "returning").count()
    }

    fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !holds(self) {
            assert!(Instant::now() < end, "{what} did not come: {:?}", self.state());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn spawn(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.arg("run").arg("--socket").arg(self.folder.at("run/serve.sock")).args(args);
        command.current_dir(self.folder.0.path()).stderr(Stdio::null()).spawn().unwrap()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

#[test]
fn a_command_runs_on_a_lease_and_ends_as_it_does() {
    let shared = Shared::new();
    let said = shared.works("plimsoll run --vram 600MiB -- sh -c 'echo $CUDA_VISIBLE_DEVICES $PLIMSOLL_LEASE_BYTES $PLIMSOLL_LEASE_DEVICES'");
    assert_eq!(said.trim(), "0 629145600 gpu0");
    assert_eq!(shared.shell("plimsoll run --vram 1MiB -- sh -c 'exit 7'").status.code(), Some(7));
    assert_eq!(shared.shell("plimsoll run --vram 1MiB -- sh -c 'kill -TERM $$'").status.code(), Some(128 + 15));
    let none = shared.shell("plimsoll run --vram 1MiB -- there-is-no-such-command");
    assert!(none.status.code() == Some(1) && stderr(&none).contains("cannot run"), "{}", stderr(&none));
    let never = shared.shell("plimsoll run --vram 2000MiB -- true");
    assert!(never.status.code() == Some(1) && stderr(&never).contains("never fits"), "{}", stderr(&never));
    shared.until("an empty book", |shared| shared.holders() == 0);
}

#[test]
fn without_a_daemon_it_says_so() {
    let folder = Folder::new();
    let none = folder.shell("plimsoll run --socket none --vram 1MiB -- true");
    assert!(none.status.code() == Some(1) && stderr(&none).contains("plimsoll serve"), "{}", stderr(&none));
    let alone = folder.works("plimsoll run --socket none --without-daemon --vram 1MiB -- echo alone");
    assert_eq!(String::from_utf8_lossy(&alone.stdout).trim(), "alone");
    assert!(stderr(&alone).contains("without a lease"));
    assert!(!folder.shell("plimsoll who --socket none").status.success());
}

#[test]
fn a_second_command_waits_for_the_first() {
    let shared = Shared::new();
    let mut first = shared.spawn(&["--vram", "700MiB", "--name", "first", "--", "sleep", "60"]);
    shared.until("the first", |shared| shared.holders() == 1);
    let mut second = shared.spawn(&["--vram", "700MiB", "--name", "second", "--", "touch", "ran"]);
    shared.until("a queue", |shared| shared.state().is_some_and(|state| state["queue"].as_array().unwrap().len() == 1));
    let who = shared.works("COLUMNS=80 plimsoll who");
    assert!(who.contains("first") && who.contains("second") && who.contains("700.0 MiB"), "{who}");
    assert!(who.lines().all(|line| line.chars().count() <= 80), "{who}");
    let why = shared.works("plimsoll why second");
    assert!(why.contains("first"), "{why}");
    assert!(!shared.folder.at("ran").exists());
    shared.works("plimsoll lease priority second high; plimsoll lease pin first; plimsoll lease unpin first");
    assert!(shared.works("plimsoll lease list").contains("first"));
    first.kill().unwrap();
    first.wait().unwrap();
    // The command runs on, and its lease with it.
    std::thread::sleep(Duration::from_millis(500));
    assert!(shared.holders() == 1 && !shared.folder.at("ran").exists(), "{:?}", shared.state());
    let pid = shared.state().unwrap()["holders"][0]["pid"].as_u64().unwrap();
    shared.works(&format!("kill -9 {pid}"));
    assert!(second.wait().unwrap().success());
    assert!(shared.folder.at("ran").exists());
    let events = shared.works("plimsoll events");
    assert!(events.contains("granted") && events.contains("its process has ended"), "{events}");
}

/// However many hold something, and whatever they are called: each has one line, and no line is too long.
#[test]
fn who_fits_eighty_columns_whoever_holds() {
    let shared = Shared::new();
    let socket = shared.folder.at("run/serve.sock");
    let who = || shared.works("COLUMNS=80 plimsoll who");
    assert!(who().contains("nobody holds anything"), "{}", who());
    let names = [
        "evil\u{1b}[31m\n    9  root\t\u{202e}x",
        "模型服务器 模型服务器 模型服务器 模型服务器 模型服务器 模型服务器",
        "python infer.py --model /models/large-instruct.Q4_K_M.gguf --port 8080",
    ];
    let ask = |name: &str, mib: u64| {
        let ladder = json!([{ "bytes": mib << 20 }]);
        let request = json!({ "name": name, "kind": "image", "priority": "low", "ladder": ladder, "pinned": true });
        (Client::connect(&socket).unwrap(), serde_json::from_value(request).unwrap())
    };
    let mut clients = Vec::new();
    for holders in [3, 200] {
        while clients.len() < holders {
            let (mut client, request) = ask(names[clients.len() % 3], 1);
            client.hold(request).unwrap();
            clients.push(client);
        }
        let (mut late, request) = ask(names[2], 948);
        late.lease(request).unwrap();
        let shown = who();
        let wide = |line: &&str| measure_text_width(line) > 80;
        assert_eq!(shown.lines().find(wide), None, "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        let rows = shown.lines().filter(|line| line.contains(" gpu0 ") && line.ends_with("100 % pinned"));
        assert_eq!(rows.count(), holders, "{shown}");
        assert!(shown.contains(&format!("{holders} leases: {holders}.0 MiB promised, ")), "{shown}");
        assert!(shown.contains("1 program waits") && shown.contains("it needs 948.0 MiB of gpu0"), "{shown}");
    }
    let events = shared.works("plimsoll events");
    let is_event = |line: &str| line.starts_with(|each: char| each.is_ascii_digit());
    assert!(events.lines().all(is_event), "a name adds no line: {events}");
}

#[test]
fn signals_reach_the_command() {
    let shared = Shared::new();
    let mut run = shared.spawn(&[
        "--vram",
        "10MiB",
        "--",
        "sh",
        "-c",
        "trap 'touch told; exit 3' TERM; while :; do sleep 0.1; done",
    ]);
    shared.until("its lease", |shared| shared.holders() == 1);
    shared.works(&format!("sleep 0.3; kill -TERM {}", run.id()));
    assert_eq!(run.wait().unwrap().code(), Some(3));
    assert!(shared.folder.at("told").exists());
}

#[test]
fn a_command_outlives_its_daemon_and_its_lease_does_too() {
    let mut shared = Shared::new();
    let mut run = shared.spawn(&["--vram", "700MiB", "--", "sh", "-c", "while [ ! -e enough ]; do sleep 0.1; done"]);
    shared.until("its lease", |shared| shared.holders() == 1);
    for _ in 0..3 {
        shared.restart();
        shared.until("the next daemon", |shared| shared.holders() == 1);
    }
    shared.folder.write("enough", b"");
    assert!(run.wait().unwrap().success());
    shared.until("an empty book", |shared| shared.holders() == 0);
}

#[test]
fn a_recall_runs_the_owners_command() {
    let shared = Shared::new();
    let mut low = shared.spawn(&[
        "--vram",
        "800MiB",
        "--min",
        "300MiB",
        "--priority",
        "normal",
        "--on-recall",
        "echo $PLIMSOLL_ASKED $PLIMSOLL_BYTES >> asked",
        "--",
        "sleep",
        "120",
    ]);
    shared.until("its lease", |shared| shared.holders() == 1);
    // It has to stay for a while before it is asked for less by one that is one level above.
    let mut high = shared.spawn(&["--vram", "600MiB", "--priority", "critical", "--", "touch", "ran"]);
    assert!(high.wait().unwrap().success());
    assert!(shared.folder.at("ran").exists());
    let asked = String::from_utf8(shared.folder.read("asked")).unwrap();
    assert!(asked.starts_with("step-down 314572800"), "{asked}");
    let _ = shared.shell(&format!("kill -TERM {}", low.id()));
    let _ = low.wait();
}

/// What can give back all that it has without ending goes on without a lease, and gets another one.
#[test]
fn a_command_leaves_its_memory_and_comes_back() {
    let mut shared = Shared::new();
    let mut low = shared.spawn(&[
        "--vram",
        "800MiB",
        "--priority",
        "low",
        "--name",
        "low",
        "--on-recall",
        "echo $PLIMSOLL_ASKED $PLIMSOLL_BYTES >> asked",
        "--",
        "sh",
        "-c",
        "while [ ! -e enough ]; do sleep 0.1; done",
    ]);
    let holds = |name: &'static str| {
        move |shared: &Shared| {
            let state = shared.state().unwrap_or_default();
            let mut held = state["holders"].as_array().into_iter().flatten();
            held.any(|holder| holder["name"] == name && holder["phase"] == "held")
        }
    };
    for round in 0..2 {
        shared.until("low's lease", holds("low"));
        let high = ["--vram", "800MiB", "--priority", "high", "--name", "high", "--", "sh", "-c"];
        let mut high =
            shared.spawn(&[&high[..], &[&format!("while [ ! -e end-{round} ]; do sleep 0.1; done")]].concat());
        shared.until("high's lease", holds("high"));
        assert!(low.try_wait().unwrap().is_none(), "it goes on");
        if round == 1 {
            // The next daemon knows nothing of who waited: it is asked again.
            shared.restart();
            shared.until("high's lease with the next daemon", holds("high"));
        }
        shared.folder.write(&format!("end-{round}"), b"");
        assert!(high.wait().unwrap().success());
    }
    shared.until("low's lease again", holds("low"));
    let asked = || String::from_utf8(shared.folder.read("asked")).unwrap();
    shared.until("the last word to low", |_| asked().lines().count() >= 4);
    assert_eq!(asked(), "leave 0\nrise 838860800\nleave 0\nrise 838860800\n");
    shared.folder.write("enough", b"");
    assert!(low.wait().unwrap().success());
    shared.until("an empty book", |shared| shared.holders() == 0);
}

#[test]
fn wrong_settings_are_shown_with_their_place() {
    let folder = Folder::new();
    folder.write("serve.toml", b"policy = 'adaptive'\nreserv = '1GiB'\n");
    let wrong = folder.shell("plimsoll serve --config serve.toml --socket run/s");
    assert!(
        wrong.status.code() == Some(1) && stderr(&wrong).contains("reserv") && stderr(&wrong).contains("line 2"),
        "{}",
        stderr(&wrong)
    );
    let open = folder.shell("plimsoll serve --http 0.0.0.0:0 --socket run/s");
    assert!(open.status.code() == Some(1) && stderr(&open).contains("127.0.0.1"), "{}", stderr(&open));
}

/// Whenever `plimsoll run` is killed: either its command does not run, or it has a lease as long as it does.
#[test]
fn no_command_runs_without_its_lease_whenever_run_is_killed() {
    let shared = Shared::new();
    let mut started = 0;
    for round in 0..40 {
        let command = format!("echo $$ > pid-{round}.new; mv pid-{round}.new pid-{round}; exec sleep 60");
        let mut run = shared.spawn(&["--vram", "20MiB", "--", "sh", "-c", &command]);
        std::thread::sleep(Duration::from_millis(round));
        run.kill().unwrap();
        run.wait().unwrap();
    }
    // Whatever was under way then has come to its end or to its lease.
    std::thread::sleep(Duration::from_secs(2));
    shared.until("right books", |shared| {
        let state = shared.state().unwrap_or_default();
        let holders = state["holders"].as_array().cloned().unwrap_or_default();
        let with_lease: Vec<u64> = holders.iter().filter_map(|holder| holder["pid"].as_u64()).collect();
        let running = pids(shared);
        running.iter().all(|pid| with_lease.contains(pid)) && with_lease.iter().all(|pid| running.contains(pid))
    });
    for pid in pids(&shared) {
        started += 1;
        shared.works(&format!("kill -9 {pid}"));
    }
    assert!(started > 0 && started < 40, "{started} of 40 commands ran: the kills came at all moments");
    shared.until("an empty book", |shared| shared.holders() == 0);
}

fn pids(shared: &Shared) -> Vec<u64> {
    let named = shared.folder.names().into_iter().filter(|name| name.starts_with("pid-") && !name.ends_with(".new"));
    named.map(|name| String::from_utf8(shared.folder.read(&name)).unwrap().trim().parse().unwrap()).collect()
}

#[test]
fn a_command_is_not_started_on_a_lease_that_is_over() {
    let shared = Shared::new();
    let held = shared.shell("PLIMSOLL_LEASE_SECRET=guess plimsoll hold --lease 1 -- touch ran");
    assert!(held.status.code() == Some(1) && stderr(&held).contains("no lease 1"), "{}", stderr(&held));
    let mut run = shared.spawn(&["--vram", "10MiB", "--", "sh", "-c", "env > seen; sleep 60"]);
    shared.until("its lease", |shared| shared.holders() == 1);
    let held = shared.shell("PLIMSOLL_LEASE_SECRET=guess plimsoll hold --lease 1 -- touch ran");
    assert!(held.status.code() == Some(1) && stderr(&held).contains("not the secret"), "{}", stderr(&held));
    let unset = shared.shell("plimsoll hold --lease 1 -- touch ran");
    assert!(unset.status.code() == Some(2) && stderr(&unset).contains("plimsoll run"), "{}", stderr(&unset));
    assert!(!shared.folder.at("ran").exists());
    shared.until("what it sees", |shared| shared.folder.at("seen").metadata().is_ok_and(|seen| seen.len() > 0));
    let seen = String::from_utf8(shared.folder.read("seen")).unwrap();
    assert!(seen.contains("PLIMSOLL_LEASE=1") && !seen.contains("SECRET"), "{seen}");
    shared.works(&format!("kill -TERM {}", run.id()));
    let _ = run.wait();
}

/// Both lie in the user's runtime folder unless somebody says otherwise, and each has its lock.
#[test]
fn a_daemon_and_the_book_share_a_folder() {
    let folder = Folder::new();
    folder.write("truth.toml", b"[[devices]]\nname = 'gpu0'\ncapacity = '1000MiB'\n");
    fs::create_dir(folder.at("runtime")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["serve", "--truth", "truth.toml", "--http", "off"]).current_dir(folder.0.path());
    for own in ["PLIMSOLL_BOOK", "PLIMSOLL_ALONE", "PLIMSOLL_SOCKET"] {
        command.env_remove(own);
    }
    let daemon = command.env("XDG_RUNTIME_DIR", folder.at("runtime")).stderr(Stdio::null()).spawn().unwrap();
    let _shared = Shared { folder: Folder::new(), daemon };
    let line = "export XDG_RUNTIME_DIR=$PWD/runtime; unset PLIMSOLL_ALONE PLIMSOLL_BOOK PLIMSOLL_SOCKET; ";
    let end = Instant::now() + Duration::from_secs(60);
    while !folder.shell(&format!("{line} plimsoll who")).status.success() {
        assert!(Instant::now() < end, "the daemon did not come");
    }
    folder.write("small.ppm", &[b"P6 8 8 255\n".as_slice(), &[9; 192]].concat());
    let scored = folder.works(&format!("{line} plimsoll score --no-gpu -m psnr small.ppm small.ppm"));
    assert!(!stderr(&scored).contains("warning"), "{}", stderr(&scored));
}
