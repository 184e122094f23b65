//! What a gate asks before it lets a request through. The broker answers it in the daemon, anything else in tests.
//! Never knows HTTP.
//! Invariant: a pass is given back exactly once, whatever becomes of the request.

use std::fmt;
use std::future::Future;
use std::time::Duration;

/// Whoever gives room to engines.
pub trait Room: Send + Sync + 'static {
    /// Waits until the engine may work. Dropping the future gives the place in the queue back.
    fn enter(&self, engine: &str) -> impl Future<Output = Result<Pass, NoRoom>> + Send;

    /// What it waits for, for whoever has waited too long.
    fn why(&self, engine: &str) -> String;
}

/// The engine may work as long as this is there.
#[must_use = "the request that it is for has ended once it is dropped"]
pub struct Pass(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Pass {
    /// A pass; `ended` is called once when it is dropped.
    pub fn new(ended: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(ended)))
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pass")
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended();
        }
    }
}

/// Why a request was not let through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRoom {
    /// It was held as long as it may be.
    #[error("there was no room for it within {} s: {why}", .after.as_secs_f32())]
    TimedOut {
        /// How long.
        after: Duration,
        /// What it waited for.
        why: String,
    },
    /// As many are held as may be.
    #[error("{held} requests are held already")]
    TooManyHeld {
        /// How many.
        held: usize,
    },
    /// It never fits.
    #[error("{why}")]
    Never {
        /// Why.
        why: String,
    },
    /// There was room, and the engine did not come back to it.
    #[error("{why}")]
    Engine {
        /// What it said.
        why: String,
    },
    /// The daemon ends.
    #[error("the daemon is ending")]
    Ending,
}

impl NoRoom {
    /// When to ask again; nothing if that does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TimedOut { .. } => Some(Duration::from_secs(10)),
            Self::TooManyHeld { .. } | Self::Engine { .. } => Some(Duration::from_secs(5)),
            Self::Ending => Some(Duration::from_secs(1)),
            Self::Never { .. } => None,
        }
    }
}

/// Room for everybody at once: a gate that only passes on.
#[derive(Copy, Clone, Debug)]
pub struct Always;

impl Room for Always {
    async fn enter(&self, _: &str) -> Result<Pass, NoRoom> {
        Ok(Pass::new(|| ()))
    }

    fn why(&self, _: &str) -> String {
        String::new()
    }
}
