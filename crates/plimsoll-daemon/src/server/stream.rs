//! Server-sent events: what happens, and how everything stands whenever that has changed.
//! Never waits for a reader: one that does not keep up is let go, and comes back by itself.
//! Invariant: at most so many readers, and at most so many messages on their way to each.

use std::sync::Arc;

use plimsoll_core::{Moment, Nanos};
use tokio::sync::mpsc;

use crate::broker::Broker;
use crate::wire::State;

/// Readers at once.
const READERS_MAX: usize = 64;
/// Messages on their way to one reader.
pub(super) const MESSAGES_MAX: usize = 64;
/// How everything stands is told at most so often.
const STATE_EVERY: Nanos = Nanos::millis(250);
/// And at least so often, so that a reader knows that it is still heard.
const STATE_AT_LEAST: Nanos = Nanos::seconds(5);

/// Who reads.
#[derive(Debug, Default)]
pub(super) struct Streams {
    readers: Vec<mpsc::Sender<Arc<str>>>,
    told: u64,
    state: State,
    state_at: Option<Moment>,
    looked_at: Option<Moment>,
}

impl Streams {
    /// One more, unless there are too many: then it is let go at once.
    pub(super) fn add(&mut self, reader: mpsc::Sender<Arc<str>>, broker: &Broker, now: Moment) {
        self.readers.retain(|reader| !reader.is_closed());
        if self.readers.len() >= READERS_MAX {
            return;
        }
        if self.readers.is_empty() {
            self.told = broker.last_event();
        }
        let _ = reader.try_send(message("state", None, &broker.state(now)));
        self.readers.push(reader);
    }

    /// Tells what has happened since the last call.
    pub(super) fn tell(&mut self, broker: &Broker, now: Moment) {
        if self.readers.is_empty() {
            return;
        }
        if self.told < broker.last_event() {
            let mut messages = String::new();
            for event in broker.events_since(self.told) {
                messages.push_str(&message("event", Some(event.id), event));
            }
            self.told = broker.last_event();
            self.send(messages.into());
        }
        if self.looked_at.is_none_or(|at| now.since(at) >= STATE_EVERY) {
            self.looked_at = Some(now);
            self.tell_state(broker, now);
        }
    }

    fn tell_state(&mut self, broker: &Broker, now: Moment) {
        let mut state = broker.state(now);
        let at_ms = std::mem::take(&mut state.at_ms);
        let is_old = self.state_at.is_none_or(|at| now.since(at) >= STATE_AT_LEAST);
        if state == self.state && !is_old {
            return;
        }
        self.state = state.clone();
        self.state_at = Some(now);
        state.at_ms = at_ms;
        self.send(message("state", None, &state));
    }

    fn send(&mut self, message: Arc<str>) {
        self.readers.retain(|reader| reader.try_send(Arc::clone(&message)).is_ok());
    }
}

fn message(kind: &str, id: Option<u64>, data: &impl serde::Serialize) -> Arc<str> {
    let data = serde_json::to_string(data).unwrap_or_default();
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    format!("event: {kind}\n{id}data: {data}\n\n").into()
}
