//! Looks after one engine, on a thread of its own: what its driver says it holds is its lease, what it is asked back its
//! adapter gives back, and what its gate's requests need it asks for.
//! Never decides who gets memory: it asks the broker, and does what the broker says.
//! Invariant: memory counts as given back once the driver says so; a lease is stepped or returned only then.
//!
//! | file | owns |
//! |---|---|
//! | `keeper/start.rs` | keepers and gates of a daemon |
//! | `keeper/give_back.rs` | a recall |
//! | `keeper/let_in.rs` | requests at the engine's gate |

mod give_back;
mod let_in;
mod start;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use self::start::{EngineOptions, Keepers, StartError, start};
use super::listeners::Processes;
use super::{Busy, Engine, EngineError, EngineKind, Measures, Survey};
use crate::broker::{Asker, EngineView};
use crate::gate::doorway::Doorway;
use crate::process::Process;
use crate::server::{Busy as Ending, Handle};
use crate::wire::{LeaseId, LeaseRequest, Request, Say, Urgency};

/// How often an engine is looked at if nothing happens.
const PERIOD: Duration = Duration::from_secs(2);
/// News that a keeper has not read yet.
pub(super) const NEWS_MAX: usize = 64;
/// Differences that are not worth another lease: drivers round, caches breathe.
const SLACK: u64 = 32 << 20;
/// How long an engine that was granted memory may take to load.
const LOADS_WITHIN: Duration = Duration::from_secs(120);

/// How many times as long as one request may be held an engine waits for its lease.
const HOLDS: u64 = 8;
/// What warnings are about.
const ANSWER: &str = "answers";
/// See [`ANSWER`].
const LEASE: &str = "lease";
/// See [`ANSWER`].
const RECALL: &str = "recall";

/// What a keeper hears.
#[derive(Debug)]
pub enum News {
    /// Of its engine's lease.
    Say(Say),
    /// Somebody waits at its gate.
    Wanted,
}

/// What a keeper has to know of its engine beside its interface.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The device whose memory it holds; none if that is seen.
    pub device: Option<String>,
    /// How urgent its work is.
    pub priority: Urgency,
    /// What it takes when it works, if its owner says so.
    pub bytes: Option<u64>,
    /// Nobody configured it: it is forgotten when it has gone.
    pub is_discovered: bool,
    /// How long its gate may hold a request.
    pub hold: Duration,
    /// How long after its last request it is as urgent as before.
    pub idle: Duration,
}

/// What was measured, for all engines, and where it is kept.
#[derive(Clone, Debug)]
pub struct Books {
    measures: Arc<Mutex<Measures>>,
    file: Option<PathBuf>,
}

impl Books {
    /// What an earlier daemon wrote there, and what went wrong if it cannot be read.
    #[must_use]
    pub fn open(file: Option<PathBuf>) -> (Self, Option<String>) {
        let read = file.as_deref().map_or(Ok(Measures::default()), Measures::read);
        let (measures, wrong) = match read {
            Ok(measures) => (measures, None),
            Err(error) => {
                (Measures::default(), Some(format!("what engines were measured to give back is lost: {error}")))
            }
        };
        (Self { measures: Arc::new(Mutex::new(measures)), file }, wrong)
    }

