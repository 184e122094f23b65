//! The task that owns the broker: requests, readings and time in; answers, news and the books on disk out.
//! Never awaits a client: a mailbox that is full ends its connection.
//! Invariant: books are written before anybody hears of what is in them.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use plimsoll::book::Waker;
use plimsoll_core::Moment;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::stream::Streams;
use super::{Clock, FIRST_READING, Readings};
use crate::broker::{Asker, Broker, ClientId, Effect, StoredLease};
use crate::engines::keeper::News;
use crate::folder::random_hex;
use crate::process::Process;
use crate::store::{EventFile, Journal};
use crate::truth::reader::{Reader, Reading};
use crate::wire::{Request, Say};

/// How soon sources are asked again while somebody waits for what they will say.
const GAP: Duration = Duration::from_millis(100);
/// A source that has not answered for so long is warned of.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// How often the actor looks at processes and sources.
const BEAT: Duration = Duration::from_millis(50);
/// Processes that are looked at in one beat.
const WATCHED_AT_ONCE: usize = 128;
/// Requests that are handled before what they caused is written and told.
const BATCH: usize = 64;
/// Random bytes of a lease's secret.
const SECRET_BYTES: usize = 16;

/// Lines on their way to one connection.
pub(super) type Mailbox = mpsc::Sender<Letter>;

/// Lines for a connection. The place of the request that they answer is given back once they are written, so that whoever
/// does not read is not served on.
#[derive(Debug)]
pub struct Letter {
    pub(super) lines: Arc<str>,
    pub(super) _place: Option<Place>,
}

/// One of the requests of a connection that may be under way.
pub(super) type Place = OwnedSemaphorePermit;

/// Something to be done by the broker; what comes back is delivered once the books are written.
type Deliver = Box<dyn FnOnce() + Send>;

/// What reaches the actor.
pub enum Ask {
    /// A connection was made.
    Connected {
        /// Its number.
        client: ClientId,
        /// Where it hears.
        mailbox: mpsc::Sender<Letter>,
    },
    /// A connection asks.
    Line {
        /// Which.
        client: ClientId,
        /// The process it names, or its own.
        process: Option<Process>,
        /// What.
        request: Request,
        /// One of the requests that the connection may have under way.
        place: OwnedSemaphorePermit,
    },
    /// A connection sent something that is no request.
    Wrong {
        /// Which.
        client: ClientId,
        /// What about it.
        message: String,
        /// One of the requests that the connection may have under way.
        place: OwnedSemaphorePermit,
    },
    /// A connection has ended.
    Gone {
        /// Which.
        client: ClientId,
    },
    /// Somebody reads server-sent events.
    Stream(mpsc::Sender<Arc<str>>),
    /// Somebody looks after an engine, and hears of its leases.
    Engine {
        /// Its name.
        name: String,
        /// Where its keeper hears.
        news: SyncSender<News>,
    },
    /// Anything else.
    With(Whatever),
}

/// Anything that is done with the broker, and what is to be said of it.
type Whatever = Box<dyn FnOnce(&mut Broker, Moment) -> Deliver + Send>;

impl std::fmt::Debug for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ask")
    }
}

/// The way to the broker.
#[derive(Clone, Debug)]
pub struct Handle {
    asks: mpsc::Sender<Ask>,
}

/// The daemon is ending, and answers nothing more.
#[derive(Debug, thiserror::Error)]
#[error("the daemon is ending; ask the next one")]
pub struct Busy;

impl Handle {
    pub(super) fn new(asks: mpsc::Sender<Ask>) -> Self {
        Self { asks }
    }

    /// Waits for a place in the queue.
    ///
    /// # Errors
    /// The daemon is ending.
    pub async fn send(&self, ask: Ask) -> Result<(), Busy> {
        self.asks.send(ask).await.map_err(|_| Busy)
    }

    /// [`Self::send`] for a thread of its own, which it blocks.
    ///
    /// # Errors
    /// The daemon is ending.
    pub fn send_blocking(&self, ask: Ask) -> Result<(), Busy> {
        self.asks.blocking_send(ask).map_err(|_| Busy)
    }

