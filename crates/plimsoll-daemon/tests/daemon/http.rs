//! The API over HTTP: what it answers, to whom, and what it refuses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use plimsoll_core::rng::Rng;
use plimsoll_daemon::wire::{Say, State};
use serde_json::{Value, json};

use crate::rig::{MIB, Rig, until};

fn bearer(rig: &Rig) -> String {
    format!("Bearer {}", rig.token())
}

#[test]
fn a_lease_lives_over_http() {
    let rig = Rig::new();
    let bearer = bearer(&rig);
    let token = [("authorization", bearer.as_str())];
    let ask = json!({ "name": "curl", "kind": "llm", "ladder": [{ "bytes": 600 * MIB }, { "bytes": 300 * MIB, "quality": 0.5 }], "ttl_ms": 2_000 });
    let (status, body) = rig.http("POST", "/api/leases", &token, &ask.to_string());
    assert_eq!(status, 201, "{body}");
    let Say::Granted(granted) = serde_json::from_str(&body).unwrap() else { panic!("{body}") };
    let id = granted.lease.0;
    let (status, body) = rig.http("GET", "/api/state", &[], "");
    let state: State = serde_json::from_str(&body).unwrap();
    assert_eq!((status, state.devices[0].promised), (200, granted.bytes));
    for (path, body) in [
        ("heartbeat", ""),
        ("pin", "{\"pinned\":true}"),
        ("priority", "{\"priority\":\"high\"}"),
        ("batch", "{\"items\":3}"),
        ("step", "{\"rung\":1}"),
        ("rise", "{\"rung\":0}"),
    ] {
        let (status, said) = rig.http("POST", &format!("/api/leases/{id}/{path}"), &token, body);
        assert_eq!(status, 200, "{path}: {said}");
    }
    let (status, why) = rig.http("GET", &format!("/api/leases/{id}/why"), &[], "");
    assert!(status == 200 && why.contains("pinned"), "{why}");
    let (status, metrics) = rig.http("GET", "/metrics", &[], "");
    assert!(status == 200 && metrics.contains("plimsoll_leases 1"), "{metrics}");
    let (status, history) = rig.http("GET", "/api/history", &[], "");
    assert!(status == 200 && history.contains("gpu0"), "{history}");
    assert_eq!(rig.http("DELETE", &format!("/api/leases/{id}"), &token, "").0, 200);
    assert_eq!(rig.http("DELETE", &format!("/api/leases/{id}"), &token, "").0, 404, "not twice");
    assert_eq!(rig.http("GET", &format!("/api/leases/{id}"), &[], "").0, 404);
    let too_much = json!({ "name": "curl", "ladder": [{ "bytes": 60_000 * MIB }] });
    assert_eq!(rig.http("POST", "/api/leases", &token, &too_much.to_string()).0, 409);
}

#[test]
fn a_lease_without_a_heartbeat_ends() {
    let rig = Rig::new();
    let ask = json!({ "name": "curl", "ladder": [{ "bytes": MIB }], "ttl_ms": 1_000 });
    let (status, body) = rig.http("POST", "/api/leases", &[("authorization", &bearer(&rig))], &ask.to_string());
    assert_eq!(status, 201, "{body}");
    until("its end", || match rig.state().devices[0].promised {
        0 => Ok(()),
        promised => Err(promised.to_string()),
    });
}

#[test]
fn strangers_are_refused() {
    let rig = Rig::new();
    let lease = json!({ "name": "evil", "ladder": [{ "bytes": MIB }] }).to_string();
    let post = |headers: &[(&str, &str)]| rig.http("POST", "/api/leases", headers, &lease).0;
    let bearer = bearer(&rig);
    assert_eq!(post(&[]), 401);
    assert_eq!(post(&[("authorization", "Bearer 0123456789abcdef")]), 401);
    assert_eq!(post(&[("authorization", &bearer[..bearer.len() - 1])]), 401);
    assert_eq!(post(&[("authorization", &bearer), ("origin", "http://evil.example")]), 403);
    assert_eq!(post(&[("authorization", &bearer), ("host", "evil.example")]), 421);
    assert_eq!(rig.http("GET", "/api/state", &[("origin", "http://evil.example")], "").0, 403);
    assert_eq!(rig.http("GET", "/", &[("host", "evil.example:80")], "").0, 421);
    assert_eq!(rig.http("DELETE", "/api/leases/1", &[], "").0, 401);
    assert_eq!(rig.state().devices[0].promised, 0);
}