    fn lock(&self) -> MutexGuard<'_, Measures> {
        self.measures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A disk that is full costs the next daemon some measuring, and nothing else.
    fn write(&self) {
        if let Some(file) = &self.file {
            let _ = self.lock().write(file);
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Keeper {
    engine: Engine,
    terms: Terms,
    broker: Handle,
    processes: Processes,
    books: Books,
    doorway: Option<Arc<Doorway>>,
    news: Receiver<News>,
    process: Option<Process>,
    /// A lease that was asked for and is not there yet.
    pending: Option<LeaseId>,
    granted_at: Option<Instant>,
    /// Its lease counts as background work because nobody uses it.
    is_lowered: bool,
    /// Items under way that the broker was last told of.
    items: u32,
    /// What it was asked back and did not give.
    late: Option<give_back::Late>,
    /// What was warned of, by what it is about.
    warned: BTreeMap<&'static str, String>,
}

impl Keeper {
    /// Looks after the engine until the daemon ends.
    fn run(mut self) {
        loop {
            let turned = match self.news.recv_timeout(PERIOD) {
                Ok(news) => self.hear_all(news),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if turned.and_then(|()| self.turn()).is_err() {
                return;
            }
        }
    }

    /// Everything that has come, before anything is looked at: five hundred requests that wait are looked at once.
    fn hear_all(&mut self, first: News) -> Result<(), Ending> {
        let mut next = Some(first);
        while let Some(news) = next {
            if let News::Say(say) = news {
                self.hear(say)?;
            }
            next = self.news.try_recv().ok();
        }
        Ok(())
    }

    fn hear(&mut self, say: Say) -> Result<(), Ending> {
        match say {
            Say::Recall(recall) => self.give_back(&recall),
            Say::Granted(granted) if self.pending == Some(granted.lease) => self.was_granted(),
            Say::Refused { lease, why } if lease.is_some() && self.pending == lease => self.was_refused(&why),
            Say::MayRise { .. } => Ok(()),
            Say::Ended { .. } => {
                self.close("the engine's lease was taken back");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Looks at everything once.
    fn turn(&mut self) -> Result<(), Ending> {
        // Before it is asked anything: how far down it went is known by its process.
        if let Some(address) = self.engine.address {
            self.runs_as(self.processes.listener(address.port()));
        }
        let survey = self.engine.adapter.survey();
        if self.engine.address.is_none() {
            // A probe that failed once says nothing of the process that it named before.
            let before = self.process.map(|process| process.pid);
            self.runs_as(survey.as_ref().map_or(before, |survey| survey.pid));
        }
        let view = self.view()?;
        match survey {
            Ok(survey) => {
                self.try_again(view.is_recalled)?;
                self.warn(ANSWER, None)?;
                if self.late.is_none() {
                    self.warn(RECALL, None)?;
                }
                self.match_the_driver(&view, &survey)?;
                self.let_in(&survey)?;
                self.mind_batch(&survey)?;
            }
            Err(error) => self.is_not_there(&view, &error)?,
        }
        self.mind_priority()
    }

    fn runs_as(&mut self, pid: Option<u32>) {
        let found = pid.and_then(Process::find);
        if found != self.process {
            self.process = found;
            let depth = found.map_or(0, |process| self.books.lock().depth(&self.engine.name, process));
            self.engine.adapter.set_depth(depth);
        }
    }

    fn view(&self) -> Result<EngineView, Ending> {
        let (name, process, device) = (self.engine.name.clone(), self.process, self.terms.device.clone());
        self.broker.with_blocking(move |broker, _| broker.engine(&name, process, device.as_deref()))
    }

    /// Makes the engine's lease what its driver says it holds: more if it has loaded something, less if it has let it go.
    fn match_the_driver(&mut self, view: &EngineView, survey: &Survey) -> Result<(), Ending> {
        let (Some(used), Some(device), Some(process)) = (view.used, view.device.clone(), self.process) else {
            return self.warn(LEASE, self.why_it_is_a_stranger(view));
        };
        if view.is_recalled || view.has_another_lease || self.pending.is_some() {
            return Ok(());
        }
        let slack = SLACK.max(view.promised / 16);
        let has_more = used > view.promised + slack;
        let has_less = view.promised > used + slack && !self.may_still_load();
        let can_give = !self.engine.adapter.steps(survey).is_empty();
        if view.held.is_empty() && !(has_more && can_give) || !(has_more || has_less) {
            return self.warn(LEASE, None);
        }
        if used <= SLACK || !can_give {
            return self.return_all(&view.held);
        }
        let ladder = self.engine.ladder(used, survey, &self.books.lock());
        let request = LeaseRequest { ladder, devices: vec![device], ..self.request(used) };
        let name = self.engine.name.clone();
        let taken = self.broker.with_blocking(move |broker, now| broker.take_in(now, &name, process, request))?;
        match taken {
            Ok(_) => {
                // The new lease starts with what the configuration says, and no items.
                (self.is_lowered, self.items) = (false, 0);
                self.warn(LEASE, None)
            }
            Err(why) => self.warn(LEASE, Some(format!("{} stays without a lease: {why}", self.engine.name))),
        }
    }

    /// Why what an engine holds cannot be its lease, although it answers: nobody can tell it from other programs'.
    fn why_it_is_a_stranger(&self, view: &EngineView) -> Option<String> {
        let device = view.device.as_ref().filter(|_| view.held.is_empty() && self.pending.is_none())?;
        let why = match (self.process, self.engine.kind) {
            (Some(_), _) => format!("the driver of {device} does not tell processes apart"),
            (None, EngineKind::Command) => "its probe does not print its \"pid\"".to_owned(),
            (None, _) => "which process it is cannot be seen: it is another user's, or in a container".to_owned(),
        };
        Some(format!("{} stays without a lease: {why}. What it holds counts as strangers'", self.engine.name))
    }

    fn may_still_load(&self) -> bool {
        self.granted_at.is_some_and(|at| at.elapsed() < LOADS_WITHIN)
            && self.doorway.as_ref().is_some_and(|doorway| doorway.under_way() > 0 || doorway.waiting() > 0)
    }

    fn request(&self, bytes: u64) -> LeaseRequest {
        LeaseRequest {
            name: self.engine.name.clone(),
            kind: self.engine.kind.work(),
            priority: self.terms.priority,
            ladder: vec![crate::wire::Rung { bytes, quality: 1.0, switch_ms: 0 }],
            devices: self.terms.device.iter().cloned().collect(),
            // Requests come and go at the gate, each with a time of its own; the engine's place in the queue outlives them.
            timeout_ms: Some(u64::try_from(self.terms.hold.as_millis()).unwrap_or(u64::MAX).saturating_mul(HOLDS)),
            pinned: false,
            may_be_stopped: false,
            batch_items: 0,
            pid: self.process.map(|process| process.pid),
            ttl_ms: None,
        }
    }

    /// It does not answer: whatever it held, its driver says what is left of it.
    fn is_not_there(&mut self, view: &EngineView, error: &EngineError) -> Result<(), Ending> {
        if self.terms.is_discovered && self.process.is_none() {
            self.return_all(&view.held)?;
            for about in [ANSWER, LEASE, RECALL] {
                self.warn(about, None)?;
            }
            return Err(Ending);
        }
        self.warn(ANSWER, Some(error.to_string()))?;
        if self.process.is_none() {
            self.return_all(&view.held)?;
            self.close("the engine is not there");
        }
        if let Some(doorway) = &self.doorway {
            doorway.set_why(&error.to_string());
            // The gate itself answers for an engine that is gone, so nobody waits for one.
            if matches!(error, EngineError::NotThere { .. }) {
                doorway.open();
                doorway.close("the engine is not there");
            }
        }
        Ok(())
    }

    fn return_all(&mut self, leases: &[LeaseId]) -> Result<(), Ending> {
        for &lease in leases {
            self.ask(Request::Return { lease })?;
        }
        Ok(())
    }

    fn ask(&self, request: Request) -> Result<Say, Ending> {
        let (asker, process) = (Asker::Engine(self.engine.name.clone()), self.process);
        self.broker.with_blocking(move |broker, now| broker.ask(now, &asker, process, request))
    }

    fn close(&self, why: &str) {
        if let Some(doorway) = &self.doorway {
            doorway.close(why);
        }
    }

    /// Tells the core how many items are under way or queued, so that it does not ask in the middle of a batch.
    fn mind_batch(&mut self, survey: &Survey) -> Result<(), Ending> {
        let tells = matches!(
            self.engine.kind,
            EngineKind::Comfyui | EngineKind::Automatic1111 | EngineKind::Vllm | EngineKind::Sglang
        );
        let own = match tells.then(|| self.engine.adapter.busy(survey)) {
            Some(Ok(Busy::Items(items))) => items,
            _ => 0,
        };
        let items = own.max(self.doorway.as_ref().map_or(0, |doorway| doorway.under_way()));
        let items = u32::try_from(items).unwrap_or(u32::MAX);
        if items == self.items {
            return Ok(());
        }
        for lease in self.view()?.held {
            self.ask(Request::SetBatch { lease, items })?;
        }
        self.items = items;
        Ok(())
    }

    /// Whoever has a gate and has not been used for a while gives way to anybody.
    fn mind_priority(&mut self) -> Result<(), Ending> {
        let Some(doorway) = &self.doorway else { return Ok(()) };
        let is_idle = doorway.waiting() == 0 && doorway.idle_for().is_some_and(|time| time > self.terms.idle);
        if is_idle == self.is_lowered {
            return Ok(());
        }
        let priority = if is_idle { Urgency::Background } else { self.terms.priority };
        let held = self.view()?.held;
        for lease in held {
            self.ask(Request::SetPriority { lease, priority })?;
        }
        self.is_lowered = is_idle;
        Ok(())
    }

    /// Says once what is wrong with one thing, and forgets it once it is well again.
    fn warn(&mut self, about: &'static str, warning: Option<String>) -> Result<(), Ending> {
        if self.warned.get(about) == warning.as_ref() {
            return Ok(());
        }
        match &warning {
            Some(text) => drop(self.warned.insert(about, text.clone())),
            None => drop(self.warned.remove(about)),
        }
        let about = format!("engine {} {about}", self.engine.name);
        self.broker.with_blocking(move |broker, now| broker.warn(now, &about, warning))
    }

    fn note(&self, bytes: Option<u64>, text: String) -> Result<(), Ending> {
        let name = self.engine.name.clone();
        self.broker.with_blocking(move |broker, now| broker.note_engine(now, &name, bytes, text))
    }
}
