//! A bucket on this machine that misbehaves when it is told to: a server of others behind a proxy of ours, which answers
//! for it, is slow, or cuts connections.
//! Never reaches beyond this machine. Invariant: the server ends with whoever started it.
//!
//! | file | what it owns |
//! |---|---|
//! | `proxy.rs` | one request a connection, passed on or not |

mod proxy;

use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use self::proxy::Proxy;
pub use self::proxy::{Asked, Misbehaviour};

/// Runs until its input is closed, which the death of this program does too.
const SERVER: &str = "\
import logging, sys
logging.getLogger('werkzeug').setLevel(logging.ERROR)
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
";

/// The name of the bucket that there is.
pub const BUCKET: &str = "data";

/// A server with one bucket, behind a proxy.
#[derive(Debug)]
pub struct Bucket {
    proxy: Proxy,
    upstream: SocketAddr,
    server: Child,
    /// Closed by whoever drops this.
    input: Option<ChildStdin>,
}

impl Bucket {
    /// Starts it. The Python that has moto is the one that `cargo xtask python` makes.
    ///
    /// # Panics
    /// If there is no such Python.
    pub fn start() -> Self {
        let python = python();
        let mut server = Command::new(&python)
            .args(["-c", SERVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; `cargo xtask python` makes it", python.display()));
        let input = server.stdin.take();
        let mut line = String::new();
        let said = server.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        assert!(matches!(said, Some(Ok(_))), "the server says nothing");
        let port: u16 = line.trim().parse().unwrap_or_else(|_| panic!("no port: {line:?}; is moto installed?"));
        let upstream = SocketAddr::from(([127, 0, 0, 1], port));
        ask(upstream, "PUT", &format!("/{BUCKET}"));
        Self { proxy: Proxy::start(upstream), upstream, server, input }
    }

    /// From now on each request is treated as this says.
    pub fn misbehave(&self, how: impl Fn(&Asked) -> Misbehaviour + Send + Sync + 'static) {
        self.proxy.misbehave(how);
    }

    /// From now on everything is passed on.
    pub fn behave(&self) {
        self.proxy.misbehave(|_| Misbehaviour::None);
    }

    /// Every request that came, and was not only looked at.
    pub fn asked(&self) -> Vec<Asked> {
        self.proxy.asked()
    }

    /// Objects of which there are parts and nothing more, by their keys, asked for behind the proxy.
    ///
    /// # Panics
    /// If the server does not say.
    pub fn uploads(&self) -> Vec<String> {
        let answer = ask(self.upstream, "GET", &format!("/{BUCKET}?uploads"));
        answer.split("<Key>").skip(1).map(|rest| rest.split("</Key>").next().unwrap_or_default().to_owned()).collect()
    }

    /// What leads a client here, by the names of the variables of AWS.
    pub fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.proxy.address());
        let pairs = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn python() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    env::var_os("PLIMSOLL_PYTHON").map_or(own, PathBuf::from)
}

/// Asks the server itself, and gives its answer.
fn ask(server: SocketAddr, method: &str, target: &str) -> String {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    let request =
        format!("{method} {target} HTTP/1.1\r\nHost: {server}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the server takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}
