//! Requests at an engine's gate: they wait until the engine has a lease for what they need, and is awake.
//! Never asks for more than one lease at a time, and gives one back that nobody waits for any more.
//! Invariant: whoever waits is let in, refused, or has gone; a lease that was granted for them is held or given back.

use std::time::Instant;

use super::super::{EngineKind, Survey};
use super::{Ending, Keeper, SLACK};
use crate::broker::Asker;
use crate::gate::room::NoRoom;
use crate::wire::{LeaseId, Request, Say};

impl Keeper {
    pub(super) fn let_in(&mut self, survey: &Survey) -> Result<(), Ending> {
        let Some(doorway) = self.doorway.clone() else { return Ok(()) };
        if doorway.waiting() == 0 {
            return self.give_pending_back();
        }
        if let Some(lease) = self.pending {
            return self.say_what_it_waits_for(lease);
        }
        if doorway.is_open() {
            return Ok(());
        }
        let view = self.view()?;
        if view.is_recalled {
            return Ok(());
        }
        if view.has_another_lease {
            // Whoever started the engine under a lease has seen to its memory.
            doorway.open();
            return Ok(());
        }
        let has = view.promised.max(view.used.filter(|_| !view.held.is_empty()).unwrap_or(0));
        match self.needs() {
            Some(needs) if has + SLACK.max(has / 16) < needs => self.ask_for(needs - has),
            // What nobody knows cannot be asked for: the driver shows what it takes, and that is its lease then.
            _ if survey.asleep => self.wake_up(None),
            _ => {
                doorway.open();
                Ok(())
            }
        }
    }

    /// What a request may need: what its owner says, or what was seen to come back before.
    fn needs(&self) -> Option<u64> {
        let name = &self.engine.name;
        let measures = self.books.lock();
        let seen = match self.engine.kind {
            EngineKind::Ollama | EngineKind::LlamaCpp | EngineKind::LlamaSwap => measures.of_the_largest_step(name),
            _ => measures.of_all_steps(name),
        };
        self.terms.bytes.or(seen)
    }

    fn ask_for(&mut self, bytes: u64) -> Result<(), Ending> {
        let request = self.request(bytes);
        let (asker, process) = (Asker::Engine(self.engine.name.clone()), self.process);
        let said =
            self.broker.with_blocking(move |broker, now| broker.lease(now, &asker, process, request, String::new()))?;
        match said {
            Say::Granted(granted) => {
                self.pending = Some(granted.lease);
                self.was_granted()
            }
            Say::Queued(queued) => {
                self.pending = Some(queued.lease);
                self.say(&queued.reason);
                Ok(())
            }
            Say::Refused { why, .. } => {
                self.refuse(&NoRoom::Never { why });
                Ok(())
            }
            other => {
                self.refuse(&NoRoom::Never { why: format!("the broker answered {other:?}") });
                Ok(())
            }
        }
    }

    fn say_what_it_waits_for(&mut self, lease: LeaseId) -> Result<(), Ending> {
        let said = self.broker.with_blocking(move |broker, now| broker.status(now, lease))?;
        match said {
            Some(Say::Queued(queued)) => self.say(&queued.reason),
            // Its news were lost, or are on their way: the same twice does no harm.
            Some(_) => return self.was_granted(),
            // Whoever still waits has its own time at the gate: it is asked for again at the next look.
            None => self.pending = None,
        }
        Ok(())
    }

    fn give_pending_back(&mut self) -> Result<(), Ending> {
        match self.pending.take() {
            Some(lease) => self.ask(Request::Return { lease }).map(drop),
            None => Ok(()),
        }
    }

    pub(super) fn was_granted(&mut self) -> Result<(), Ending> {
        let lease = self.pending.take();
        self.granted_at = Some(Instant::now());
        (self.is_lowered, self.items) = (false, 0);
        self.wake_up(lease)
    }

    /// Its place in the queue is over. Those who still wait may have come just now: it is asked for again, and each hears at
    /// the gate when its own time is over.
    pub(super) fn was_refused(&mut self, why: &str) -> Result<(), Ending> {
        self.pending = None;
        self.say(why);
        Ok(())
    }

    /// Calls the engine back to its memory and lets everybody in; if it does not come, the lease for it goes back.
    fn wake_up(&mut self, lease: Option<LeaseId>) -> Result<(), Ending> {
        let restored = self.engine.adapter.restore();
        if let Some(process) = self.process {
            self.books.lock().set_depth(&self.engine.name, process, self.engine.adapter.depth());
            self.books.write();
        }
        match restored {
            Ok(()) => {
                if let Some(doorway) = &self.doorway {
                    doorway.open();
                }
                Ok(())
            }
            Err(error) => {
                self.refuse(&NoRoom::Engine { why: error.to_string() });
                self.note(None, error.to_string())?;
                lease.map_or(Ok(()), |lease| self.ask(Request::Return { lease }).map(drop))
            }
        }
    }

    fn say(&self, why: &str) {
        if let Some(doorway) = &self.doorway {
            doorway.set_why(why);
        }
    }

    fn refuse(&self, no_room: &NoRoom) {
        if let Some(doorway) = &self.doorway {
            doorway.refuse(no_room);
        }
    }
}
