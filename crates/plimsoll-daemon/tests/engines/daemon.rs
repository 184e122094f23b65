//! The whole daemon with fake engines as processes of their own and a scripted driver: what engines hold is a lease, what
//! is asked back comes back or is said not to, and the gate lets requests through when there is room.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use plimsoll::book::Book;
use plimsoll_core::Bytes;
use plimsoll_daemon::broker::Settings;
use plimsoll_daemon::client::Client;
use plimsoll_daemon::engines::config::{EngineConfig, GateConfig};
use plimsoll_daemon::engines::keeper::EngineOptions;
use plimsoll_daemon::engines::{CommandStep, CommandSteps, EngineKind};
use plimsoll_daemon::server::{ServeOptions, serve};
use plimsoll_daemon::size::Size;
use plimsoll_daemon::truth::scripted::Scripted;
use plimsoll_daemon::truth::{DeviceTruth, Truth, TruthError};
use plimsoll_daemon::wire::{Holder, Kind, LeaseRequest, Phase, Rung, Say, Sort, State, Urgency};

use crate::fakes::MIB;

const PATIENCE: Duration = Duration::from_secs(60);

struct Engine {
    process: Child,
    port: u16,
    uses: PathBuf,
}

impl Engine {
    fn start(kind: EngineKind, orders: &str, folder: &Path) -> Self {
        let uses = folder.join("uses");
        std::fs::create_dir_all(&uses).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_daemon-part"))
            .arg("engine")
            .arg(&uses)
            .args([kind.name(), orders])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| line.split_once("port ")?.1.trim().parse().ok());
        let uses = uses.join(process.id().to_string());
        Self { port: port.expect("the engine's port"), process, uses }
    }

    /// What its driver shows.
    fn held(&self) -> u64 {
        std::fs::read_to_string(&self.uses).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Its figures are old when they come.
struct SlowDriver(Scripted);

impl Truth for SlowDriver {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn read(&mut self) -> Result<Vec<DeviceTruth>, TruthError> {
        let said = self.0.read();
        std::thread::sleep(Duration::from_millis(700));
        said
    }
}

struct Daemon {
    folder: tempfile::TempDir,
    gates: Vec<SocketAddr>,
}

impl Daemon {
    /// A card of 2000 MiB whose driver tells processes apart.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let script = "[[devices]]\nname = 'gpu0'\ncapacity = '2000MiB'\nuses_folder = 'uses'\n";
        std::fs::write(folder.path().join("truth.toml"), script).unwrap();
        folder
    }

    fn start(folder: tempfile::TempDir, engines: Vec<EngineConfig>, gates: Vec<GateConfig>) -> Self {
        let source = Scripted::new(&folder.path().join("truth.toml"));
        Self::start_with(Box::new(source), folder, engines, gates)
    }

    fn start_with(
        source: Box<dyn Truth>,
        folder: tempfile::TempDir,
        engines: Vec<EngineConfig>,
        gates: Vec<GateConfig>,
    ) -> Self {
        let own = folder.path().join("run");
        let options = ServeOptions {
            socket: own.join("socket"),
            http: None,
            settings: Settings::default(),
            sources: vec![source],
            period: Duration::from_millis(100),
            engines: EngineOptions { engines, gates, discover: false },
            book: Some(Book::at(folder.path().join("book"))),
        };
        let (tell, told) = mpsc::channel();
        // It serves until the process of the test ends.
        std::thread::spawn(move || {
            if let Err(error) = serve(options, |ready| tell.send(ready.gates.clone()).unwrap()) {
                panic!("the daemon does not serve: {error}");
            }
        });
        let gates: Vec<(SocketAddr, String)> = told.recv_timeout(PATIENCE).expect("the daemon serves");
        let gates = gates.into_iter().map(|(address, _)| address).collect();
        Self { folder, gates }
    }

    fn client(&self) -> Client {
        Client::connect(&self.folder.path().join("run/socket")).unwrap()
    }

    fn state(&self) -> State {
        self.client().state().unwrap()
    }

    fn engines(&self) -> Vec<Holder> {
        self.state().holders.into_iter().filter(|holder| holder.sort == Sort::Engine).collect()
    }

    fn events(&self) -> String {
        self.client().events(0).unwrap().iter().map(|event| format!("{} {}\n", event.what, event.text)).collect()
    }
}

