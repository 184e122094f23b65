//! The gate between real clients and a real server: what passes is what was sent, what is held is bounded, and nobody waits
//! for somebody else.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use plimsoll_daemon::engines::EngineKind;
use plimsoll_daemon::gate::room::{Always, NoRoom, Pass, Room};
use plimsoll_daemon::gate::{Gate, GateCounts, GateLimits, Target};

use crate::fakes::Fake;
use crate::fakes::server::{Conversation, Request, Server};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gate on a port of its own, served by a thread of its own.
fn gate_before<R: Room>(
    kind: EngineKind,
    engine: SocketAddr,
    limits: GateLimits,
    room: R,
) -> (SocketAddr, Arc<GateCounts>) {
    let gate = Gate::new(Target { engine: kind.name().to_owned(), kind, address: engine }, limits, room);
    let counts = Arc::clone(gate.counts());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            gate.serve(listener).await;
        });
    });
    (told.recv().unwrap(), counts)
}

/// A server with everything that engines do to a connection.
fn origin() -> Server {
    Server::start(0, serve_origin).unwrap()
}

fn serve_origin(request: &Request, to: &mut Conversation) -> std::io::Result<()> {
    match (request.method.as_str(), request.path()) {
        (_, "/ndjson") => {
            to.begin_chunks("application/x-ndjson", "X-Odd-CASE: kept\r\n")?;
            for line in 0..50 {
                to.chunk(format!("{{\"line\": {line}, \"text\": \"äöü\\u0000\"}}\n").as_bytes())?;
            }
            to.end_chunks("")
        }
        (_, "/sse") => {
            to.begin_chunks("text/event-stream", "Cache-Control: no-cache\r\n")?;
            for event in 0..20 {
                to.chunk(format!("event: message\r\ndata: {event}\r\n\r\n").as_bytes())?;
            }
            to.end_chunks("")
        }
        (_, "/trailers") => {
            to.begin_chunks("text/plain", "Trailer: X-Sum\r\n")?;
            to.chunk(b"body")?;
            to.end_chunks("X-Sum: 42\r\n")
        }
        (_, "/bytes") => {
            let count: usize = request.target.split_once('=').and_then(|(_, count)| count.parse().ok()).unwrap_or(0);
            let bytes: Vec<u8> = (0..count).map(|at| (at * 31 + at / 251) as u8).collect();
            to.reply(200, "application/octet-stream", &bytes)
        }
        ("HEAD", _) => {
            to.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1234\r\n\r\n")
        }
        (_, "/nothing") => to.stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n"),
        (_, "/until-it-closes") => {
            to.stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nas long as it lasts",
            )?;
            to.break_off()
        }
        (_, "/break") => {
            to.begin_chunks("text/plain", "")?;
            to.chunk(b"the first half")?;
            to.break_off()
        }
        (_, "/gone") => to.break_off(),
        (_, "/echo") => to.reply(200, request.header("content-type").unwrap_or("none"), &request.body),
        (_, "/count") => to.reply(200, "text/plain", request.body.len().to_string().as_bytes()),
        (_, "/headers") => {
            let mut lines: Vec<String> = request.headers.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            lines.sort();
            to.reply(200, "text/plain", lines.join("\n").as_bytes())
        }
        (_, "/once") => {
            to.reply(200, "text/plain", b"once")?;
            to.break_off()
        }
        _ => to.reply(404, "text/plain", b"404 page not found"),
    }
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends bytes as they are and reads until the other side ends.
fn exchange(to: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = connect(to);
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[derive(Debug, PartialEq)]
struct Heard {
    status: String,
    headers: Vec<String>,
    body: Vec<u8>,
    trailers: String,
    is_whole: bool,
}

/// An answer without what belongs to its connection.
fn understood(answer: &[u8], has_body: bool) -> Heard {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("the head of an answer");
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let mut headers: Vec<String> = lines.map(str::to_owned).collect();
    let is_chunked = headers.iter().any(|line| line.to_ascii_lowercase().starts_with("transfer-encoding: chunked"));
    let length = headers
        .iter()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
    let mut rest = &answer[end + 4..];
    let (mut body, mut trailers, mut is_whole) = (Vec::new(), String::new(), true);
    if is_chunked {
        is_whole = false;
        while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
            rest = &rest[line + 2..];
            if size == 0 {
                trailers = String::from_utf8(rest.to_vec()).unwrap();
                is_whole = true;
                break;
            }
            body.extend_from_slice(&rest[..size.min(rest.len())]);
            rest = rest.get(size + 2..).unwrap_or_default();
        }
    } else if has_body {
        body = rest.to_vec();
        is_whole = length.is_none_or(|length| length == body.len());
    }
    let of_the_connection = ["transfer-encoding", "connection", "content-length"];
    if !is_chunked && has_body {
        headers.retain(|line| !line.to_ascii_lowercase().starts_with("connection"));
    } else {
        headers.retain(|line| {
            !of_the_connection.iter().any(|name| line.to_ascii_lowercase().starts_with(name)) || !has_body
        });
    }
    headers.retain(|line| !line.to_ascii_lowercase().starts_with("connection"));
    headers.sort();
    Heard { status, headers, body, trailers: trailers.trim_end().to_owned(), is_whole }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n").into_bytes()
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\nContent-Type: text/odd\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_passes_is_what_was_sent() {
    let origin = origin();
    let (gate, _) = gate_before(EngineKind::Ollama, origin.address, GateLimits::default(), Always);
    for path in
        ["/ndjson", "/sse", "/bytes=0", "/bytes?n=1", "/bytes?n=5000000", "/nothing", "/until-it-closes", "/missing"]
    {
        let (direct, through) = (exchange(origin.address, &get(path)), exchange(gate, &get(path)));
        let (direct, through) = (understood(&direct, true), understood(&through, true));
        assert!(through.is_whole, "{path}");
        assert_eq!(
            (&direct.status, &direct.body, &direct.trailers),
            (&through.status, &through.body, &through.trailers),
            "{path}"
        );
        if path != "/until-it-closes" {
            assert_eq!(direct.headers, through.headers, "{path}");
        }
    }
    let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 7) as u8).collect();
    let (direct, through) = (exchange(origin.address, &post("/echo", &body)), exchange(gate, &post("/echo", &body)));
    assert_eq!(understood(&direct, true), understood(&through, true));
    let chunked = b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    assert_eq!(understood(&exchange(gate, chunked), true).body, b"hello world");
    let head = b"HEAD /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(understood(&exchange(origin.address, head), false), understood(&exchange(gate, head), false));
    let trailing = b"GET /trailers HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close\r\n\r\n";
    let heard = understood(&exchange(gate, trailing), true);
    assert_eq!(
        (heard.body.as_slice(), heard.trailers.to_ascii_lowercase().as_str()),
        (b"body".as_slice(), "x-sum: 42")
    );
}

