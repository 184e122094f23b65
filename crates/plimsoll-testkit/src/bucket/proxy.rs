//! A proxy for HTTP that takes one request a connection and passes it on, answers it itself, or breaks it.
//! Never understands what it passes on. Invariant: what was asked is noted before it is passed on.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes of a request before its body, at most.
const HEAD_MAX: usize = 64 << 10;
/// How long the server may take: then the connection is closed, so that no thread is left for good.
const SERVER_MAX: Duration = Duration::from_secs(60);

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Which request it is, from 0 on.
    pub number: usize,
    /// `GET`, `PUT`, ….
    pub method: String,
    /// Path and query.
    pub target: String,
}

/// What is done to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It is passed on, and its answer back.
    #[default]
    None,
    /// It is answered with this status and code, and not passed on.
    Status(u16, &'static str),
    /// It is passed on after a while.
    Slow(Duration),
    /// The connection is closed in the middle of the request, which is not passed on.
    CutRequest,
    /// It is passed on and done, and the connection closed in the middle of the answer.
    CutAnswer,
}

type How = Box<dyn Fn(&Asked) -> Misbehaviour + Send + Sync>;

pub(super) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: SocketAddr,
    how: Mutex<How>,
    asked: Mutex<Vec<Asked>>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Proxy {
    pub(super) fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let how: How = Box::new(|_| Misbehaviour::None);
        let shared = Arc::new(Shared { upstream, how: Mutex::new(how), asked: Mutex::default() });
        let of_thread = Arc::clone(&shared);
        // Ends with the program.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&of_thread);
                thread::spawn(move || shared.serve(client));
            }
        });
        Self { address, shared }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn misbehave(&self, how: impl Fn(&Asked) -> Misbehaviour + Send + Sync + 'static) {
        *self.shared.how.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(how);
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Shared {
    /// A client that goes away is no error.
    fn serve(&self, mut client: TcpStream) {
        let _ = client.set_read_timeout(Some(SERVER_MAX));
        if let Ok(Some((head, begun))) = read_head(&mut client) {
            let _ = self.answer(&mut client, &head, begun);
        }
        let _ = client.shutdown(Shutdown::Both);
    }

    fn answer(&self, client: &mut TcpStream, head: &str, begun: Vec<u8>) -> io::Result<()> {
        match self.note(head) {
            Misbehaviour::None => self.pass(client, head, begun, false),
            Misbehaviour::Slow(wait) => {
                thread::sleep(wait);
                self.pass(client, head, begun, false)
            }
            Misbehaviour::CutAnswer => self.pass(client, head, begun, true),
            Misbehaviour::CutRequest => Ok(()),
            Misbehaviour::Status(status, code) => {
                read_body(client, head, begun)?;
                let text =
                    format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>as told</Message></Error>");
                write!(
                    client,
                    "HTTP/1.1 {status} Told\r\nContent-Length: {}\r\nContent-Type: application/xml\r\nConnection: close\r\n\r\n{text}",
                    text.len()
                )
            }
        }
    }

    fn note(&self, head: &str) -> Misbehaviour {
        let mut words = head.split_whitespace().map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let asked = {
            let mut all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let asked = Asked { number: all.len(), method, target };
            all.push(asked.clone());
            asked
        };
        (self.how.lock().unwrap_or_else(PoisonError::into_inner))(&asked)
    }

    fn pass(&self, client: &mut TcpStream, head: &str, begun: Vec<u8>, is_cut: bool) -> io::Result<()> {
        let body = read_body(client, head, begun)?;
        let mut server = TcpStream::connect(self.upstream)?;
        server.set_read_timeout(Some(SERVER_MAX))?;
        // One request a connection: whatever the client asked, the server closes.
        let lines = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
        let head: Vec<&str> = lines.take_while(|line| !line.is_empty()).chain(["Connection: close", "", ""]).collect();
        server.write_all(head.join("\r\n").as_bytes())?;
        server.write_all(&body)?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        let sent = if is_cut { answer.len() / 2 } else { answer.len() };
        client.write_all(&answer[..sent])
    }
}

/// Everything before the body, and what came of that.
fn read_head(client: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let (mut read, mut piece) = (Vec::new(), [0; 4096]);
    while read.len() < HEAD_MAX {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let body = read.split_off(end + 4);
            return Ok(Some((String::from_utf8_lossy(&read).into_owned(), body)));
        }
        match client.read(&mut piece)? {
            0 => return Ok(None),
            bytes => read.extend_from_slice(&piece[..bytes]),
        }
    }
    Ok(None)
}

fn read_body(client: &mut TcpStream, head: &str, mut body: Vec<u8>) -> io::Result<Vec<u8>> {
    let length = head.lines().filter_map(|line| line.split_once(':'));
    let length = length.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0);
    let missing = length.saturating_sub(body.len());
    client.take(missing as u64).read_to_end(&mut body)?;
    Ok(body)
}