fn until<T>(what: &str, daemon: &Daemon, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {:#?}\n{}", daemon.state(), daemon.events());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn config(kind: EngineKind, engine: &Engine) -> EngineConfig {
    EngineConfig { port: Some(engine.port), ..EngineConfig::new(kind) }
}

fn wants(name: &str, priority: Urgency, mib: u64) -> LeaseRequest {
    LeaseRequest {
        name: name.to_owned(),
        kind: Kind::Image,
        priority,
        ladder: vec![Rung { bytes: mib * MIB, quality: 1.0, switch_ms: 0 }],
        devices: vec!["gpu0".to_owned()],
        timeout_ms: Some(60_000),
        pinned: false,
        may_be_stopped: false,
        batch_items: 0,
        pid: None,
        ttl_ms: None,
    }
}

fn granted_within(client: &mut Client, said: Say, within: Duration) -> bool {
    match said {
        Say::Granted(_) => true,
        Say::Queued(queued) => client.wait_for(queued.lease, Some(within)).unwrap().is_some(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_engines_hold_is_their_lease_and_comes_back_when_somebody_far_more_urgent_needs_it() {
    for kind in [EngineKind::Ollama, EngineKind::Vllm, EngineKind::Sglang] {
        let folder = Daemon::folder();
        let engine = Engine::start(kind, "well", folder.path());
        let daemon = Daemon::start(folder, vec![config(kind, &engine)], Vec::new());
        let holder = until("the engine is a holder", &daemon, || daemon.engines().pop());
        assert_eq!((holder.name.as_str(), holder.portions[0].promised), (kind.name(), 900 * MIB));
        assert_eq!(holder.pid, Some(engine.process.id()));
        let mut client = daemon.client();
        let said = client.lease(wants("render", Urgency::Critical, 1_500)).unwrap();
        assert!(granted_within(&mut client, said, PATIENCE), "{kind}: {}", daemon.events());
        assert_eq!(engine.held(), 100 * MIB, "{kind} kept what it cannot give");
        let state = daemon.state();
        assert!(state.devices[0].promised <= state.devices[0].line, "{state:#?}");
        let events = daemon.events();
        assert!(events.contains(&format!("engine {} gave back", kind.name())), "{events}");
        assert!(events.contains(&format!("recalled {}", kind.name())), "{events}");
        let promised: u64 = daemon.engines().iter().map(|holder| holder.portions[0].promised).sum();
        assert!(promised <= 100 * MIB, "{kind} has no lease for what it gave back: {:?}", daemon.engines());
    }
}

#[test]
fn an_engine_that_lies_is_said_to_and_nobody_is_promised_what_it_still_holds() {
    let folder = Daemon::folder();
    let engine = Engine::start(EngineKind::Ollama, "yes-without-freeing", folder.path());
    let broken = Engine::start(EngineKind::Comfyui, "wrong-json", folder.path());
    let engines = vec![config(EngineKind::Ollama, &engine), config(EngineKind::Comfyui, &broken)];
    let daemon = Daemon::start(folder, engines, Vec::new());
    until("the engine is a holder", &daemon, || daemon.engines().pop());
    let mut client = daemon.client();
    let said = client.lease(wants("render", Urgency::Critical, 900)).unwrap();
    until("the lie is told", &daemon, || daemon.events().contains("and the driver still shows").then_some(()));
    assert!(matches!(said, Say::Queued(_)), "{said:?}");
    assert!(!granted_within(&mut client, said, Duration::from_secs(2)), "{}", daemon.events());
    let liar = daemon.engines().into_iter().find(|holder| holder.name == "ollama").expect("it holds what it held");
    assert_eq!((liar.phase, liar.portions[0].promised), (Phase::Recalled, 900 * MIB), "nothing counts as given back");
    assert!(!daemon.events().contains("returned ollama"), "{}", daemon.events());
    let mut other = daemon.client();
    let said = other.lease(wants("small", Urgency::Critical, 50)).unwrap();
    assert!(matches!(said, Say::Granted(_) | Say::Queued(_)), "the daemon goes on: {said:?}");
    let state = daemon.state();
    assert!(
        state.warnings.iter().any(|warning| warning.contains("comfyui") && warning.contains("torch_vram_total")),
        "{state:#?}"
    );
    assert!(state.devices[0].promised <= state.devices[0].line, "{state:#?}");
}

/// The core hears what an engine has under way, so that it asks for its memory between items and not in the middle.
#[test]
fn what_an_engine_has_under_way_is_told_to_whoever_may_recall_it() {
    let folder = Daemon::folder();
    let engine = Engine::start(EngineKind::Comfyui, "busy", folder.path());
    let daemon = Daemon::start(folder, vec![config(EngineKind::Comfyui, &engine)], Vec::new());
    until("its items", &daemon, || daemon.engines().pop().filter(|holder| holder.batch_items == 3));
}

/// An engine that does not tell what it does: what came through its gate is known all the same, and ends before its memory goes.
#[test]
fn what_is_under_way_at_the_gate_counts_too() {
    let folder = Daemon::folder();
    let engine = Engine::start(EngineKind::Ollama, "well", folder.path());
    let gates = vec![gate(EngineKind::Ollama, 60.0, 0.2)];
    let daemon = Daemon::start(folder, vec![config(EngineKind::Ollama, &engine)], gates);
    until("the engine is a holder", &daemon, || daemon.engines().pop());
    let held = engine.held();
    let mut request = TcpStream::connect(daemon.gates[0]).unwrap();
    write!(request, "POST /api/generate HTTP/1.1\r\nhost: here\r\ncontent-length: 1000\r\n\r\n{{").unwrap();
    until("it counts", &daemon, || daemon.engines().pop().filter(|holder| holder.batch_items == 1));
    let mut client = daemon.client();
    let said = client.lease(wants("render", Urgency::Critical, 1_500)).unwrap();
    assert!(!granted_within(&mut client, said.clone(), Duration::from_secs(2)), "{}", daemon.events());
    assert_eq!(engine.held(), held, "the request has time to end");
    assert!(!daemon.events().contains("recalled ollama"), "nobody is asked in the middle: {}", daemon.events());
    drop(request);
    assert!(granted_within(&mut client, said, PATIENCE), "{}", daemon.events());
    until("nothing is under way", &daemon, || {
        daemon.engines().iter().all(|holder| holder.batch_items == 0).then_some(())
    });
}

/// An engine that its owner drives by commands: what its process holds is its lease as well.
#[test]
fn an_engine_of_commands_is_asked_back_too() {
    let folder = Daemon::folder();
    let uses = folder.path().join("uses");
    std::fs::create_dir_all(&uses).unwrap();
    let mut trainer = Command::new("sleep").arg("600").spawn().unwrap();
    let held = uses.join(trainer.id().to_string());
    std::fs::write(&held, "900MiB").unwrap();
    let sh = |script: String| vec!["sh".to_owned(), "-c".to_owned(), script];
    let offload = sh(format!("printf 100MiB > {}", held.display()));
    let commands = |pid: &str| CommandSteps {
        probe: sh(format!("echo '{{{pid}\"busy\": false}}'")),
        steps: vec![CommandStep { name: "offload".to_owned(), down: offload.clone(), up: Vec::new() }],
        seconds_max: 10.0,
    };
    let engine = |name: &str, commands| EngineConfig {
        name: Some(name.to_owned()),
        commands: Some(commands),
        ..EngineConfig::new(EngineKind::Command)
    };
    let pid = format!("\"pid\": {}, ", trainer.id());
    let engines = vec![engine("trainer", commands(&pid)), engine("nameless", commands(""))];
    let daemon = Daemon::start(folder, engines, Vec::new());
    let holder = until("the engine is a holder", &daemon, || daemon.engines().pop());
    assert_eq!((holder.name.as_str(), holder.portions[0].promised), ("trainer", 900 * MIB));
    let mut client = daemon.client();
    let said = client.lease(wants("render", Urgency::Critical, 1_500)).unwrap();
    assert!(granted_within(&mut client, said, PATIENCE), "{}", daemon.events());
    assert_eq!(std::fs::read_to_string(&held).unwrap(), "100MiB");
    assert!(daemon.events().contains("trainer gave back 800.0 MiB with 'offload'"), "{}", daemon.events());
    let warnings = daemon.state().warnings;
    assert!(warnings.iter().any(|one| one.contains("nameless") && one.contains("\"pid\"")), "{warnings:?}");
    let _ = trainer.kill();
    let _ = trainer.wait();
}

/// A driver that knows the sum alone: an engine is a stranger there and said to be, and what its gate asked for comes back when
/// the sum has fallen.
#[test]
fn where_processes_are_not_told_apart_the_sum_counts_and_is_said_to() {
    let folder = Daemon::folder();
    let script = "[[devices]]\nname = 'gpu0'\ncapacity = '2000MiB'\nuses_folder = 'uses'\nby_process = false\n";
    std::fs::write(folder.path().join("truth.toml"), script).unwrap();
    let stranger = Engine::start(EngineKind::Vllm, "well", folder.path());
    let engine = Engine::start(EngineKind::Ollama, "empty", folder.path());
    let engines = vec![
        config(EngineKind::Vllm, &stranger),
        EngineConfig { bytes: Some(Size(Bytes(700 * MIB))), ..config(EngineKind::Ollama, &engine) },
    ];
    // The last figure is from before the engine loads.
    let source = SlowDriver(Scripted::new(&folder.path().join("truth.toml")));
    let gates = vec![gate(EngineKind::Ollama, 60.0, 0.2)];
    let daemon = Daemon::start_with(Box::new(source), folder, engines, gates);
    until("it is said of the engine", &daemon, || {
        let warnings = daemon.state().warnings;
        let is_it = |one: &String| one.contains("vllm") && one.contains("does not tell processes apart");
        warnings.iter().any(is_it).then_some(())
    });
    let device = daemon.state().devices.remove(0);
    assert!(device.by_sum.is_some_and(|why| why.contains("does not tell processes apart")));
    assert_eq!((device.used, device.strangers), (1_000 * MIB, 1_000 * MIB), "nobody can tell whose it is");
    assert_eq!(daemon.engines(), []);
    // What comes through its gate is a lease.
    let answer = post(daemon.gates[0], "/api/generate", PROMPT);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    until("its lease", &daemon, || daemon.engines().pop().filter(|holder| holder.portions[0].promised == 700 * MIB));
    // Somebody who needs it has it once the sum has fallen.
    let mut client = daemon.client();
    let said = client.lease(wants("render", Urgency::Critical, 800)).unwrap();
    assert!(granted_within(&mut client, said, PATIENCE), "{}", daemon.events());
    assert_eq!(engine.held(), 100 * MIB, "it has unloaded its model");
    let events = daemon.events();
    assert!(events.contains("by what all programs together use of gpu0"), "{events}");
    let device = daemon.state().devices.remove(0);
    assert!(device.promised <= device.line, "{device:?}");
}

#[test]
fn an_engine_that_loads_and_unloads_by_itself_has_a_lease_for_what_it_has() {
    let folder = Daemon::folder();
    let engine = Engine::start(EngineKind::Ollama, "empty", folder.path());
    let daemon = Daemon::start(folder, vec![config(EngineKind::Ollama, &engine)], Vec::new());
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(daemon.engines(), [], "it has nothing that it could give back");
    let address = SocketAddr::from(([127, 0, 0, 1], engine.port));
    let promised = || daemon.engines().first().map_or(0, |holder| holder.portions[0].promised);
    for (body, bytes) in [
        ("{\"model\": \"big\", \"prompt\": \"a\"}", 700 * MIB),
        ("{\"model\": \"small\", \"prompt\": \"a\"}", 900 * MIB),
        ("{\"model\": \"big\", \"keep_alive\": 0}", 300 * MIB),
    ] {
        assert!(post(address, "/api/generate", body).starts_with("HTTP/1.1 200"));
        until(body, &daemon, || (promised() == bytes).then_some(()));
        let state = daemon.state();
        assert_eq!(state.devices[0].strangers, 0, "{state:#?}");
    }
    drop(engine);
    until("an engine that ends holds nothing", &daemon, || (promised() == 0).then_some(()));
}

fn post(to: SocketAddr, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A port that nobody has just now.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn gate(kind: EngineKind, hold: f64, idle: f64) -> GateConfig {
    GateConfig { listen: free_port(), engine: kind.name().to_owned(), hold_seconds_max: hold, idle_seconds: idle }
}

const PROMPT: &str = "{\"model\": \"big\", \"prompt\": \"a\"}";

#[test]
fn the_gate_holds_requests_until_there_is_room_and_says_so_when_there_is_none_in_time() {
    let folder = Daemon::folder();
    let engine = Engine::start(EngineKind::Ollama, "empty", folder.path());
    let engines = vec![EngineConfig { bytes: Some(Size(Bytes(700 * MIB))), ..config(EngineKind::Ollama, &engine) }];
    let daemon = Daemon::start(folder, engines, vec![gate(EngineKind::Ollama, 4.0, 60.0)]);
    let mut client = daemon.client();
    let said = client.lease(wants("render", Urgency::High, 1_500)).unwrap();
    let Say::Granted(granted) = said else { panic!("{said:?}") };
    let began = Instant::now();
    let answer = post(daemon.gates[0], "/api/generate", PROMPT);
    assert!(answer.starts_with("HTTP/1.1 503") && answer.to_ascii_lowercase().contains("retry-after"), "{answer}");
    assert!(began.elapsed() > Duration::from_secs(3), "it was held for {:?}", began.elapsed());
    assert_eq!(engine.held(), 100 * MIB, "nothing was loaded past the line");
    let (gate, held) = (daemon.gates[0], mpsc::channel());
    std::thread::spawn(move || held.0.send(post(gate, "/api/generate", PROMPT)).unwrap());
    std::thread::sleep(Duration::from_millis(700));
    assert!(held.1.try_recv().is_err(), "it is held");
    client.give_back(granted.lease).unwrap();
    let answer = held.1.recv_timeout(PATIENCE).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("word4"), "{answer}");
    assert_eq!(engine.held(), 700 * MIB);
    // Until the driver was asked again, what it loaded counts as a stranger's.
    until("it has a lease for what it uses", &daemon, || {
        daemon.engines().pop().filter(|holder| holder.portions[0].promised >= 600 * MIB)
    });
}

#[test]
fn a_sleeper_is_woken_when_its_gate_is_asked_and_gives_way_when_it_is_idle() {
    let folder = Daemon::folder();
    let engine = Engine::start(EngineKind::Vllm, "well", folder.path());
    let daemon =
        Daemon::start(folder, vec![config(EngineKind::Vllm, &engine)], vec![gate(EngineKind::Vllm, 60.0, 0.2)]);
    until("the engine is a holder", &daemon, || daemon.engines().pop());
    assert!(post(daemon.gates[0], "/v1/completions", "{}").contains("[DONE]"));
    // Nobody uses it any more: somebody no more urgent than it was may have its memory.
    until("it counts as background work", &daemon, || {
        daemon.engines().pop().filter(|holder| holder.priority == Urgency::Background).map(drop)
    });
    let mut client = daemon.client();
    let said = client.lease(wants("render", Urgency::Normal, 1_500)).unwrap();
    assert!(granted_within(&mut client, said, PATIENCE), "{}", daemon.events());
    assert_eq!(engine.held(), 100 * MIB);
    // It is asked for again: it has to wait for what it was measured to need, then it is woken.
    let (gate, held) = (daemon.gates[0], mpsc::channel());
    std::thread::spawn(move || held.0.send(post(gate, "/v1/completions", "{}")).unwrap());
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(engine.held(), 100 * MIB, "it sleeps while it has no lease");
    drop(client);
    let answer = held.1.recv_timeout(PATIENCE).unwrap();
    assert!(answer.contains("[DONE]"), "{answer}\n{}", daemon.events());
    assert_eq!(engine.held(), 900 * MIB);
}

#[test]
fn a_gate_whose_engine_is_gone_says_so_at_once() {
    let folder = Daemon::folder();
    let engine = Engine::start(EngineKind::Ollama, "well", folder.path());
    let engines = vec![EngineConfig { bytes: Some(Size(Bytes(700 * MIB))), ..config(EngineKind::Ollama, &engine) }];
    let daemon = Daemon::start(folder, engines, vec![gate(EngineKind::Ollama, 60.0, 60.0)]);
    until("the engine is a holder", &daemon, || daemon.engines().pop());
    drop(engine);
    let answer = post(daemon.gates[0], "/api/generate", PROMPT);
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("start it"), "{answer}");
    until("it holds nothing", &daemon, || daemon.engines().is_empty().then_some(()));
}
