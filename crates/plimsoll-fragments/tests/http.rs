//! Fetching from servers that are honest, slow, broken and hostile.

mod model;
#[expect(dead_code, reason = "only what makes a model is of use here")]
mod weights;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_fragments::FragmentError;
use plimsoll_fragments::http::{Origin, PullWatch, Server, pull, pull_index};
use plimsoll_fragments::store::{DiskStore, StoreLimits};
use tempfile::TempDir;

const NO_RESERVE: StoreLimits = StoreLimits { bytes: None, reserve: 0 };
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const SOON: Duration = Duration::from_secs(1);

fn store() -> (TempDir, DiskStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = DiskStore::open(folder.path(), NO_RESERVE).unwrap();
    (folder, store)
}

/// Our own server, until it is dropped.
struct Serving {
    url: String,
    served: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Serving {
    fn of(path: &Path) -> Self {
        let server = Server::bind(LOOPBACK, &[path]).unwrap();
        let url = format!("http://{}/{}", server.address().unwrap(), path.file_name().unwrap().to_string_lossy());
        let (served, is_over) = (server.served(), Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || server.run(|| over.load(Ordering::Relaxed)).unwrap());
        Self { url, served, is_over, thread: Some(thread) }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn pull_all(store: &DiskStore, url: &str) -> Result<u64, FragmentError> {
    let origin = Origin::open_within(url, SOON)?;
    let watch = PullWatch::default();
    let model = pull_index(store, &origin, &watch)?;
    pull(store, &origin, &model.index.fragments_for(1.0), &watch).map(|pulled| pulled.fetched)
}

#[test]
fn everything_is_fetched_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = model::packed(folder.path(), &model::small_model());
    let serving = Serving::of(&path);
    let (_folder, store) = store();
    let length = fs::metadata(&path).unwrap().len();
    let all: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| pull_all(&store, &serving.url).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let file = plimsoll_fragments::file::FragmentFile::open(&path).unwrap();
    let index = &file.model().index;
    assert_eq!(all, index.fragments_for(1.0).iter().map(|fragment| fragment.bytes).sum::<u64>());
    assert!(serving.served.load(Ordering::Relaxed) <= length + 3 * 64, "each byte once, and the head for each");
    assert_eq!(pull_all(&store, &serving.url).unwrap(), 0, "nothing is fetched again");
    for fragment in index.fragments_for(1.0) {
        assert_eq!(store.read(&fragment).unwrap().unwrap(), file.read(&fragment).unwrap());
    }
    assert_eq!(store.recall(&serving.url).unwrap().unwrap().id, file.model().id);
}

#[test]
fn ranges_are_served_as_the_standard_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = model::packed(folder.path(), &model::small_model());
    let bytes = fs::read(&path).unwrap();
    let serving = Serving::of(&path);
    let address = serving.url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let ask = |head: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(format!("{head}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        (String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase(), answer[end + 4..].to_vec())
    };
    let (head, body) = ask("GET /model.frags HTTP/1.1\r\nRange: bytes=10-19");
    assert!(
        head.starts_with("http/1.1 206") && head.contains(&format!("content-range: bytes 10-19/{}", bytes.len())),
        "{head}"
    );
    assert_eq!(body, bytes[10..20]);
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    assert_eq!(ask("GET /model.frags HTTP/1.1\r\nRange: bytes=-5").1, bytes[bytes.len() - 5..]);
    assert_eq!(ask("GET /model.frags HTTP/1.1\r\nRange: bytes=100-").1, bytes[100..]);
    assert_eq!(ask(&format!("GET /model.frags HTTP/1.1\r\nRange: bytes=0-3\r\nIf-Range: {etag}")).1, bytes[..4]);
    assert_eq!(ask("GET /model.frags HTTP/1.1\r\nRange: bytes=0-3\r\nIf-Range: \"another\"").1, bytes);
    assert_eq!(ask("GET /model.frags HTTP/1.1").1, bytes);
    assert_eq!(ask("HEAD /model.frags HTTP/1.1").1, b"");
    assert!(ask("GET /model.frags HTTP/1.1\r\nRange: bytes=99999999999-").0.starts_with("http/1.1 416"));
    assert!(ask("GET /../secret HTTP/1.1").0.starts_with("http/1.1 404"));
    assert!(ask("POST /model.frags HTTP/1.1\r\nContent-Length: 0").0.starts_with("http/1.1 405"));
}

/// A server that answers each request for a range as a function says.
fn hostile(answer: impl Fn(u64, u64, &mut TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let url = format!("http://{}/model.frags", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            thread::spawn(move || {
                let mut range = None;
                for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                    let Ok(line) = line else { return };
                    if line.is_empty() {
                        break;
                    }
                    let asked = line.to_lowercase();
                    let numbers = asked.strip_prefix("range: bytes=").and_then(|range| range.split_once('-'));
                    range = numbers.map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).or(range);
                }
                let (first, last) = range.unwrap_or((0, 0));
                answer(first, last, &mut stream);
            });
        }
    });
    url
}

