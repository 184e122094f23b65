//! A small HTTP/1.1 server, written by hand so that it can break off wherever a test wants it to.
//! Never shares code with what is tested.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request with its body.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// With the query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The connection on which a request came.
#[derive(Debug)]
pub(crate) struct Conversation {
    reader: BufReader<TcpStream>,
    pub(crate) stream: TcpStream,
}

impl Conversation {
    pub(crate) fn reply(&mut self, status: u16, content_type: &str, body: &[u8]) -> io::Result<()> {
        let head =
            format!("HTTP/1.1 {status} .\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n", body.len());
        self.stream.write_all(&[head.as_bytes(), body].concat())
    }

    pub(crate) fn json(&mut self, status: u16, body: &serde_json::Value) -> io::Result<()> {
        self.reply(status, "application/json", body.to_string().as_bytes())
    }

    pub(crate) fn begin_chunks(&mut self, content_type: &str, more: &str) -> io::Result<()> {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{more}Transfer-Encoding: chunked\r\n\r\n");
        self.stream.write_all(head.as_bytes())
    }

    pub(crate) fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(&[format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
    }

    pub(crate) fn end_chunks(&mut self, trailers: &str) -> io::Result<()> {
        self.stream.write_all(format!("0\r\n{trailers}\r\n").as_bytes())
    }

    /// The connection ends here, whatever was promised.
    pub(crate) fn break_off(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Both)?;
        Err(io::ErrorKind::BrokenPipe.into())
    }

    /// Everything that comes is sent back, until the other side has no more.
    pub(crate) fn echo(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            let count = self.reader.read(&mut buffer)?;
            if count == 0 {
                return self.break_off();
            }
            self.stream.write_all(&buffer[..count])?;
        }
    }

    fn request(&mut self) -> io::Result<Option<Request>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() && lines.is_empty() {
                continue;
            }
            if line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let mut words = lines[0].split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let pair = |line: &String| line.split_once(": ").map(|(key, value)| (key.to_owned(), value.to_owned()));
        let headers = lines[1..].iter().filter_map(pair).collect();
        let mut request = Request { method, target, headers, body: Vec::new() };
        request.body = self.body(&request)?;
        Ok(Some(request))
    }

    fn body(&mut self, request: &Request) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if request.header("transfer-encoding").is_some() {
            loop {
                let mut line = String::new();
                self.reader.read_line(&mut line)?;
                let length = u64::from_str_radix(line.trim(), 16).map_err(|_| io::ErrorKind::InvalidData)?;
                (&mut self.reader).take(length).read_to_end(&mut body)?;
                self.reader.read_line(&mut line)?;
                if length == 0 {
                    return Ok(body);
                }
            }
        }
        let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        (&mut self.reader).take(length).read_to_end(&mut body)?;
        Ok(body)
    }
}

/// A server on a port of its own, until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Server {
    /// Serves each connection on a thread of its own, request after request.
    pub(crate) fn start<F>(port: u16, handle: F) -> io::Result<Self>
    where
        F: Fn(&Request, &mut Conversation) -> io::Result<()> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let (stop, handle) = (Arc::clone(&stopped), Arc::new(handle));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), handle, stop) = (stream, Arc::clone(&handle), Arc::clone(&stop)) else { continue };
                let serve = move || drop(converse(stream, &*handle, &stop));
                std::thread::Builder::new().stack_size(256 << 10).spawn(serve).expect("a thread for a connection");
            }
        });
        Ok(Self { address, stopped })
    }

    /// Nobody listens any more.
    pub(crate) fn stop(&self) {
        if !self.stopped.swap(true, Ordering::Relaxed) {
            drop(TcpStream::connect(self.address));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn converse<F>(stream: TcpStream, handle: &F, stop: &AtomicBool) -> io::Result<()>
where
    F: Fn(&Request, &mut Conversation) -> io::Result<()>,
{
    stream.set_nodelay(true)?;
    let mut conversation = Conversation { reader: BufReader::new(stream.try_clone()?), stream };
    while let Some(request) = conversation.request()? {
        if stop.load(Ordering::Relaxed) {
            return conversation.break_off();
        }
        handle(&request, &mut conversation)?;
        if request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            return conversation.break_off();
        }
    }
    Ok(())
}
