//! `plimsoll top`: the daemon's state on a terminal, drawn anew as it changes.
//! Never changes anything, and never ends because the daemon does: it says so, and looks again.

mod screen;
mod view;

use std::io::{IsTerminal, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_daemon::client::{Client, ClientError};
use plimsoll_daemon::wire::{Event, State};

use super::args::TopArgs;
use crate::stop::{Ended, Stop};
use screen::{Key, Screen};
use view::Picture;

/// How often the daemon is asked.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Events that are kept: more than any screen shows.
const EVENTS_MAX: usize = 64;

pub(crate) fn run(args: &TopArgs) -> Ended {
    if !stdout().is_terminal() {
        return Err(Stop::failed("`plimsoll top` needs a terminal; `plimsoll who` prints the same once"));
    }
    let socket = args.socket.path();
    let mut source = Source::connect(&socket).map_err(super::stop)?;
    let screen = Screen::take().map_err(Stop::failed)?;
    let mut scrolled = 0_usize;
    let mut asked = None;
    loop {
        if asked.is_none_or(|at: Instant| at.elapsed() >= ASK_EVERY) {
            source.ask(&socket);
            asked = Some(Instant::now());
        }
        let size = Screen::size();
        let mut picture =
            Picture { state: &source.state, events: &source.events, scrolled, trouble: source.trouble.as_deref() };
        let page = view::page(&picture, size);
        // Not past the last page: otherwise as many keys would do nothing on the way back.
        scrolled = scrolled.min(source.state.holders.len().saturating_sub(page));
        picture.scrolled = scrolled;
        screen.draw(&view::lines(&picture, size), size).map_err(Stop::failed)?;
        match screen.key(ASK_EVERY).map_err(Stop::failed)? {
            Some(Key::Quit) => return Ok(()),
            Some(Key::Up) => scrolled = scrolled.saturating_sub(1),
            Some(Key::Down) => scrolled += 1,
            Some(Key::PageUp) => scrolled = scrolled.saturating_sub(page),
            Some(Key::PageDown) => scrolled += page,
            Some(Key::Other) | None => {}
        }
    }
}

/// The daemon as it was last heard.
struct Source {
    client: Option<Client>,
    state: State,
    events: Vec<Event>,
    trouble: Option<String>,
}

impl Source {
    fn connect(socket: &Path) -> Result<Self, ClientError> {
        let client = Client::connect(socket)?;
        Ok(Self { client: Some(client), state: State::default(), events: Vec::new(), trouble: None })
    }

    /// Asks for what is new; connects again if the daemon has gone.
    fn ask(&mut self, socket: &Path) {
        self.trouble = self.hear(socket).err().map(|error| error.to_string());
        if self.trouble.is_some() {
            self.client = None;
        }
    }

    fn hear(&mut self, socket: &Path) -> Result<(), ClientError> {
        let client = match &mut self.client {
            Some(client) => client,
            None => self.client.insert(Client::connect(socket)?),
        };
        self.state = client.state()?;
        let last = self.events.last().map_or(0, |event| event.id);
        self.events.extend(client.events(last)?);
        let surplus = self.events.len().saturating_sub(EVENTS_MAX);
        self.events.drain(..surplus);
        Ok(())
    }
}
