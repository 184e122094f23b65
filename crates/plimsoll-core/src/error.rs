//! How a task can end without a result, named by what the caller can do about it.

use std::fmt;

use crate::{Ailment, Bytes, Cause, DeviceId, Fault, Nanos, Quality, SequenceId, ShortfallError, TaskId, ValueId};

/// Why one rung on one device was not taken. Every candidate that was not chosen has one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The rung does not run on this kind of device.
    WrongKind,
    /// The caller excluded the device.
    NotAllowed,
    /// The caller asked for another rung, or forbade the ladder.
    OtherRungAsked,
    /// The rung's answer is not good enough.
    QualityTooLow {
        /// What it gives.
        gives: Quality,
        /// What was asked.
        asked: Quality,
    },
    /// The device is in quarantine; it may come back.
    Unwell(Ailment),
    /// The device is given up on.
    Gone(Ailment),
    /// It needs more memory than the device has for us, or than is free now.
    DoesNotFit(ShortfallError),
    /// It ran out of memory here before, at this size or a smaller one.
    FailedBefore {
        /// The size at which it failed.
        units: u64,
    },
    /// The device cannot do this rung at all, as it said before.
    Unsupported,
    /// This task already tried it.
    TriedAlready,
    /// Another choice finishes sooner.
    FinishesLater {
        /// By how much.
        by: Nanos,
    },
    /// The tasks of its sequence are on another device.
    SequenceElsewhere,
    /// Its sequence has its session elsewhere, or on another rung.
    SessionElsewhere,
    /// The bytes of this rung were asked back.
    Recalled,
    /// The strategy picked another device, or this device has a better rung for it.
    OtherDevicePicked,
    /// A rung of better quality fits, and would not be too late.
    BetterQualityFits,
    /// A better rung fits on this device: the lower one is for when it does not.
    BetterRungFits,
}

impl Refusal {
    /// Whether the same question may be answered otherwise later without anything being learnt or changed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::DoesNotFit(shortfall) => shortfall.may_pass(),
            other => matches!(other, Self::Unwell(_) | Self::FinishesLater { .. }),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongKind => write!(f, "does not run on this kind of device"),
            Self::NotAllowed => write!(f, "device excluded by the caller"),
            Self::OtherRungAsked => write!(f, "another rung was asked for"),
            Self::QualityTooLow { gives, asked } => write!(f, "gives {gives} quality, {asked} asked"),
            Self::Unwell(ailment) => write!(f, "device in quarantine: {ailment}"),
            Self::Gone(ailment) => write!(f, "device gone: {ailment}"),
            Self::DoesNotFit(shortfall) => write!(f, "{shortfall}"),
            Self::FailedBefore { units } => write!(f, "ran out of memory before at {units} units"),
            Self::Unsupported => {
                write!(f, "not supported by this device, as it said before; a new driver may, or forget what failed")
            }
            Self::TriedAlready => write!(f, "tried already"),
            Self::FinishesLater { by } => write!(f, "would finish {by} later"),
            Self::SequenceElsewhere => write!(f, "its sequence is on another device"),
            Self::SessionElsewhere => write!(f, "its sequence holds its session elsewhere"),
            Self::Recalled => write!(f, "the bytes of this rung were asked back"),
            Self::OtherDevicePicked => write!(f, "the strategy picked another device"),
            Self::BetterQualityFits => write!(f, "a better quality fits"),
            Self::BetterRungFits => write!(f, "a better rung fits on this device"),
        }
    }
}

/// One try at a task that did not give a result.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The rung that was tried.
    pub rung: &'static str,
    /// Where.
    pub device: DeviceId,
    /// What came of it.
    pub setback: Setback,
}

/// What came of an attempt.
#[derive(Clone, Debug)]
pub enum Setback {
    /// It was refused before anything ran.
    Refused(Refusal),
    /// It ran and failed.
    Failed(Fault),
    /// It gave a result, but its device was found not to be trusted while it ran.
    Distrusted,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}: {}", self.rung, self.device, self.setback)
    }
}

