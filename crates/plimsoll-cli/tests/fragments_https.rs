//! `plimsoll fragments` over HTTPS: from a server whose certificate is trusted, and from none whose certificate is not.
//! The certificates in `tls/` are made for these tests and trusted by nobody else; they last until 2120.

mod shell;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use shell::{Folder, stderr};

/// A file of these tests, by its whole path: commands run in folders of their own.
fn tls(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// What the server does with a request for a range.
#[derive(Copy, Clone)]
enum Answer {
    Range,
    SendTo(&'static str),
}

/// A server that shows this certificate and gives ranges of one file, until the test ends.
struct TlsServer {
    url: String,
    served: Arc<AtomicU64>,
}

impl TlsServer {
    fn of(file: Vec<u8>, certificate: &str, answer: Answer) -> Self {
        let chain = vec![CertificateDer::from_pem_file(tls(certificate)).unwrap()];
        let key = PrivateKeyDer::from_pem_file(tls("server.key")).unwrap();
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(ring).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://127.0.0.1:{}/model.frags", listener.local_addr().unwrap().port());
        let (served, file) = (Arc::new(AtomicU64::new(0)), Arc::new(file));
        let counted = Arc::clone(&served);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, file, counted) = (Arc::clone(&config), Arc::clone(&file), Arc::clone(&counted));
                thread::spawn(move || one_request(stream, config, &file, answer, &counted));
            }
        });
        Self { url, served }
    }
}

/// Clients that do not like the certificate leave in the middle: that is none of the server's business.
fn one_request(stream: TcpStream, config: Arc<ServerConfig>, file: &[u8], answer: Answer, served: &AtomicU64) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(config).unwrap(), stream));
    let mut range = None;
    loop {
        let mut line = String::new();
        if !stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            return;
        }
        let line = line.trim_end().to_lowercase();
        let asked = line.strip_prefix("range: bytes=").and_then(|range| range.split_once('-'));
        range = asked.map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap())).or(range);
        if line.is_empty() {
            break;
        }
    }
    let (first, last): (usize, usize) = range.unwrap_or((0, file.len() - 1));
    let head = match answer {
        Answer::SendTo(url) => format!("HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0"),
        Answer::Range => format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {first}-{last}/{}",
            last - first + 1,
            file.len()
        ),
    };
    let mut stream = stream.into_inner();
    let mut sent = stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes());
    if matches!(answer, Answer::Range) {
        sent = sent.and_then(|()| stream.write_all(&file[first..=last]));
        served.fetch_add((last - first + 1) as u64, Ordering::Relaxed);
    }
    if sent.and_then(|()| stream.flush()).is_ok() {
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }
}

/// A packed model in `folder`, as a safetensors file and as fragments.
fn packed(folder: &Folder) -> (Vec<u8>, Vec<u8>) {
    let weights: Vec<u8> = (0..60_000_u32).flat_map(|n| ((n as f32) * 0.37).sin().to_le_bytes()).collect();
    let header = format!("{{\"w\":{{\"dtype\":\"F32\",\"shape\":[60000],\"data_offsets\":[0,{}]}}}}", weights.len());
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &weights].concat();
    folder.write("model.safetensors", &file);
    folder.works("plimsoll fragments pack -q model.safetensors");
    (file, folder.read("model.frags"))
}

fn pull(trusted: &str, url: &str) -> String {
    format!("SSL_CERT_FILE={} plimsoll fragments pull --store store --disk-reserve 0 {url}", tls(trusted).display())
}

#[test]
fn a_model_comes_over_https_each_byte_once() {
    let folder = Folder::new();
    let (file, frags) = packed(&folder);
    let length = frags.len() as u64;
    let server = TlsServer::of(frags, "here.pem", Answer::Range);
    folder.works(&pull("ca.pem", &server.url));
    let served = server.served.load(Ordering::Relaxed);
    assert!(served <= length, "{served} of {length}: each byte once");
    let trusted = tls("ca.pem");
    folder.works(&format!(
        "SSL_CERT_FILE={} plimsoll fragments restore --store store -q {} -o again.safetensors",
        trusted.display(),
        server.url
    ));
    assert!(folder.read("again.safetensors") == file, "the very bytes");
    assert!(server.served.load(Ordering::Relaxed) <= served + 64, "nothing but the head is asked for again");
}

#[test]
fn a_certificate_that_is_not_trusted_is_refused_and_nothing_is_kept() {
    let folder = Folder::new();
    let (_, frags) = packed(&folder);
    for (certificate, trusted, says) in [
        ("here.pem", "other.pem", "UnknownIssuer"),
        ("elsewhere.pem", "ca.pem", "not valid for name"),
        ("expired.pem", "ca.pem", "expired"),
    ] {
        let server = TlsServer::of(frags.clone(), certificate, Answer::Range);
        let output = folder.shell(&pull(trusted, &server.url));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{certificate}: {said}");
        assert!(said.contains("its certificate is not trusted") && said.contains(says), "{certificate}: {said}");
        assert!(said.contains("SSL_CERT_FILE"), "what to do about it: {said}");
        assert_eq!(server.served.load(Ordering::Relaxed), 0, "{certificate}: it was not even asked");
        let objects = fs::read_dir(folder.at("store/objects")).map_or(0, Iterator::count);
        assert_eq!(objects, 0, "{certificate}");
    }
}

/// A server without TLS behind an https address, and one that sends on to where there is none.
#[test]
fn https_never_becomes_less() {
    let folder = Folder::new();
    let (_, frags) = packed(&folder);
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = plain.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in plain.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        }
    });
    let output = folder.shell(&pull("ca.pem", &format!("https://127.0.0.1:{port}/model.frags")));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let server = TlsServer::of(frags, "here.pem", Answer::SendTo("http://127.0.0.1:9/model.frags"));
    let output = folder.shell(&pull("ca.pem", &server.url));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("sends on to http://127.0.0.1:9/"), "{}", stderr(&output));
}
