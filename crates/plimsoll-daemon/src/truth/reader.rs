//! Readers: one thread for each source, because a driver may hang.
//! Never lets the broker wait: a reading arrives when it does, or its source is warned of.
//! Invariant: a source is asked again only after it has answered.

use std::sync::mpsc as blocking;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::{DeviceTruth, Truth, TruthError};

/// What a source said, and which it is.
#[derive(Debug)]
pub struct Reading {
    /// Its place among the readers.
    pub reader: usize,
    /// What it said.
    pub said: Result<Vec<DeviceTruth>, TruthError>,
}

/// A source on a thread of its own.
#[derive(Debug)]
pub struct Reader {
    name: String,
    asks: blocking::SyncSender<()>,
    /// Since when it has not answered.
    asked: Option<Instant>,
    answered: Option<Instant>,
    /// The devices that it told of.
    devices: Vec<String>,
}

impl Reader {
    /// Starts a thread for each source. What they say comes out of the channel.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start(sources: Vec<Box<dyn Truth>>) -> std::io::Result<(Vec<Self>, mpsc::Receiver<Reading>)> {
        let (tell, said) = mpsc::channel(sources.len().max(1));
        let start = |(reader, mut source): (usize, Box<dyn Truth>)| {
            let (asks, asked) = blocking::sync_channel(1);
            let (name, tell) = (source.name().to_owned(), tell.clone());
            thread::Builder::new().name("plimsoll-truth".to_owned()).spawn(move || {
                while asked.recv().is_ok() {
                    let said = source.read();
                    if tell.blocking_send(Reading { reader, said }).is_err() {
                        return;
                    }
                }
            })?;
            Ok(Self { name, asks, asked: None, answered: None, devices: Vec::new() })
        };
        let readers = sources.into_iter().enumerate().map(start).collect::<std::io::Result<Vec<_>>>()?;
        Ok((readers, said))
    }

    /// What people call the source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The devices that it told of last.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// Asks it, unless it was asked and has not answered, or has answered less than so long ago. Says whether it was.
    pub fn ask(&mut self, now: Instant, gap: Duration) -> bool {
        let is_early = self.answered.is_some_and(|answered| now < answered + gap);
        if self.asked.is_some() || is_early || self.asks.try_send(()).is_err() {
            return false;
        }
        self.asked = Some(now);
        true
    }

    /// It has answered.
    pub fn answered(&mut self, now: Instant, said: &Result<Vec<DeviceTruth>, TruthError>) {
        (self.asked, self.answered) = (None, Some(now));
        if let Ok(devices) = said {
            self.devices = devices.iter().map(|device| device.name.clone()).collect();
        }
    }

    /// How long it has not answered.
    pub fn silent_for(&self, now: Instant) -> Duration {
        self.asked.map_or(Duration::ZERO, |asked| now.saturating_duration_since(asked))
    }
}