#[test]
fn the_engine_sees_the_clients_own_headers() {
    let origin = origin();
    let (gate, _) = gate_before(EngineKind::Comfyui, origin.address, GateLimits::default(), Always);
    let request = b"GET /headers HTTP/1.1\r\nHost: localhost:8189\r\nOrigin: http://localhost:8189\r\nX-Mine: One\r\nConnection: close, X-Hop\r\nX-Hop: gone\r\nKeep-Alive: 5\r\n\r\n";
    let heard = understood(&exchange(gate, request), true);
    assert_eq!(
        String::from_utf8(heard.body).unwrap(),
        "Host: localhost:8189\nOrigin: http://localhost:8189\nX-Mine: One"
    );
}

#[test]
fn each_chunk_passes_when_it_comes() {
    let (next, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::start(0, move |_, to: &mut Conversation| {
        to.begin_chunks("text/event-stream", "")?;
        for piece in 0..3 {
            to.chunk(format!("piece {piece}\n").as_bytes())?;
            wait.lock().unwrap().recv_timeout(PATIENCE).map_err(|_| std::io::ErrorKind::TimedOut)?;
        }
        to.end_chunks("")
    })
    .unwrap();
    let (gate, _) = gate_before(EngineKind::Ollama, server.address, GateLimits::default(), Always);
    let mut stream = connect(gate);
    stream.write_all(&get("/")).unwrap();
    let mut heard = String::new();
    for piece in 0..3 {
        // The server sends the next piece only after this one was read here.
        while !heard.contains(&format!("piece {piece}\n")) {
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "{heard}");
            heard.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        next.send(()).unwrap();
    }
}

/// Room that a test opens; it knows how many wait and how many are in.
#[derive(Clone, Default)]
struct Door {
    open: Arc<AtomicBool>,
    opened: Arc<tokio::sync::Notify>,
    waiting: Arc<AtomicUsize>,
    inside: Arc<AtomicUsize>,
    entered: Arc<AtomicU64>,
    opens_at: Option<usize>,
}

struct Leaving(Arc<AtomicUsize>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Door {
    fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
        self.opened.notify_waiters();
    }
}

impl Room for Door {
    async fn enter(&self, _: &str) -> Result<Pass, NoRoom> {
        let waiting = self.waiting.fetch_add(1, Ordering::SeqCst) + 1;
        let _leaving = Leaving(Arc::clone(&self.waiting));
        if self.opens_at == Some(waiting) {
            self.open();
        }
        loop {
            let opened = self.opened.notified();
            if self.open.load(Ordering::SeqCst) {
                break;
            }
            opened.await;
        }
        self.inside.fetch_add(1, Ordering::SeqCst);
        self.entered.fetch_add(1, Ordering::SeqCst);
        let left = Leaving(Arc::clone(&self.inside));
        Ok(Pass::new(move || drop(left)))
    }

    fn why(&self, _: &str) -> String {
        "the door is closed".to_owned()
    }
}

#[test]
fn five_hundred_requests_at_once_are_held_together_and_each_gets_its_own_answer() {
    let origin = origin();
    let door = Door { opens_at: Some(500), ..Door::default() };
    let (gate, counts) = gate_before(EngineKind::Vllm, origin.address, GateLimits::default(), door.clone());
    std::thread::scope(|scope| {
        for client in 0..500_u32 {
            let work = move || {
                let body = format!("body of client {client} ").repeat(50);
                let heard = understood(&exchange(gate, &post("/echo", body.as_bytes())), true);
                assert_eq!((heard.status.as_str(), heard.body), ("200", body.into_bytes()), "client {client}");
            };
            std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, work).unwrap();
        }
    });
    assert_eq!(door.entered.load(Ordering::SeqCst), 500);
    until("every pass is given back", || door.inside.load(Ordering::SeqCst) == 0);
    until("every connection has ended", || counts.connections.load(Ordering::Relaxed) == 0);
    assert_eq!(counts.passed.load(Ordering::Relaxed), 500);
}

