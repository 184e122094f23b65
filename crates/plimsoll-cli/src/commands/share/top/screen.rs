//! The terminal while `plimsoll top` has it: another screen, raw keys, and everything as it was afterwards.
//! Never knows what is shown.
//! Invariant: however it ends, a panic included, the terminal is given back (`Drop`).

use std::io::{self, Write};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{cursor, execute, queue};

use super::view::{Line, Size};

/// The terminal, taken.
#[derive(Debug)]
pub(super) struct Screen(());

/// What somebody pressed, as far as it matters.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Up,
    Down,
    PageUp,
    PageDown,
    /// The size has changed, or something that means nothing here.
    Other,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let screen = Self(());
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    pub(super) fn size() -> Size {
        let (width, height) = terminal::size().unwrap_or((80, 24));
        Size { width: width.into(), height: height.into() }
    }

    /// Draws lines over what was there.
    pub(super) fn draw(&self, lines: &[Line], size: Size) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        queue!(out, BeginSynchronizedUpdate)?;
        for (at, line) in (0_u16..).zip(lines) {
            queue!(out, cursor::MoveTo(0, at))?;
            write!(out, "{}", line.painted(size.width))?;
            queue!(out, terminal::Clear(terminal::ClearType::UntilNewLine))?;
        }
        let rest = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        if usize::from(rest) < size.height {
            queue!(out, cursor::MoveTo(0, rest), terminal::Clear(terminal::ClearType::FromCursorDown))?;
        }
        queue!(out, EndSynchronizedUpdate)?;
        out.flush()
    }

    /// Waits for a key, at most this long.
    pub(super) fn key(&self, at_most: Duration) -> io::Result<Option<Key>> {
        if !event::poll(at_most)? {
            return Ok(None);
        }
        let Event::Key(key) = event::read()? else { return Ok(Some(Key::Other)) };
        if key.kind == KeyEventKind::Release {
            return Ok(Some(Key::Other));
        }
        Ok(Some(match key.code {
            KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
            KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
            KeyCode::Up | KeyCode::Char('k') => Key::Up,
            KeyCode::Down | KeyCode::Char('j') => Key::Down,
            KeyCode::PageUp => Key::PageUp,
            KeyCode::PageDown | KeyCode::Char(' ') => Key::PageDown,
            _ => Key::Other,
        }))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody can be told if the terminal is gone.
        let _ = execute!(io::stdout(), cursor::Show, LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}
