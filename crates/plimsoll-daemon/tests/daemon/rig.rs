//! A daemon of a test's own, in a folder of its own, and processes that are its clients.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll::book::Book;
use plimsoll_core::Bytes;
use plimsoll_daemon::client::Client;
use plimsoll_daemon::wire::{LeaseRequest, Rung, State};

pub(crate) const MIB: u64 = 1 << 20;
/// The longest that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something holds, and panics with what was last seen if it does not.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    within(PATIENCE, what, &mut look)
}

pub(crate) fn within<T>(patience: Duration, what: &str, look: &mut impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + patience;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if Instant::now() > end => panic!("{what} did not come within {patience:?}: {seen}"),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

pub(crate) fn wants(name: &str, mib: u64) -> LeaseRequest {
    let ladder = vec![Rung { bytes: mib * MIB, quality: 1.0, switch_ms: 0 }];
    let text = serde_json::json!({ "name": name, "ladder": ladder });
    serde_json::from_value(text).unwrap()
}

/// A process that a test started; it does not outlive the test.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(part: &str, folder: &Path, orders: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_daemon-part"));
        command.arg(part).arg(folder).args(orders);
        Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// A daemon whose files end at so many bytes, as if the disk were full. A write beyond that is an error, and no signal.
    #[cfg(target_os = "linux")]
    pub(crate) fn daemon_with_files_of(folder: &Path, bytes: u64) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" daemon \"$1\"", env!("CARGO_BIN_EXE_daemon-part")]).arg(folder);
        let daemon = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let daemon = Self(daemon);
        daemon.limit_files(bytes);
        daemon
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn limit_files(&self, bytes: u64) {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap());
        let limit = Rlimit { current: Some(bytes), maximum: None };
        prlimit(pid, Resource::Fsize, limit).unwrap();
    }

    /// A client that holds a lease of so many MiB, and uses it.
    pub(crate) fn holder(folder: &Path, mib: u64) -> Self {
        Self::start("holder", folder, &[&mib.to_string()])
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Waits until a holder has its lease.
    pub(crate) fn is_holding(&mut self) {
        let mut lines = BufReader::new(self.0.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("held ")), "it ended without a lease");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A daemon that shares one device of 10,000 MiB.
pub(crate) struct Rig {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) daemon: Process,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with_daemon(|folder| Process::start("daemon", folder, &[]))
    }

    /// With a daemon that is started this way.
    pub(crate) fn with_daemon(start: impl FnOnce(&Path) -> Process) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("uses")).unwrap();
        let script = "[[devices]]\nname = 'gpu0'\ncapacity = '10000MiB'\nin_book = 'card'\nuses_folder = 'uses'\n";
        fs::write(folder.path().join("truth.toml"), script).unwrap();
        let daemon = start(folder.path());
        let mut rig = Self { folder, daemon };
        rig.wait_ready();
        rig
    }

    fn wait_ready(&mut self) {
        let path = self.folder.path().join("address");
        until("the daemon", || {
            if let Some(status) = self.daemon.0.try_wait().unwrap() {
                return Err(format!("it ended: {status}"));
            }
            fs::read_to_string(&path).map_err(|error| error.to_string())
        });
        // In its first moments a lease waits until the book was looked at.
        let book = Book::at(self.folder.path().join("book"));
        until("the daemon in the book", || {
            let entries = book.entries().map_err(|error| error.to_string())?;
            let is_in = entries.iter().any(|entry| entry.allotted > Bytes::ZERO);
            if is_in { Ok(()) } else { Err(format!("{entries:?}")) }
        });
    }

    pub(crate) fn restart(&mut self) {
        let _ = fs::remove_file(self.folder.path().join("address"));
        self.daemon = Process::start("daemon", self.folder.path(), &[]);
        self.wait_ready();
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("run/serve.sock")
    }

    pub(crate) fn client(&self) -> Client {
        until("a connection", || Client::connect(&self.socket()).map_err(|error| error.to_string()))
    }

    pub(crate) fn state(&self) -> State {
        self.client().state().unwrap()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        fs::read_to_string(self.folder.path().join("address")).unwrap().parse().unwrap()
    }

    pub(crate) fn token(&self) -> String {
        fs::read_to_string(self.folder.path().join("run/token")).unwrap()
    }

    /// Sends bytes over HTTP and reads all that comes back.
    pub(crate) fn http_raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Asks over HTTP: the status and the body.
    pub(crate) fn http(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        let host = self.address().to_string();
        let with_host = [("host", host.as_str())];
        let has_host = headers.iter().any(|(name, _)| *name == "host");
        for (name, value) in headers.iter().chain(with_host.iter().filter(|_| !has_host)) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let answer = self.http_raw(format!("{text}\r\n{body}").as_bytes());
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, body.to_owned())
    }
}