fn head(first: u64, last: u64, length: usize) -> String {
    let bytes = last - first + 1;
    format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {bytes}\r\nContent-Range: bytes {first}-{last}/{length}\r\nConnection: close\r\n\r\n"
    )
}

fn small() -> Arc<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    Arc::new(fs::read(model::packed(folder.path(), &model::small_model())).unwrap())
}

/// What a pull from such a server ends with, and how long that took.
fn ends(url: &str) -> (FragmentError, Duration, TempDir) {
    let (folder, store) = store();
    let begun = Instant::now();
    let error = pull_all(&store, url).expect_err("such a server gives no model");
    (error, begun.elapsed(), folder)
}

#[test]
fn servers_that_lie_are_found_out() {
    let bytes = small();
    type Answer = Box<dyn Fn(&[u8], u64, u64, &mut TcpStream) + Send + Sync>;
    let send = |text: String| -> Answer { Box::new(move |_, _, _, stream| drop(stream.write_all(text.as_bytes()))) };
    let lies: Vec<(&str, Answer)> = vec![
        ("no ranges", send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".to_owned())),
        ("no such file", send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned())),
        ("nothing", Box::new(|_, _, _, _| {})),
        ("no HTTP", send("SSH-2.0-OpenSSH_9.2\r\n".to_owned())),
        ("nowhere", send("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_owned())),
        (
            "another host",
            send(
                "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n".to_owned(),
            ),
        ),
        (
            "another scheme",
            send("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n".to_owned()),
        ),
        (
            "round and round",
            send("HTTP/1.1 302 Found\r\nLocation: /model.frags\r\nContent-Length: 0\r\n\r\n".to_owned()),
        ),
        (
            "another range",
            Box::new(|bytes, first, last, stream| {
                drop(stream.write_all(head(first + 1, last + 1, bytes.len()).as_bytes()));
            }),
        ),
        (
            "a shorter range",
            Box::new(|bytes, first, last, stream| {
                drop(stream.write_all(head(first, last - 1, bytes.len()).as_bytes()));
            }),
        ),
        (
            "fewer bytes than it says",
            Box::new(|bytes, first, last, stream| {
                drop(stream.write_all(head(first, last, bytes.len()).as_bytes()));
                drop(stream.write_all(&bytes[first as usize..(first + last) as usize / 2]));
            }),
        ),
        (
            "an absurd length",
            Box::new(|_, first, last, stream| {
                drop(stream.write_all(head(first, last, usize::MAX).as_bytes()));
                drop(stream.write_all(&[7; 64]));
            }),
        ),
        (
            "other bytes",
            Box::new(|bytes, first, last, stream| {
                drop(stream.write_all(head(first, last, bytes.len()).as_bytes()));
                let mut other = bytes[first as usize..=last as usize].to_vec();
                if first > 64 && (last as usize) < bytes.len() / 2 {
                    other[3] ^= 1;
                } else if first == 64 {
                    other[9] ^= 1;
                }
                drop(stream.write_all(&other));
            }),
        ),
    ];
    for (name, lie) in lies {
        let bytes = Arc::clone(&bytes);
        let url = hostile(move |first, last, stream| lie(&bytes, first, last, stream));
        let (error, took, folder) = ends(&url);
        assert!(took < Duration::from_secs(20), "{name}: {took:?}");
        let wrong = matches!(
            error,
            FragmentError::Server { .. } | FragmentError::Damaged { .. } | FragmentError::Malformed { .. }
        );
        assert!(wrong, "{name}: {error}");
        println!("{name}: {error}");
        let names = fs::read_dir(folder.path().join("objects")).unwrap().count();
        assert!(name == "other bytes" || names <= 1, "{name}: nothing but the index can be there");
    }
}

/// A server does not choose for the user whom he asks: another place that has the very file is not even connected to.
#[test]
fn nobody_is_sent_on_to_another_host() {
    let bytes = small();
    let asked = Arc::new(AtomicU64::new(0));
    let (of, counted) = (Arc::clone(&bytes), Arc::clone(&asked));
    let elsewhere = hostile(move |first, last, stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        drop(stream.write_all(head(first, last, of.len()).as_bytes()));
        drop(stream.write_all(&of[first as usize..=last as usize]));
    });
    let to = elsewhere.clone();
    let sends_on = hostile(move |_, _, stream| {
        let answer = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        drop(stream.write_all(answer.as_bytes()));
    });
    let (error, ..) = ends(&sends_on);
    assert!(error.to_string().contains("sends on to"), "{error}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let (_folder, store) = store();
    assert!(pull_all(&store, &elsewhere).unwrap() > 0, "whoever is asked by the user is asked");
}

#[test]
fn slow_and_endless_servers_are_given_up() {
    let bytes = small();
    let of = Arc::clone(&bytes);
    let drip = hostile(move |first, last, stream| {
        drop(stream.write_all(head(first, last, of.len()).as_bytes()));
        for at in first..=last {
            if stream.write_all(&of[at as usize..=at as usize]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(if last == 63 { 0 } else { 50 }));
        }
    });
    let (error, took, _folder) = ends(&drip);
    assert!(took < Duration::from_secs(30), "{error} after {took:?}");
    let never = hostile(|_, _, _| thread::sleep(Duration::from_secs(600)));
    let (error, took, _folder) = ends(&never);
    assert!(took < Duration::from_secs(10), "{error} after {took:?}");
    let endless_head = hostile(|_, _, stream| {
        let _ = stream.write_all(b"HTTP/1.1 206 Partial Content\r\n");
        while stream.write_all(b"X-More: more more more more more more\r\n").is_ok() {}
    });
    let (error, took, _folder) = ends(&endless_head);
    assert!(took < Duration::from_secs(10), "{error} after {took:?}");
}

/// The connection breaks again and again: what came stays, and the rest is asked for.
#[test]
fn a_line_that_breaks_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let floats =
        weights::to_bytes(&weights::Kind::Gaussian.weights(3_000_000, 8), plimsoll_fragments::data_type::Float::F32);
    let file = model::safetensors(&[("big", "F32", &[3_000_000], floats)]);
    let bytes = Arc::new(fs::read(model::packed(folder.path(), &file)).unwrap());
    let (of, given) = (Arc::clone(&bytes), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&given);
    let breaking = hostile(move |first, last, stream| {
        drop(stream.write_all(head(first, last, of.len()).as_bytes()));
        let until = last.min(first + (1 << 20) - 1);
        if stream.write_all(&of[first as usize..=until as usize]).is_ok() {
            counted.fetch_add(until - first + 1, Ordering::Relaxed);
        }
    });
    let (_folder, store) = store();
    pull_all(&store, &breaking).unwrap();
    assert!(given.load(Ordering::Relaxed) < bytes.len() as u64 * 11 / 10, "hardly a byte twice");
}

/// A reader that takes nothing does not keep the server from others.
#[test]
fn many_idle_clients_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = model::packed(folder.path(), &model::small_model());
    let serving = Serving::of(&path);
    let address = serving.url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let idle: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let (_folder, store) = store();
    assert!(pull_all(&store, &serving.url).unwrap() > 0);
    drop(idle);
}
