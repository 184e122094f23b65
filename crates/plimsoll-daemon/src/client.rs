//! A client of the daemon's socket that blocks: what the command line uses, and any program in Rust can.
//! Never waits without an end for an answer, and never takes news for an answer.
//! Invariant: news that come while an answer is waited for are kept, in order.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::wire::{Event, Granted, LeaseId, LeaseRequest, PROTOCOL, Request, Say, State};

/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of a line that are taken: a state with thousands of holders.
const LINE_MAX: u64 = 64 << 20;
/// News that are kept while an answer is waited for.
const NEWS_MAX: usize = 4_096;

/// What can go wrong between a client and the daemon.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody serves there.
    #[error("no daemon serves at {}: {source}", socket.display())]
    NoDaemon {
        /// Where.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection has ended.
    #[error("the daemon has gone: {0}")]
    Gone(io::Error),
    /// The daemon did not answer in time.
    #[error("the daemon did not answer within {} s", ANSWER_WITHIN.as_secs())]
    Silent,
    /// What came is no answer.
    #[error("what serves there does not speak this protocol: {0}")]
    Nonsense(String),
    /// The daemon says that the request was wrong.
    #[error("{0}")]
    Refused(String),
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    read: BufReader<UnixStream>,
    line: Vec<u8>,
    news: VecDeque<Say>,
}

impl Client {
    /// Connects to the daemon at this socket.
    ///
    /// # Errors
    /// There is none, or it speaks another protocol.
    pub fn connect(socket: &Path) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(socket)
            .map_err(|source| ClientError::NoDaemon { socket: socket.to_owned(), source })?;
        let mut client = Self { read: BufReader::new(stream), line: Vec::new(), news: VecDeque::new() };
        match client.ask(&Request::Hello { protocol: PROTOCOL })? {
            Say::Welcome { .. } => Ok(client),
            other => Err(ClientError::Nonsense(format!("{other:?}"))),
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The daemon has gone, is silent, or says that the request was wrong.
    pub fn ask(&mut self, request: &Request) -> Result<Say, ClientError> {
        self.send(request)?;
        let until = Instant::now() + ANSWER_WITHIN;
        loop {
            let say = self.read_until(Some(until))?.ok_or(ClientError::Silent)?;
            match say {
                Say::Error { message } => return Err(ClientError::Refused(message)),
                say if is_answer(request, &say) => return Ok(say),
                news if self.news.len() < NEWS_MAX => self.news.push_back(news),
                _ => {}
            }
        }
    }

    /// Sends without waiting for an answer.
    ///
    /// # Errors
    /// The daemon has gone.
    pub fn send(&mut self, request: &Request) -> Result<(), ClientError> {
        let mut line = serde_json::to_vec(request).map_err(|error| ClientError::Nonsense(error.to_string()))?;
        line.push(b'\n');
        let stream = self.read.get_mut();
        stream.set_write_timeout(Some(ANSWER_WITHIN)).and_then(|()| stream.write_all(&line)).map_err(ClientError::Gone)
    }

    /// What the daemon says next: news, or answers to what was sent without waiting. Nothing if nothing came in time.
    ///
    /// # Errors
    /// The daemon has gone.
    pub fn hear(&mut self, within: Option<Duration>) -> Result<Option<Say>, ClientError> {
        match self.news.pop_front() {
            Some(news) => Ok(Some(news)),
            None => self.read_until(within.map(|within| Instant::now() + within)),
        }
    }

    fn read_until(&mut self, until: Option<Instant>) -> Result<Option<Say>, ClientError> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            self.read.get_ref().set_read_timeout(left).map_err(ClientError::Gone)?;
            let room = LINE_MAX.saturating_sub(self.line.len() as u64);
            match self.read.by_ref().take(room).read_until(b'\n', &mut self.line) {
                Ok(0) => return Err(ClientError::Gone(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) if self.line.last() == Some(&b'\n') => {}
                Ok(_) => continue,
                Err(error) if is_timeout(&error) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(ClientError::Gone(error)),
            }
            let line = std::mem::take(&mut self.line);
            let say = serde_json::from_slice(&line).map_err(|error| ClientError::Nonsense(error.to_string()))?;
            return Ok(Some(say));
        }
    }

    /// Asks for a lease: granted, queued or refused.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn lease(&mut self, request: LeaseRequest) -> Result<Say, ClientError> {
        self.ask(&Request::Lease(request))
    }

    /// Waits until a lease is given or refused, telling of its place in the meantime.
    ///
    /// # Errors
    /// It is refused, or the daemon has gone.
    pub fn wait_for(&mut self, lease: LeaseId, within: Option<Duration>) -> Result<Option<Granted>, ClientError> {
        match self.hear(within)? {
            Some(Say::Granted(granted)) if granted.lease == lease => Ok(Some(granted)),
            Some(Say::Refused { lease: Some(id), why } | Say::Ended { lease: id, why }) if id == lease => {
                Err(ClientError::Refused(why))
            }
            _ => Ok(None),
        }
    }

    /// Asks for a lease and waits until it is given, as long as its request says.
    ///
    /// # Errors
    /// It is refused, or the daemon has gone.
    pub fn hold(&mut self, request: LeaseRequest) -> Result<Granted, ClientError> {
        let lease = match self.lease(request)? {
            Say::Granted(granted) => return Ok(granted),
            Say::Queued(queued) => queued.lease,
            Say::Refused { why, .. } => return Err(ClientError::Refused(why)),
            other => return Err(ClientError::Nonsense(format!("{other:?}"))),
        };
        loop {
            if let Some(granted) = self.wait_for(lease, None)? {
                return Ok(granted);
            }
        }
    }

    /// Gives a lease back.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn give_back(&mut self, lease: LeaseId) -> Result<(), ClientError> {
        self.ask(&Request::Return { lease }).map(drop)
    }

    /// Everything as it stands.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn state(&mut self) -> Result<State, ClientError> {
        match self.ask(&Request::State)? {
            Say::State(state) => Ok(*state),
            other => Err(ClientError::Nonsense(format!("{other:?}"))),
        }
    }

    /// What is kept of what happened after an event.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn events(&mut self, since: u64) -> Result<Vec<Event>, ClientError> {
        self.send(&Request::Events { since, follow: false })?;
        let until = Instant::now() + ANSWER_WITHIN;
        let mut events = Vec::new();
        loop {
            match self.read_until(Some(until))?.ok_or(ClientError::Silent)? {
                Say::Event(event) => events.push(event),
                Say::Done => return Ok(events),
                Say::Error { message } => return Err(ClientError::Refused(message)),
                news => self.news.push_back(news),
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// News have no request; everything else answers the one that was sent.
fn is_answer(request: &Request, say: &Say) -> bool {
    match (request, say) {
        (_, Say::MayRise { .. } | Say::Over { .. } | Say::Ended { .. } | Say::Event(_)) => false,
        (Request::Lease(_), Say::Granted(_) | Say::Queued(_) | Say::Refused { .. }) => true,
        (Request::Claim { lease, .. } | Request::Heartbeat { lease }, say) => match say {
            Say::Granted(granted) => granted.lease == *lease,
            Say::Queued(queued) => queued.lease == *lease,
            Say::Recall(recall) => recall.lease == *lease,
            _ => false,
        },
        (_, Say::Granted(_) | Say::Queued(_) | Say::Refused { .. } | Say::Recall(_)) => false,
        _ => true,
    }
}
