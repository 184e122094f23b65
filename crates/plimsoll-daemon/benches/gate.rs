//! What the gate adds to a request: the same requests to the same server, directly and through the gate, in turn.
//! Prints medians and their difference. Run it with `cargo bench -p plimsoll-daemon --bench gate`.

#[path = "../tests/fakes/server.rs"]
#[expect(dead_code, reason = "the benchmark uses a part of the server")]
mod server;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_daemon::engines::EngineKind;
use plimsoll_daemon::gate::room::Always;
use plimsoll_daemon::gate::{Gate, GateLimits, Target};

const ROUNDS: usize = 3_000;

fn main() {
    let origin = server::Server::start(0, |request, to| match request.path() {
        "/stream" => {
            to.begin_chunks("application/x-ndjson", "")?;
            for piece in 0..20 {
                to.chunk(format!("{{\"piece\": {piece}}}\n").as_bytes())?;
            }
            to.end_chunks("")
        }
        _ => to.reply(200, "application/json", ["x".repeat(997).as_str(), "END"].concat().as_bytes()),
    })
    .expect("a port");
    let gate = start_gate(origin.address);
    let body = "x".repeat(500);
    let short = format!("POST /api/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n{body}");
    let stream = format!("POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n{body}");
    for (name, request, end) in [("answer of 1 kB", short, &b"END"[..]), ("stream of 20 pieces", stream, b"0\r\n\r\n")]
    {
        compare(&format!("{name}, kept connection"), origin.address, gate, true, &request, end);
        compare(&format!("{name}, new connection"), origin.address, gate, false, &request, end);
    }
}

fn start_gate(engine: SocketAddr) -> SocketAddr {
    let target = Target { engine: "ollama".to_owned(), kind: EngineKind::Ollama, address: engine };
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(listener.local_addr().expect("an address")).expect("somebody waits");
            Gate::new(target, GateLimits::default(), Always).serve(listener).await;
        });
    });
    told.recv().expect("an address")
}

fn compare(name: &str, direct: SocketAddr, gate: SocketAddr, keep: bool, request: &str, end: &[u8]) {
    let (mut to_direct, mut to_gate) = (None, None);
    let (mut times_direct, mut times_gate) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        times_direct.push(one(direct, &mut to_direct, keep, request, end));
        times_gate.push(one(gate, &mut to_gate, keep, request, end));
    }
    let (direct, gate) = (median(times_direct), median(times_gate));
    println!(
        "{name}: direct {:.3} ms, through the gate {:.3} ms, added {:.3} ms at the median ({:.2} times)",
        milliseconds(direct),
        milliseconds(gate),
        milliseconds(gate.saturating_sub(direct)),
        gate.as_secs_f64() / direct.as_secs_f64()
    );
}

fn one(to: SocketAddr, kept: &mut Option<TcpStream>, keep: bool, request: &str, end: &[u8]) -> Duration {
    let began = Instant::now();
    let mut stream = kept.take().unwrap_or_else(|| {
        let stream = TcpStream::connect(to).expect("a connection");
        stream.set_nodelay(true).expect("a connection");
        stream
    });
    stream.write_all(request.as_bytes()).expect("a request");
    let mut buffer = [0; 8192];
    let mut heard = Vec::new();
    while !heard.ends_with(end) {
        let count = stream.read(&mut buffer).expect("an answer");
        assert!(count > 0, "the answer broke off");
        heard.extend_from_slice(&buffer[..count]);
    }
    let took = began.elapsed();
    if keep {
        *kept = Some(stream);
    }
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