#[test]
fn what_is_too_large_or_too_slow_ends() {
    let rig = Rig::new();
    let token = bearer(&rig);
    let large = "x".repeat(65 << 10);
    assert_eq!(rig.http("POST", "/api/leases", &[("authorization", &token)], &large).0, 413);
    let many: String = (0..2_000).map(|at| format!("x-{at}: {}\r\n", "y".repeat(100))).collect();
    let answer = rig.http_raw(format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes());
    assert!(answer.contains("431") || answer.is_empty(), "{answer}");
    // One that never ends its headers is let go; the others are served meanwhile.
    let mut slow: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(rig.address()).unwrap()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET / HTTP/1.1\r\nx: ").unwrap());
    // So is one whose body does not come.
    let mut bodiless = TcpStream::connect(rig.address()).unwrap();
    let head = format!("POST /api/leases HTTP/1.1\r\nhost: {}\r\nauthorization: {token}\r\n", rig.address());
    write!(bodiless, "{head}connection: close\r\ncontent-length: 46\r\n\r\n{{").unwrap();
    assert_eq!(rig.http("GET", "/api/state", &[], "").0, 200);
    let rest = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the daemon closes it");
        String::from_utf8(rest).unwrap()
    };
    slow.iter_mut().for_each(|stream| drop(rest(stream)));
    let said = rest(&mut bodiless);
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("did not arrive in time"), "{said}");
}

#[test]
fn fuzzed_requests_do_no_harm() {
    let rig = Rig::new();
    let mut rng = Rng::new(9);
    let token = bearer(&rig);
    let whole = format!(
        "POST /api/leases HTTP/1.1\r\nhost: {}\r\nauthorization: {token}\r\ncontent-length: 46\r\n\r\n{{\"name\":\"fuzz\",\"ladder\":[{{\"bytes\":1048576}}]}}\n",
        rig.address()
    );
    for _ in 0..200 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..rng.within(1, 6) {
            let at = rng.below(bytes.len().max(1));
            match rng.below(3) {
                0 if !bytes.is_empty() => bytes[at] = rng.roll() as u8,
                1 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let mut stream = TcpStream::connect(rig.address()).unwrap();
        let _ = stream.write_all(&bytes);
        stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let _ = stream.read(&mut [0; 64]);
    }
    assert_eq!(rig.http("GET", "/api/state", &[], "").0, 200);
}

#[test]
fn every_route_is_described_and_everything_described_is_served() {
    let rig = Rig::new();
    let (status, body) = rig.http("GET", "/api/openapi.json", &[], "");
    let description: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, description["openapi"].as_str()), (200, Some("3.1.0")));
    let token = bearer(&rig);
    let mut described = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            described += 1;
            if path == "/api/stream" {
                continue;
            }
            let path = path.replace("{id}", "77");
            let (status, said) = rig.http(&method.to_uppercase(), &path, &[("authorization", &token)], "{}");
            assert!(status != 405 && !said.contains("no such page"), "{method} {path}: {status} {said}");
        }
    }
    assert_eq!(described, 16);
    let (status, _) = rig.http("GET", "/api/nothing", &[], "");
    assert_eq!(status, 404);
}

#[test]
fn what_happens_is_streamed() {
    let rig = Rig::new();
    let mut stream = TcpStream::connect(rig.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET /api/stream HTTP/1.1\r\nhost: {}\r\n\r\n", rig.address()).unwrap();
    let mut said = String::new();
    let mut read_until = |wanted: &str| {
        let mut buffer = [0; 4096];
        while !said.contains(wanted) {
            let read = stream.read(&mut buffer).unwrap_or_else(|error| panic!("{wanted}: {error}: {said}"));
            assert!(read > 0, "{wanted}: {said}");
            said.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    };
    read_until("event: state");
    let mut client = rig.client();
    client.lease(crate::rig::wants("streamed", 10)).unwrap();
    read_until("\"what\":\"granted\"");
    read_until("\"promised\":10485760");
}