    /// Does something with the broker, and waits for what comes of it.
    ///
    /// # Errors
    /// The daemon is ending.
    pub async fn with<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Broker, Moment) -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let (tell, told) = oneshot::channel();
        let ask = move |broker: &mut Broker, now: Moment| -> Deliver {
            let answer = ask(broker, now);
            Box::new(move || drop(tell.send(answer)))
        };
        self.send(Ask::With(Box::new(ask))).await?;
        told.await.map_err(|_| Busy)
    }

    /// [`Self::with`] for a thread of its own, which it blocks.
    ///
    /// # Errors
    /// The daemon is ending.
    pub fn with_blocking<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Broker, Moment) -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let (tell, told) = oneshot::channel();
        let ask = move |broker: &mut Broker, now: Moment| -> Deliver {
            let answer = ask(broker, now);
            Box::new(move || drop(tell.send(answer)))
        };
        self.send_blocking(Ask::With(Box::new(ask)))?;
        told.blocking_recv().map_err(|_| Busy)
    }
}

pub(super) struct Actor {
    broker: Broker,
    clock: Clock,
    readers: Vec<Reader>,
    journal: Journal,
    events: EventFile,
    period: Duration,
    connections: BTreeMap<ClientId, Mailbox>,
    /// Connections that want to hear of events, and the last that each knows.
    followers: BTreeMap<ClientId, u64>,
    streams: Streams,
    engines: BTreeMap<String, SyncSender<News>>,
    answers: Vec<(ClientId, Say, Place)>,
    deliveries: Vec<Deliver>,
    /// Which of the watched processes is looked at next.
    watch_at: usize,
    /// Wakes the thread that keeps the book.
    book: Option<Waker>,
}

impl Actor {
    pub(super) fn new(
        broker: Broker,
        clock: Clock,
        readers: Vec<Reader>,
        journal: Journal,
        events: EventFile,
        period: Duration,
    ) -> Self {
        Self {
            broker,
            clock,
            readers,
            journal,
            events,
            period,
            connections: BTreeMap::new(),
            followers: BTreeMap::new(),
            streams: Streams::default(),
            engines: BTreeMap::new(),
            answers: Vec::new(),
            deliveries: Vec::new(),
            watch_at: 0,
            book: None,
        }
    }

    /// From now on the book says how far devices are promised; this wakes who asks it for more.
    pub(super) fn join_book(&mut self, waker: Waker) {
        self.broker.join_book(self.clock.now());
        self.book = Some(waker);
    }

    pub(super) fn devices(&self) -> usize {
        self.broker.state(self.clock.now()).devices.len()
    }

    pub(super) fn leases(&self) -> usize {
        self.broker.lease_count()
    }

    /// Asks every source once, takes over what an earlier daemon promised, and believes what was read.
    pub(super) async fn first_readings(
        &mut self,
        mut readings: Readings,
        stored: Vec<StoredLease>,
        dead: Vec<StoredLease>,
    ) -> Readings {
        let until = tokio::time::Instant::now() + FIRST_READING;
        let mut first = Vec::new();
        self.ask_sources(Duration::ZERO);
        while first.len() < self.readers.len() {
            match tokio::time::timeout_at(until, readings.recv()).await {
                Ok(Some(reading)) => first.push(reading),
                _ => break,
            }
        }
        let now = self.clock.now();
        let truths: Vec<_> = first.iter().filter_map(|reading| reading.said.as_ref().ok()).flatten().cloned().collect();
        self.broker.add_devices(now, &truths);
        self.broker.started(now);
        self.broker.adopt(now, stored);
        self.broker.left_behind(now, dead);
        first.into_iter().for_each(|reading| self.read(reading));
        self.settle();
        readings
    }