impl Attempt {
    fn told(&self, name: &dyn Fn(DeviceId) -> String) -> String {
        let why = match &self.setback {
            // The device that it names has just been named.
            Setback::Refused(Refusal::DoesNotFit(ShortfallError::NeverFits { wanted, line, .. })) => {
                format!("{wanted} never fits under its line of {line}")
            }
            Setback::Refused(Refusal::DoesNotFit(ShortfallError::NotNow { wanted, free, .. })) => {
                format!("{wanted} does not fit now: {free} free under its line")
            }
            other => other.to_string(),
        };
        format!("{} on {}: {why}", self.rung, name(self.device))
    }
}

impl fmt::Display for Setback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "{refusal}"),
            Self::Failed(fault) => write!(f, "{fault}"),
            Self::Distrusted => write!(f, "its device could not be trusted while it ran"),
        }
    }
}

fn listed(attempts: &[Attempt]) -> String {
    attempts.iter().map(|attempt| format!("\n  {attempt}")).collect()
}

/// How a task ended without a result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// No allowed rung fits under the line of any allowed device.
    /// Raise the limit, free memory, allow a lower quality, or make the task smaller.
    #[error(
        "never fits: the smallest rung needs {needed}, the largest device has {line} for us; \
         raise the memory limit, free memory, or make the task smaller{}",
        listed(attempts)
    )]
    NeverFits {
        /// What the least demanding allowed rung needs.
        needed: Bytes,
        /// The highest that the line of an allowed device can be.
        line: Bytes,
        /// Every refusal.
        attempts: Vec<Attempt>,
    },
    /// Every rung was refused or failed.
    #[error("every rung was tried or refused; allow more devices, rungs or time{}", listed(attempts))]
    Exhausted {
        /// Every attempt, in order, then the refusals.
        attempts: Vec<Attempt>,
    },
    /// The deadline passed first.
    #[error("the deadline passed {}", if *started { "while the task ran" } else { "before the task could start" })]
    DeadlinePassed {
        /// Whether it had started.
        started: bool,
    },
    /// The caller cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// A task that had to succeed first did not.
    #[error("{task}, which had to succeed first, failed: {cause}")]
    PredecessorFailed {
        /// The first task that failed.
        task: TaskId,
        /// Its error.
        cause: Box<TaskError>,
    },
    /// The work panicked: a defect in the workload.
    #[error("the task panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The work itself failed.
    #[error("{0}")]
    WorkFailed(Cause),
    /// The session that its sequence held is gone, and with it what was done and not yet drained. Restart the sequence
    /// and do that again.
    #[error(
        "the session of its sequence is lost, and with it {undrained} tasks that were done and not drained; restart the \
         sequence and do them again"
    )]
    SessionLost {
        /// The last task that drained it.
        since: Option<TaskId>,
        /// Tasks that were done after that.
        undrained: u64,
    },
    /// A task waited for another one of the same orchestrator: it keeps a slot that the other may need.
    #[error(
        "a task waited for another task of its own orchestrator, which may need the very slot that it runs on; say \
         `after`, make them stages of a pipeline, or submit without waiting"
    )]
    NestedWait,
    /// The result was taken out before.
    #[error("the result of this task was already taken out; a ticket gives it once")]
    ResultTaken,
    /// The orchestrator was shut down before the task could end.
    #[error("the orchestrator was shut down before the task ended")]
    ShutDown,
}

impl TaskError {
    /// The error in words, with devices called as whoever opened them calls them.
    pub fn told(&self, name: &dyn Fn(DeviceId) -> String) -> String {
        match self {
            Self::NeverFits { attempts, .. } | Self::Exhausted { attempts } => {
                let text = self.to_string();
                let heading = text.lines().next().unwrap_or_default();
                attempts.iter().fold(heading.to_owned(), |text, attempt| text + "\n  " + &attempt.told(name))
            }
            Self::PredecessorFailed { cause, .. } => cause.told(name),
            other => other.to_string(),
        }
    }