#[test]
fn a_client_that_stops_reading_stops_nobody_and_is_cut_off() {
    let origin = origin();
    let limits = GateLimits { idle: Duration::from_millis(800), ..GateLimits::default() };
    let (gate, counts) = gate_before(EngineKind::Ollama, origin.address, limits, Always);
    let mut stalled: Vec<TcpStream> = (0..8).map(|_| connect(gate)).collect();
    stalled.iter_mut().for_each(|stream| stream.write_all(&get("/bytes?n=60000000")).unwrap());
    for _ in 0..100 {
        assert_eq!(understood(&exchange(gate, &get("/bytes?n=10000")), true).body.len(), 10_000);
    }
    until("those that do not read are cut off", || counts.connections.load(Ordering::Relaxed) == 0);
}

#[test]
fn an_answer_that_breaks_off_is_never_whole() {
    let origin = origin();
    let (gate, _) = gate_before(EngineKind::Ollama, origin.address, GateLimits::default(), Always);
    let heard = understood(&exchange(gate, &get("/break")), true);
    assert_eq!((heard.body.as_slice(), heard.is_whole), (b"the first half".as_slice(), false));
    let heard = understood(&exchange(gate, &get("/gone")), true);
    assert_eq!(heard.status, "502");
    assert!(String::from_utf8_lossy(&heard.body).contains("gone before it answered"));
    let fake = Fake::start(EngineKind::Ollama);
    fake.server.stop();
    until("the engine is gone", || TcpStream::connect(fake.server.address).is_err());
    let (gate, _) = gate_before(EngineKind::Ollama, fake.server.address, GateLimits::default(), Always);
    let heard = understood(&exchange(gate, &get("/api/ps")), true);
    let said: serde_json::Value = serde_json::from_slice(&heard.body).unwrap();
    assert_eq!(heard.status, "502");
    assert!(said["error"].as_str().unwrap().contains("start it"), "{said}");
}