    /// Serves until nobody can ask any more, or it is told to end.
    pub(super) async fn run(
        mut self,
        mut asks: mpsc::Receiver<Ask>,
        mut readings: Readings,
        end: impl Future<Output = ()>,
    ) {
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tokio::pin!(end);
        loop {
            let due = self.broker.next_tick().map(|at| self.clock.until(at));
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(ask) => self.handle_batch(ask, &mut asks),
                    None => break,
                },
                Some(reading) = readings.recv() => self.read(reading),
                () = sleep(due) => self.broker.tick(self.clock.now()),
                _ = beat.tick() => self.beat(),
                () = &mut end => break,
            }
            self.settle();
        }
        self.settle();
    }

    fn handle_batch(&mut self, first: Ask, asks: &mut mpsc::Receiver<Ask>) {
        self.handle(first);
        for _ in 1..BATCH {
            match asks.try_recv() {
                Ok(ask) => self.handle(ask),
                Err(_) => break,
            }
        }
        if self.broker.needs_readings() {
            self.ask_sources(GAP);
        }
    }

    fn handle(&mut self, ask: Ask) {
        let now = self.clock.now();
        match ask {
            Ask::Connected { client, mailbox } => drop(self.connections.insert(client, mailbox)),
            Ask::Line { client, process, request, place } => self.line(now, client, process, request, place),
            Ask::Wrong { client, message, place } => self.answers.push((client, Say::Error { message }, place)),
            Ask::Gone { client } => {
                // It may still read what it was told last.
                self.settle();
                self.forget(now, client);
            }
            Ask::Stream(reader) => self.streams.add(reader, &self.broker, now),
            Ask::Engine { name, news } => drop(self.engines.insert(name, news)),
            Ask::With(ask) => {
                let deliver = ask(&mut self.broker, now);
                self.deliveries.push(deliver);
            }
        }
    }

    fn line(&mut self, now: Moment, client: ClientId, process: Option<Process>, request: Request, place: Place) {
        let asker = Asker::Client(client);
        let answer = match request {
            Request::Events { since, follow } => return self.tell_events(client, since, follow, place),
            Request::Lease(request) => match random_hex(SECRET_BYTES) {
                Ok(secret) => self.broker.lease(now, &asker, process, request, secret),
                Err(error) => Say::Error { message: format!("no secret could be made for a lease: {error}") },
            },
            request => self.broker.ask(now, &asker, process, request),
        };
        self.answers.push((client, answer, place));
    }

    fn tell_events(&mut self, client: ClientId, since: u64, follow: bool, place: Place) {
        let mut lines = String::new();
        for event in self.broker.events_since(since) {
            push_line(&mut lines, &Say::Event(event.clone()));
        }
        if !follow {
            push_line(&mut lines, &Say::Done);
        } else {
            self.followers.insert(client, self.broker.last_event());
        }
        if !lines.is_empty() {
            self.post(client, lines.into(), Some(place));
        }
    }

    fn forget(&mut self, now: Moment, client: ClientId) {
        if self.connections.remove(&client).is_some() {
            self.followers.remove(&client);
            self.broker.disconnect(now, client);
        }
    }

    fn read(&mut self, Reading { reader, said }: Reading) {
        let now = self.clock.now();
        self.readers[reader].answered(Instant::now(), &said);
        let name = self.readers[reader].name().to_owned();
        match said {
            Ok(truths) => {
                self.broker.warn(now, &name, None);
                self.broker.read(now, truths);
            }
            Err(error) => {
                let warning = format!("{error}; its last figures count as before");
                self.broker.warn(now, &name, Some(warning));
            }
        }
    }

    fn beat(&mut self) {
        if let Some(began_ms) = self.clock.set_anew() {
            self.broker.set_wall_start(began_ms);
        }
        self.watch_processes();
        let gap = if self.broker.needs_readings() { GAP } else { self.period };
        self.ask_sources(gap);
        self.warn_of_silence();
    }

    fn ask_sources(&mut self, gap: Duration) {
        let at = Instant::now();
        for reader in &mut self.readers {
            if reader.ask(at, gap) {
                self.broker.reading_begins(reader.devices());
            }
        }
    }

    fn warn_of_silence(&mut self) {
        let (at, now) = (Instant::now(), self.clock.now());
        for reader in &self.readers {
            if reader.silent_for(at) > SILENT_MAX {
                let name = reader.name();
                let warning = format!("{name} does not answer; its last figures count as before");
                self.broker.warn(now, name, Some(warning));
            }
        }
    }

    fn watch_processes(&mut self) {
        let watched = self.broker.watched();
        if watched.is_empty() {
            return;
        }
        let from = self.watch_at % watched.len();
        let some = watched.iter().cycle().skip(from).take(WATCHED_AT_ONCE.min(watched.len()));
        let ended: Vec<Process> = some.copied().filter(|process| !process.is_alive()).collect();
        self.watch_at = from + WATCHED_AT_ONCE;
        if !ended.is_empty() {
            self.broker.processes_ended(self.clock.now(), &ended);
        }
    }

    /// Writes the books, then tells everybody.
    fn settle(&mut self) {
        if let Some(book) = &self.book
            && self.broker.wants_allotment()
        {
            book.wake();
        }
        // Telling may end connections, and that may cause more to be told.
        for _ in 0..4 {
            self.write_books();
            for (client, say, place) in std::mem::take(&mut self.answers) {
                self.tell(client, &say, Some(place));
            }
            for deliver in std::mem::take(&mut self.deliveries) {
                deliver();
            }
            for effect in self.broker.drain_effects() {
                self.carry_out(effect);
            }
            if !self.broker.has_effects() {
                break;
            }
        }
        self.tell_followers();
        let now = self.clock.now();
        self.streams.tell(&self.broker, now);
    }

    fn write_books(&mut self) {
        let now = self.clock.now();
        let next = self.broker.next_lease();
        let journal = self.journal.write(self.broker.drain_changed(), next);
        let warning =
            journal.err().map(|error| format!("the journal of leases cannot be written: {error}; free some space"));
        self.broker.warn(now, "journal", warning);
        let events = self.events.write(self.broker.events_since(self.events.written()));
        let warning =
            events.err().map(|error| format!("the log of events cannot be written: {error}; free some space"));
        self.broker.warn(now, "events", warning);
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Tell { client, say } => self.tell(client, &say, None),
            Effect::Stop { process, how, .. } => {
                if let Err(error) = process.stop(how) {
                    let warning = format!("process {} could not be stopped: {error}", process.pid);
                    self.broker.warn(self.clock.now(), "stop", Some(warning));
                }
            }
            Effect::TellEngine { engine, say } => self.tell_engine(&engine, say),
        }
    }

    /// A keeper that does not read what it is told asks how things stand by itself.
    fn tell_engine(&mut self, engine: &str, say: Say) {
        if let Some(keeper) = self.engines.get(engine) {
            let _ = keeper.try_send(News::Say(say));
        }
    }

    fn tell(&mut self, client: ClientId, say: &Say, place: Option<Place>) {
        let mut line = String::new();
        push_line(&mut line, say);
        self.post(client, line.into(), place);
    }

    /// A client that does not read what it is told is gone.
    fn post(&mut self, client: ClientId, lines: Arc<str>, place: Option<Place>) {
        let letter = Letter { lines, _place: place };
        let is_full = self.connections.get(&client).is_some_and(|mailbox| mailbox.try_send(letter).is_err());
        if is_full {
            self.forget(self.clock.now(), client);
        }
    }

    fn tell_followers(&mut self) {
        let last = self.broker.last_event();
        let behind: Vec<(ClientId, u64)> = self
            .followers
            .iter()
            .filter(|(_, known)| **known < last)
            .map(|(client, known)| (*client, *known))
            .collect();
        for (client, known) in behind {
            let mut lines = String::new();
            for event in self.broker.events_since(known) {
                push_line(&mut lines, &Say::Event(event.clone()));
            }
            self.followers.insert(client, last);
            self.post(client, lines.into(), None);
        }
    }
}

fn push_line(lines: &mut String, say: &Say) {
    // Every type that is said can be written as JSON.
    lines.push_str(&serde_json::to_string(say).unwrap_or_default());
    lines.push('\n');
}

async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
