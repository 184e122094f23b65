//! What can go wrong with an engine, named so that its owner knows what to do next.
//! Never says that memory came back: only the driver's figure says that.
//! Invariant: every message begins with the engine's name.

use std::time::Duration;

use plimsoll_core::Bytes;

/// Why an engine did not do what it was asked. The daemon says so, and goes on without it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Nobody listens.
    #[error("{engine} does not answer on {address}: start it, or take it out of the daemon's configuration")]
    NotThere {
        /// Which.
        engine: String,
        /// Where it was looked for.
        address: String,
    },
    /// It did not answer in time.
    #[error("{engine} did not answer {call} within {} s: it hangs, or is busier than its time limit allows", .limit.as_secs_f32())]
    TooSlow {
        /// Which.
        engine: String,
        /// Method and path.
        call: String,
        /// How long it had.
        limit: Duration,
    },
    /// The connection broke in the middle of an answer.
    #[error("{engine} was gone in the middle of its answer to {call} ({why}): look whether it still runs")]
    Gone {
        /// Which.
        engine: String,
        /// Method and path.
        call: String,
        /// What the connection said.
        why: String,
    },
    /// It wants to be asked elsewhere.
    #[error(
        "{engine} answered {call} with a redirect to {to}, which is not followed: configure the port that it really listens on"
    )]
    Redirected {
        /// Which.
        engine: String,
        /// Method and path.
        call: String,
        /// Where to.
        to: String,
    },
    /// It answered with another status than success.
    #[error("{engine} answered {call} with status {status}: {said}{}", hint(.todo))]
    Refused {
        /// Which.
        engine: String,
        /// Method and path.
        call: String,
        /// HTTP's number.
        status: u16,
        /// The beginning of what it said.
        said: String,
        /// What to do about it, if that is known.
        todo: &'static str,
    },
    /// The answer is not what the engine's published interface promises.
    #[error(
        "{engine} answered {call} with something else than {expected}: {got}. Another program may listen there, or a version that is not known"
    )]
    Shape {
        /// Which.
        engine: String,
        /// Method and path.
        call: String,
        /// What its interface promises.
        expected: &'static str,
        /// What was wrong with it.
        got: String,
    },
    /// The answer is larger than anything its interface gives.
    #[error("{engine} answered {call} with more than {limit} bytes")]
    TooLarge {
        /// Which.
        engine: String,
        /// Method and path.
        call: String,
        /// What would have been read.
        limit: u64,
    },
    /// It works, and nobody two levels above wants its memory.
    #[error("{engine} works ({items} under way or queued): it is not disturbed between items")]
    Busy {
        /// Which.
        engine: String,
        /// Under way or queued.
        items: u64,
    },
    /// Nobody can tell whether it works, and interrupting it would do harm.
    #[error("{engine} does not tell whether it works ({why}), and taking its memory away while it does would break it")]
    BusyUnknown {
        /// Which.
        engine: String,
        /// Why nobody can tell.
        why: String,
    },
    /// It said yes, and the driver's figure stayed where it was.
    #[error("{engine} said that it did '{step}', and the driver still shows {} after {:.1} s{}", Bytes(*.held), .waited.as_secs_f32(), hint(.todo))]
    NotFreed {
        /// Which.
        engine: String,
        /// The step.
        step: String,
        /// What the driver shows.
        held: u64,
        /// How long the figure was watched.
        waited: Duration,
        /// What to do about it, if that is known.
        todo: &'static str,
    },
    /// Less came back than it had said.
    #[error("{engine} freed {} with '{step}', and had said {}: the driver's figure counts", Bytes(*.fell), Bytes(*.told))]
    FreedLess {
        /// Which.
        engine: String,
        /// The step.
        step: String,
        /// By how much the driver's figure fell.
        fell: u64,
        /// What was expected.
        told: u64,
    },
    /// No driver says what it holds, so nothing can be verified.
    #[error("no driver tells what {engine} holds, so nothing that it says can be verified: it is left alone")]
    NoTruth {
        /// Which.
        engine: String,
    },
    /// A command of its owner failed.
    #[error("{engine}: the command {command} {why}")]
    Command {
        /// Which.
        engine: String,
        /// What was run.
        command: String,
        /// How it failed.
        why: String,
    },
}

fn hint(todo: &str) -> String {
    if todo.is_empty() { String::new() } else { format!(". {todo}") }
}