#[test]
fn a_held_request_is_told_when_its_time_is_over_and_what_only_asks_is_not_held() {
    let origin = origin();
    let limits = GateLimits { hold: Duration::from_millis(200), ..GateLimits::default() };
    for kind in [EngineKind::Ollama, EngineKind::Vllm] {
        let (gate, counts) = gate_before(kind, origin.address, limits, Door::default());
        let began = Instant::now();
        // A body larger than any socket takes: the client hears why although it has not sent it all.
        let heard = understood(&exchange(gate, &post("/v1/completions", &vec![b'x'; 200_000])), true);
        assert!(began.elapsed() >= limits.hold);
        let said: serde_json::Value = serde_json::from_slice(&heard.body).unwrap();
        let message = if kind == EngineKind::Ollama { &said["error"] } else { &said["error"]["message"] };
        let message = message.as_str().unwrap();
        assert_eq!(heard.status, "503");
        assert!(message.contains("the door is closed") && message.contains(kind.name()), "{message}");
        assert!(heard.headers.iter().any(|line| line.eq_ignore_ascii_case("retry-after: 10")), "{:?}", heard.headers);
        assert_eq!(understood(&exchange(gate, &get("/bytes?n=5")), true).status, "200");
        assert_eq!(counts.refused.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn places_for_held_requests_are_limited_and_a_client_that_goes_gives_its_place_back() {
    let origin = origin();
    let door = Door::default();
    let limits = GateLimits { held: 2, ..GateLimits::default() };
    let (gate, counts) = gate_before(EngineKind::Vllm, origin.address, limits, door.clone());
    let mut held: Vec<TcpStream> = (0..2).map(|_| connect(gate)).collect();
    held.iter_mut().for_each(|stream| stream.write_all(&post("/echo", b"x")).unwrap());
    until("two are held", || counts.held.load(Ordering::Relaxed) == 2);
    let heard = understood(&exchange(gate, &post("/echo", b"x")), true);
    assert_eq!(heard.status, "503");
    assert!(String::from_utf8_lossy(&heard.body).contains("2 requests are held"));
    held.pop().unwrap().shutdown(Shutdown::Both).unwrap();
    until("one has gone", || counts.held.load(Ordering::Relaxed) == 1 && door.waiting.load(Ordering::SeqCst) == 1);
    let third = std::thread::spawn(move || understood(&exchange(gate, &post("/echo", b"third")), true));
    until("another is held", || counts.held.load(Ordering::Relaxed) == 2);
    door.open();
    assert_eq!(third.join().unwrap().body, b"third");
    until("nobody is held", || counts.held.load(Ordering::Relaxed) == 0);
}

#[test]
fn the_body_of_a_held_request_stays_with_its_client() {
    let origin = origin();
    let door = Door::default();
    let (gate, counts) = gate_before(EngineKind::Vllm, origin.address, GateLimits::default(), door.clone());
    const ALL: usize = 64 << 20;
    let mut stream = connect(gate);
    let head = format!("POST /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {ALL}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    until("it is held", || counts.held.load(Ordering::Relaxed) == 1);
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let piece = vec![7; 256 << 10];
    let mut sent = 0;
    while let Ok(count) = stream.write(&piece) {
        sent += count;
        assert!(sent < ALL / 2, "the gate took {sent} bytes of a request that it holds");
    }
    door.open();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    while sent < ALL {
        sent += stream.write(&piece[..piece.len().min(ALL - sent)]).unwrap();
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(understood(&answer, true).body, ALL.to_string().as_bytes());
}

#[test]
fn a_pass_lasts_as_long_as_its_answer() {
    let fake = Fake::start(EngineKind::Ollama);
    fake.state().pieces = (10_000, Duration::from_millis(5));
    let door = Door::default();
    door.open();
    let (gate, _) = gate_before(EngineKind::Ollama, fake.server.address, GateLimits::default(), door.clone());
    let mut stream = connect(gate);
    stream.write_all(&post("/api/generate", b"{\"model\": \"big\", \"prompt\": \"a\"}")).unwrap();
    let mut buffer = [0; 100];
    stream.read_exact(&mut buffer).unwrap();
    assert_eq!(door.inside.load(Ordering::SeqCst), 1);
    assert_eq!(fake.state().busy, 1);
    drop(stream);
    until("the pass ends with its client", || door.inside.load(Ordering::SeqCst) == 0);
    until("and the engine notices", || fake.state().busy == 0);
}

#[test]
fn upgraded_connections_pass() {
    let fake = Fake::start(EngineKind::Comfyui);
    let (gate, counts) = gate_before(EngineKind::Comfyui, fake.server.address, GateLimits::default(), Door::default());
    let mut stream = connect(gate);
    let request = "GET /ws?clientId=1 HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101") && head.contains("upgrade: websocket"), "{head}");
    for message in [b"\x81\x05hello".as_slice(), &[0; 100_000], b"\xff\xfe"] {
        stream.write_all(message).unwrap();
        let mut back = vec![1; message.len()];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, message);
    }
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
    until("the connection has ended", || counts.connections.load(Ordering::Relaxed) == 0);
}

#[test]
fn connections_heads_and_waits_are_limited() {
    let origin = origin();
    let limits = GateLimits { connections: 2, head_time: Duration::from_millis(300), ..GateLimits::default() };
    let (gate, counts) = gate_before(EngineKind::Ollama, origin.address, limits, Always);
    let idle: Vec<TcpStream> = (0..2).map(|_| connect(gate)).collect();
    until("both are there", || counts.connections.load(Ordering::Relaxed) == 2);
    let mut third = connect(gate);
    let mut answer = Vec::new();
    let _ = third.read_to_end(&mut answer);
    assert!(String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 503"), "{}", String::from_utf8_lossy(&answer));
    until("who sends no request is sent away", || counts.connections.load(Ordering::Relaxed) == 0);
    drop(idle);

    let (gate, _) = gate_before(EngineKind::Ollama, origin.address, GateLimits::default(), Always);
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {}\r\n\r\n", "a".repeat(200_000));
    let answer = exchange(gate, long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    for rubbish in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(),
        b"GET\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ] {
        let answer = exchange(gate, rubbish);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&answer));
    }
    let answer = exchange(gate, b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.1 405"), "{}", String::from_utf8_lossy(&answer));
    let absolute = b"GET http://example.org/bytes?n=3 HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n";
    assert_eq!(understood(&exchange(gate, absolute), true).body.len(), 3, "whatever it names, the engine is asked");
    assert_eq!(understood(&exchange(gate, &get("/bytes?n=3")), true).body.len(), 3, "it still serves");

    let limits = GateLimits { answer: Duration::from_millis(200), ..GateLimits::default() };
    let silent = Server::start(0, |_, _: &mut Conversation| {
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    })
    .unwrap();
    let (gate, _) = gate_before(EngineKind::Ollama, silent.address, limits, Always);
    assert_eq!(understood(&exchange(gate, &get("/")), true).status, "504");
}

#[test]
fn connections_are_kept_and_an_engine_that_closes_its_side_is_met_again() {
    let origin = origin();
    let (gate, _) = gate_before(EngineKind::Ollama, origin.address, GateLimits::default(), Always);
    let mut stream = connect(gate);
    for round in 0..20 {
        // The server closes after each answer, so the way to it is a new one each time.
        stream.write_all(b"GET /once HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"once") {
            let mut buffer = [0; 512];
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "round {round}: {}", String::from_utf8_lossy(&heard));
            heard.extend_from_slice(&buffer[..count]);
        }
        assert!(heard.starts_with(b"HTTP/1.1 200"), "round {round}: {}", String::from_utf8_lossy(&heard));
        std::thread::sleep(Duration::from_millis(round % 3));
    }
    let two =
        [get("/bytes?n=2").strip_suffix(b"Connection: close\r\n\r\n").unwrap(), b"\r\n", &get("/bytes?n=3")].concat();
    let answers = String::from_utf8_lossy(&exchange(gate, &two)).into_owned();
    assert_eq!(
        answers.matches("HTTP/1.1 200").count(),
        2,
        "requests that come together are answered in turn: {answers}"
    );
}
