//! Engines that hold no real memory: each speaks its engine's published interface over real HTTP (the pages that were
//! checked are named in the adapters' headers), and what it "holds" is a number that the scripted driver shows.
//! Each can misbehave in every way that a real one was seen to.

mod interfaces;
pub(crate) mod server;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use self::server::{Conversation, Request, Server};
use plimsoll_daemon::engines::EngineKind;

/// What an engine does wrong.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Says yes and frees nothing.
    YesWithoutFreeing,
    /// Says yes and frees half of it.
    HalfFreed,
    /// Does not answer for so long.
    Slow(Duration),
    /// Ends the connection in the middle of an answer.
    GoneInTheMiddle,
    /// Answers with JSON of another shape.
    WrongJson,
    /// Answers with something that is no JSON at all.
    NotJson,
    /// Sends the caller elsewhere.
    Redirect,
    /// Answers without end.
    Endless,
    /// Answers with an error.
    Failing,
}

/// What every fake has.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) kind: EngineKind,
    /// What it holds whatever is loaded: its context.
    pub(crate) base: u64,
    /// Loaded models with their bytes.
    pub(crate) models: BTreeMap<String, u64>,
    /// Models that a request can load.
    pub(crate) catalogue: BTreeMap<String, u64>,
    /// What was given back and comes back on a call: parts of a sleeper, checkpoints.
    pub(crate) parked: BTreeMap<String, u64>,
    /// Requests under way or queued.
    pub(crate) busy: u64,
    /// When it is asked something.
    pub(crate) on_ask: Option<Fault>,
    /// When it is to give memory back.
    pub(crate) on_step: Option<Fault>,
    /// Memory goes this long after the answer.
    pub(crate) frees_after: Duration,
    /// Every request, as `METHOD target body`.
    pub(crate) log: Vec<String>,
    /// The scripted driver: what this process holds is written here.
    pub(crate) truth: Option<PathBuf>,
    /// It has ended, as a real one would have.
    pub(crate) crashed: Option<String>,
    /// An interface of before, where there are two.
    pub(crate) is_old: bool,
    /// What serves the models does not tell what it does.
    pub(crate) has_no_slots: bool,
    /// How many pieces a streamed answer has, and the time between two.
    pub(crate) pieces: (usize, Duration),
}

impl State {
    /// What the driver shows.
    pub(crate) fn held(&self) -> u64 {
        if self.crashed.is_some() { 0 } else { self.base + self.models.values().sum::<u64>() }
    }

    /// What is asked of the scripted driver is written before the answer goes out.
    pub(crate) fn tell_the_driver(&self) {
        if let Some(path) = &self.truth {
            let beside = path.with_extension(format!("{}.new", std::process::id()));
            std::fs::write(&beside, self.held().to_string()).expect("the scripted driver's file");
            std::fs::rename(beside, path).expect("the scripted driver's file");
        }
    }

    /// A model goes, as far as the fault lets it; where it goes to is told by `park`.
    pub(crate) fn unload(&mut self, name: &str, park: bool) {
        let Some(bytes) = self.models.get(name).copied() else { return };
        match self.on_step {
            Some(Fault::YesWithoutFreeing) => {}
            Some(Fault::HalfFreed) => {
                self.models.insert(name.to_owned(), bytes - bytes / 2);
            }
            _ => {
                self.models.remove(name);
                if park {
                    self.parked.insert(name.to_owned(), bytes);
                }
            }
        }
    }

    /// A parked part comes back.
    pub(crate) fn unpark(&mut self, name: &str) {
        if let Some(bytes) = self.parked.remove(name) {
            self.models.insert(name.to_owned(), bytes);
        }
    }
}

/// A running fake. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) server: Server,
    state: Arc<Mutex<State>>,
}

/// What a fake holds when it starts: two models, or what its kind has instead.
pub(crate) const MIB: u64 = 1 << 20;

impl Fake {
    pub(crate) fn start(kind: EngineKind) -> Self {
        Self::on(kind, 0, None).expect("a port of this machine")
    }

    pub(crate) fn on(kind: EngineKind, port: u16, truth: Option<PathBuf>) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State {
            kind,
            base: 100 * MIB,
            models: interfaces::loaded_at_first(kind),
            catalogue: BTreeMap::from([("big".to_owned(), 600 * MIB), ("small".to_owned(), 200 * MIB)]),
            parked: BTreeMap::new(),
            busy: 0,
            on_ask: None,
            on_step: None,
            frees_after: Duration::from_millis(30),
            log: Vec::new(),
            truth,
            crashed: None,
            is_old: false,
            has_no_slots: false,
            pieces: (5, Duration::from_millis(1)),
        }));
        lock(&state).tell_the_driver();
        let shared = Arc::clone(&state);
        let server = Server::start(port, move |request, conversation| handle(&shared, request, conversation))?;
        Ok(Self { server, state })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// What the driver shows.
    pub(crate) fn held(&self) -> u64 {
        self.state().held()
    }
}

pub(crate) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn handle(state: &Arc<Mutex<State>>, request: &Request, conversation: &mut Conversation) -> io::Result<()> {
    let fault = {
        let mut state = lock(state);
        let body = String::from_utf8_lossy(&request.body).into_owned();
        state.log.push(format!("{} {} {body}", request.method, request.target));
        if state.crashed.is_some() {
            drop(state);
            return conversation.break_off();
        }
        if interfaces::is_step(state.kind, request) { state.on_step } else { state.on_ask }
    };
    match fault {
        Some(Fault::Slow(time)) => std::thread::sleep(time),
        Some(Fault::GoneInTheMiddle) => {
            conversation.stream_half()?;
            return conversation.break_off();
        }
        Some(Fault::WrongJson) => return conversation.json(200, &serde_json::json!({ "unexpected": [1, 2, 3] })),
        Some(Fault::NotJson) => return conversation.reply(200, "text/html", b"<html>welcome</html>"),
        Some(Fault::Redirect) => return conversation.redirect(),
        Some(Fault::Endless) => return conversation.without_end(),
        Some(Fault::Failing) => return conversation.json(500, &serde_json::json!({ "error": "out of luck" })),
        Some(Fault::YesWithoutFreeing | Fault::HalfFreed) | None => {}
    }
    interfaces::answer(state, request, conversation)
}

impl Conversation {
    fn stream_half(&mut self) -> io::Result<()> {
        use std::io::Write;
        self.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"mod")
    }

    fn redirect(&mut self) -> io::Result<()> {
        use std::io::Write;
        let head =
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/elsewhere\r\nContent-Length: 0\r\n\r\n";
        self.stream.write_all(head.as_bytes())
    }

    fn without_end(&mut self) -> io::Result<()> {
        self.begin_chunks("application/json", "")?;
        loop {
            self.chunk(&[b' '; 65536])?;
        }
    }
}
