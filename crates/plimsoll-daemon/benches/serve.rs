//! How long an uncontended grant takes while a thousand clients hold a lease each: from the request on the socket to the
//! answer. Beside it the floor: the same bytes to and fro on a Unix socket, with nobody deciding anything.
//! `cargo bench -p plimsoll-daemon --bench serve`

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll::book::Book;
use plimsoll_daemon::broker::Settings;
use plimsoll_daemon::client::Client;
use plimsoll_daemon::engines::keeper::EngineOptions;
use plimsoll_daemon::server::{ServeOptions, serve};
use plimsoll_daemon::truth::scripted::Scripted;
use plimsoll_daemon::wire::{LeaseRequest, Request};

const CLIENTS: usize = 1_000;
const GRANTS: usize = 5_000;

fn main() {
    more_files();
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("truth.toml");
    std::fs::write(&script, "[[devices]]\nname = 'gpu0'\ncapacity = '100GiB'\nin_book = 'card'\n").expect("written");
    let socket = folder.path().join("run/serve.sock");
    start(&script, &socket);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::connect(&socket).expect("it serves")).collect();
    for client in &mut clients {
        client.hold(wants()).expect("there is room");
    }
    let mut one = Client::connect(&socket).expect("it serves");
    let grants = (0..GRANTS).map(|_| {
        let start = Instant::now();
        let granted = one.hold(wants()).expect("there is room");
        let took = start.elapsed();
        one.give_back(granted.lease).expect("it is held");
        took
    });
    let grants = sorted(grants.collect());
    let floor = sorted(floor(folder.path()));
    println!("{CLIENTS} clients hold a lease each; {GRANTS} grants, one after the other");
    for (name, at) in [("p50", 0.50), ("p99", 0.99), ("p99.9", 0.999)] {
        let (grant, floor) = (part(&grants, at), part(&floor, at));
        let ratio = grant.as_secs_f64() / floor.as_secs_f64();
        println!("{name:>6}  grant {grant:>10.1?}  to and fro {floor:>10.1?}  {ratio:>5.1} ×");
    }
    let p99 = part(&grants, 0.99);
    println!(
        "{}: p99 of a grant is {p99:.1?}, 5 ms is wanted",
        if p99 < Duration::from_millis(5) { "met" } else { "missed" }
    );
}

fn start(script: &Path, socket: &Path) {
    let (script, path) = (script.to_owned(), socket.to_owned());
    std::thread::spawn(move || {
        let options = ServeOptions {
            socket: path,
            http: None,
            settings: Settings::default(),
            sources: vec![Box::new(Scripted::new(&script))],
            period: Duration::from_secs(1),
            engines: EngineOptions::default(),
            book: Some(Book::at(script.with_file_name("book"))),
        };
        serve(options, |_| {}).expect("it serves");
    });
    let end = Instant::now() + Duration::from_secs(30);
    while Client::connect(socket).is_err() {
        assert!(Instant::now() < end, "the daemon does not serve");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The same line to and fro with a thread that only sends it back.
fn floor(folder: &Path) -> Vec<Duration> {
    let path = folder.join("echo.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let (mut read, mut write) = (BufReader::new(stream.try_clone().expect("a second handle")), stream);
        let mut line = Vec::new();
        while read.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            write.write_all(&line).expect("written");
            line.clear();
        }
    });
    let mut stream = UnixStream::connect(&path).expect("it listens");
    let mut read = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut request = serde_json::to_vec(&Request::Lease(wants())).expect("JSON");
    request.push(b'\n');
    let mut line = Vec::new();
    let times = (0..GRANTS).map(|_| {
        line.clear();
        let start = Instant::now();
        stream.write_all(&request).expect("written");
        read.read_until(b'\n', &mut line).expect("an answer");
        start.elapsed()
    });
    times.collect()
}

fn wants() -> LeaseRequest {
    serde_json::from_str(r#"{"name":"bench","ladder":[{"bytes":1048576}]}"#).expect("a request")
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort_unstable();
    times
}

fn part(times: &[Duration], share: f64) -> Duration {
    times[((times.len() - 1) as f64 * share) as usize]
}

fn more_files() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("more files");
}