    /// The first cause in a chain of predecessors.
    pub fn first_cause(&self) -> &Self {
        match self {
            Self::PredecessorFailed { cause, .. } => cause.first_cause(),
            other => other,
        }
    }
}

/// Why a task was not taken in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitErrorKind {
    /// The queue is full. Wait for a result, then submit again.
    #[error("the queue is full ({limit} tasks); wait for a result, then submit again")]
    QueueFull {
        /// How many tasks it holds.
        limit: usize,
    },
    /// Too many results lie in the inbox. Take results out, then submit again.
    #[error("{limit} tasks of this inbox were submitted and not taken out; take results out, then submit again")]
    InboxFull {
        /// How many it holds.
        limit: usize,
    },
    /// The sequence does not own a session here.
    #[error("{sequence:?} holds no session here; hold it first")]
    NotHeld {
        /// The sequence that was named.
        sequence: SequenceId,
    },
    /// The session of the sequence is gone. Restart the sequence, and do again what was not drained.
    #[error("the session of this sequence is lost, and with it {undrained} tasks not yet drained; restart it first")]
    SessionLost {
        /// Tasks that were done and not drained.
        undrained: u64,
    },
    /// Too many items of a pipeline are under way. Take results out, then submit again.
    #[error("{items} items or {bytes} of this pipeline are under way; take results out, then submit again")]
    FlowFull {
        /// How many items may be.
        items: usize,
        /// How many bytes they may have.
        bytes: Bytes,
    },
    /// The pipeline's work was cancelled, or ended by an item that failed.
    #[error("this pipeline's work was cancelled, or ended by an item that failed; begin another one")]
    FlowEnded,
    /// Work is no longer accepted.
    #[error("the orchestrator is shutting down")]
    ShuttingDown,
    /// The workload is not registered here.
    #[error("the workload is not registered with this orchestrator")]
    UnknownWorkload,
    /// A task that should have succeeded first was never submitted here. Name tasks of the same orchestrator.
    #[error("{task}, which should come first, was not submitted to this orchestrator")]
    UnknownPredecessor {
        /// The task that was named.
        task: TaskId,
    },
    /// A value that the task should take does not exist here: it was made by another orchestrator, or let go of.
    #[error(
        "{value}, which the task should take, does not exist here; take one of the same orchestrator while it is held"
    )]
    UnknownValue {
        /// The value that was named.
        value: ValueId,
    },
    /// A task that should have succeeded first ended so long ago that nobody knows how. Leave it out if it succeeded.
    #[error("{task}, which should come first, ended too long ago to tell how; leave it out if it succeeded")]
    ForgottenPredecessor {
        /// The task that was named.
        task: TaskId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_called_as_whoever_opened_them_calls_them() {
        let attempt = Attempt { rung: "gpu", device: DeviceId(1), setback: Setback::Refused(Refusal::TriedAlready) };
        let (device, wanted, line) = (DeviceId(1), Bytes::mib(2), Bytes::mib(1));
        let small = Setback::Refused(Refusal::DoesNotFit(ShortfallError::NeverFits { device, wanted, line }));
        let small = Attempt { rung: "gpu", device, setback: small };
        let exhausted = TaskError::Exhausted { attempts: vec![small, attempt] };
        let after = TaskError::PredecessorFailed { task: TaskId(7), cause: Box::new(exhausted.clone()) };
        for error in [exhausted, after] {
            let told = error.told(&|device| format!("gpu:{}", device.0 - 1));
            assert!(told.ends_with("\n  gpu on gpu:0: tried already") && !told.contains("device 1"), "{told}");
        }
        assert_eq!(TaskError::Cancelled.told(&|_| unreachable!()), "cancelled");
    }
}
