//! Hostile input on the socket: refused, alive, nothing leaked.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use plimsoll_core::rng::Rng;
use plimsoll_daemon::wire::Request;

use crate::rig::{Rig, until, wants};

const HELLO: &str = "{\"do\":\"hello\",\"protocol\":1}\n";

/// Sends bytes and reads until the daemon closes.
fn answer(rig: &Rig, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(rig.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _ = stream.write_all(bytes);
    // The daemon reads to the end, answers, and closes.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read) = stream.read(&mut buffer)
        && read > 0
    {
        said.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn is_alive_and_empty(rig: &Rig) {
    until("an empty book", || {
        let state = rig.state();
        match state.devices[0].promised == 0 && state.queue.is_empty() {
            true => Ok(()),
            false => Err(format!("{:?} {:?}", state.holders, state.queue)),
        }
    });
}

/// A process of another user: the first one, or for root one that nobody owns.
enum Another {
    First,
    Nobodys(std::process::Child),
}

impl Another {
    fn start() -> Self {
        use std::os::unix::process::CommandExt;
        if !rustix::process::geteuid().is_root() {
            return Self::First;
        }
        let mut sleep = std::process::Command::new("sleep");
        Self::Nobodys(sleep.arg("600").uid(65_534).spawn().expect("root may start it"))
    }

    fn pid(&self) -> u32 {
        match self {
            Self::First => 1,
            Self::Nobodys(child) => child.id(),
        }
    }
}

impl Drop for Another {
    fn drop(&mut self) {
        if let Self::Nobodys(child) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn whoever_breaks_a_rule_is_told_and_let_go() {
    let rig = Rig::new();
    let told = |bytes: &[u8], named: &str| {
        let said = answer(&rig, bytes);
        assert!(said.contains(named), "{named}: {said}");
    };
    told(b"{\"do\":\"state\"}\n", "say hello first");
    told(b"{\"do\":\"hello\",\"protocol\":2}\n", "speaks protocol 1, not 2");
    told(b"hello\n", "that is no request");
    told(&[HELLO.as_bytes(), &vec![b'x'; 70 << 10]].concat(), "a line has at most");
    told(
        &[HELLO.as_bytes(), b"{\"do\":\"lease\",\"name\":\"a\",\"ladder\":[],\"extra\":1}\n"].concat(),
        "unknown field",
    );
    told(&[HELLO.as_bytes(), b"{\"do\":\"return\",\"lease\":77}\n"].concat(), "there is no lease 77");
    let other = Another::start();
    let lease = format!("{{\"do\":\"lease\",\"name\":\"a\",\"ladder\":[{{\"bytes\":1}}],\"pid\":{}}}\n", other.pid());
    told(&[HELLO.as_bytes(), lease.as_bytes()].concat(), &format!("process {}", other.pid()));
    let said = answer(&rig, &[HELLO.as_bytes(), "\u{0}\n".repeat(40).as_bytes()].concat());
    assert_eq!(said.matches("that is no request").count(), 16, "then it is let go: {said}");
    is_alive_and_empty(&rig);
}

#[test]
fn fuzzed_lines_do_no_harm() {
    let rig = Rig::new();
    let mut rng = Rng::new(4);
    let requests = [
        serde_json::to_string(&Request::Lease(wants("fuzz", 10))).unwrap(),
        serde_json::to_string(&Request::Events { since: 0, follow: true }).unwrap(),
        serde_json::to_string(&Request::Rise { lease: plimsoll_daemon::wire::LeaseId(1), rung: 3 }).unwrap(),
        serde_json::to_string(&Request::State).unwrap(),
    ];
    for _ in 0..300 {
        let mut bytes = HELLO.as_bytes().to_vec();
        for _ in 0..rng.within(1, 5) {
            let mut line = requests[rng.below(requests.len())].clone().into_bytes();
            for _ in 0..rng.within(0, 4) {
                let at = rng.below(line.len().max(1));
                match rng.below(3) {
                    0 if !line.is_empty() => line[at] = rng.roll() as u8,
                    1 if line.len() > 1 => drop(line.remove(at)),
                    _ => line.truncate(at.max(1)),
                }
            }
            line.push(b'\n');
            bytes.extend(line);
        }
        let mut stream = UnixStream::connect(rig.socket()).unwrap();
        let _ = stream.write_all(&bytes);
        if rng.chance(0.5) {
            let _ = stream.shutdown(std::net::Shutdown::Write);
            stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
    is_alive_and_empty(&rig);
}

#[test]
fn the_rest_of_a_line_is_not_waited_for_without_an_end() {
    let rig = Rig::new();
    let mut stream = UnixStream::connect(rig.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "{HELLO}{{\"do\":\"st").unwrap();
    // Nor for one that comes byte by byte.
    let mut dripping = UnixStream::connect(rig.socket()).unwrap();
    let mut answers = dripping.try_clone().unwrap();
    answers.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    dripping.write_all(HELLO.as_bytes()).unwrap();
    let bytes = std::thread::spawn(move || {
        while dripping.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    // Nor for a first one.
    let mut silent = UnixStream::connect(rig.socket()).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for stream in [&mut stream, &mut answers, &mut silent] {
        let said = until_closed(stream);
        assert!(said.contains("a line takes at most"), "{said}");
    }
    bytes.join().unwrap();
}

/// What came before the daemon closed. A byte that it had not read by then makes the end a reset.
fn until_closed(stream: &mut UnixStream) -> String {
    let mut said = Vec::new();
    let end = stream.read_to_end(&mut said);
    let is_closed = end.as_ref().map_or_else(|error| error.kind() == io::ErrorKind::ConnectionReset, |_| true);
    assert!(is_closed, "the daemon closes it: {end:?}");
    String::from_utf8(said).unwrap()
}

/// Whoever says that it will send nothing more is answered, and what it held is free: nobody could ask it back.
#[test]
fn a_half_closed_connection_is_answered_and_over() {
    let rig = Rig::new();
    let lease = serde_json::to_string(&Request::Lease(wants("half", 100))).unwrap();
    let said = answer(&rig, format!("{HELLO}{lease}\n").as_bytes());
    assert!(said.contains("\"say\":\"granted\""), "{said}");
    is_alive_and_empty(&rig);
    let address = rig.address();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET /api/state HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

#[test]
fn one_user_cannot_look_into_anothers() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::new();
    let mode = |name: &str| {
        let path = rig.folder.path().join("run").join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(
        [mode(""), mode("serve.sock"), mode("token"), mode("leases.jsonl"), mode("events.jsonl")],
        [0o700, 0o600, 0o600, 0o600, 0o600]
    );
    let mut client = rig.client();
    let granted = client.hold(wants("a", 10)).unwrap();
    assert_eq!(granted.secret.len(), 32);
    let (_, state) = rig.http("GET", "/api/state", &[], "");
    let (_, status) = rig.http("GET", &format!("/api/leases/{}", granted.lease.0), &[], "");
    let (_, events) = rig.http("GET", "/api/events", &[], "");
    for shown in [state, status, events] {
        assert!(!shown.contains(&granted.secret) && !shown.contains(&rig.token()), "{shown}");
    }
}
