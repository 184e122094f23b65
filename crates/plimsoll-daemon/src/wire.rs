//! Every JSON type that enters or leaves the daemon: on the Unix socket (one JSON object a line each way), over HTTP and
//! in server-sent events. The same types serve clients written in Rust.
//! Never decides anything, and never holds what is not meant for a client's eyes.
//! Invariant: what is written is read back as it was (`wire::tests`); unknown fields of requests are refused.

use serde::{Deserialize, Serialize};

/// The protocol that this version speaks. A client that asks for another is refused with both numbers.
pub const PROTOCOL: u32 = 1;

/// A lease, as clients name it. Its number is never used again, not even by the next daemon.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(pub u64);

/// What kind of work a lease is for. Each has its own floor of quality and its own patience.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A language model.
    Llm,
    /// Generation of images.
    Image,
    /// Generation of video.
    Video,
    /// Many items one after the other: not disturbed between two of them.
    Batch,
    /// Anything else.
    #[default]
    Other,
}

/// How urgent.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Urgency {
    /// Whenever nobody else wants it.
    Background,
    /// Before background work.
    Low,
    /// What most programs have.
    #[default]
    Normal,
    /// A person waits for it.
    #[serde(alias = "user-facing")]
    High,
    /// Before everything else.
    Critical,
}

/// One way to hold a lease.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rung {
    /// Bytes of each device that is asked for.
    pub bytes: u64,
    /// How good the owner's work is on it, from 0 to 1.
    #[serde(default = "full")]
    pub quality: f64,
    /// What going to this rung costs its owner.
    #[serde(default)]
    pub switch_ms: u64,
}

fn full() -> f64 {
    1.0
}

/// Asks for a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// What people read in lists: a program's name.
    pub name: String,
    /// What for.
    #[serde(default)]
    pub kind: Kind,
    /// How urgent.
    #[serde(default)]
    pub priority: Urgency,
    /// Best first; `wanted` and `minimum` bytes are a ladder of two rungs.
    pub ladder: Vec<Rung>,
    /// The devices, all or nothing; none means any one.
    #[serde(default)]
    pub devices: Vec<String>,
    /// How long it may wait. Without it, what its kind and priority get.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Never asked back.
    #[serde(default)]
    pub pinned: bool,
    /// May be stopped if it neither steps down nor leaves in time.
    #[serde(default)]
    pub may_be_stopped: bool,
    /// Items of a batch that are still to come; 0 if it is none.
    #[serde(default)]
    pub batch_items: u32,
    /// The process that holds the memory, if not the one that asks. Only one of the same user.
    #[serde(default)]
    pub pid: Option<u32>,
    /// How long the lease lives without a heartbeat. Leases over HTTP must have one.
    #[serde(default)]
    pub ttl_ms: Option<u64>,
}

/// What a client asks, one JSON object a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The first line of every connection.
    Hello {
        /// What the client speaks: [`PROTOCOL`].
        protocol: u32,
    },
    /// A lease. Bound to this connection: it ends with it.
    Lease(LeaseRequest),
    /// The owner is on this rung now, and has given back what it had more.
    Stepped {
        /// Which.
        lease: LeaseId,
        /// Of its ladder.
        rung: usize,
    },
    /// The owner wants to go to a better rung; what that needs more is reserved first.
    Rise {
        /// Which.
        lease: LeaseId,
        /// Of its ladder.
        rung: usize,
    },
    /// It is given back.
    Return {
        /// Which.
        lease: LeaseId,
    },
    /// The process that uses the lease from now on: one of the same user. The lease lives as long as it does, even if
    /// this connection ends.
    Attach {
        /// Which.
        lease: LeaseId,
        /// Its process.
        pid: u32,
        /// What came with it in [`Granted`]: for a process that was given it by whoever holds the lease.
        #[serde(default)]
        secret: Option<String>,
    },
    /// A lease that another connection was given, after that one or the daemon has gone.
    Claim {
        /// Which.
        lease: LeaseId,
        /// What came with it in [`Granted`].
        secret: String,
    },
    /// Its owner is alive.
    Heartbeat {
        /// Which.
        lease: LeaseId,
    },
    /// How urgent it is from now on.
    SetPriority {
        /// Which.
        lease: LeaseId,
        /// From now on.
        priority: Urgency,
    },
    /// Whether it may be asked back.
    SetPinned {
        /// Which.
        lease: LeaseId,
        /// From now on.
        pinned: bool,
    },
    /// How many items of its batch are still to come.
    SetBatch {
        /// Which.
        lease: LeaseId,
        /// Still to come.
        items: u32,
    },
    /// Everything as it stands.
    State,
    /// Why a lease waits, or has what it has.
    Why {
        /// Which.
        lease: LeaseId,
    },
    /// What happened since an event; then, if asked for, what happens.
    Events {
        /// The last event that is known; 0 for all that is kept.
        #[serde(default)]
        since: u64,
        /// Go on.
        #[serde(default)]
        follow: bool,
    },
}

/// What the daemon says, one JSON object a line: the answer to a request, or something that happened to a lease of this
/// connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum Say {
    /// To [`Request::Hello`].
    Welcome {
        /// What the daemon speaks.
        protocol: u32,
        /// Its version.
        version: String,
    },
    /// The request was carried out.
    Done,
    /// The lease has a place in the queue.
    Queued(Queued),
    /// The lease is held from now on.
    Granted(Granted),
    /// The lease is not given, and is over.
    Refused {
        /// Which; none if it never got a number.
        lease: Option<LeaseId>,
        /// Why, and what to do.
        why: String,
    },
    /// Step down, or leave.
    Recall(Recall),
    /// A better rung fits again.
    MayRise {
        /// Which.
        lease: LeaseId,
        /// Of its ladder.
        rung: usize,
    },
    /// The holder uses more than it was promised: what is beyond counts as a stranger's, and lowers the line.
    Over {
        /// Which.
        lease: LeaseId,
        /// Where.
        device: String,
        /// Bytes promised there.
        promised: u64,
        /// Bytes in use there, by the driver's word.
        used: u64,
    },
    /// The lease is over, and not because its owner gave it back.
    Ended {
        /// Which.
        lease: LeaseId,
        /// Why.
        why: String,
    },
    /// To [`Request::State`].
    State(Box<State>),
    /// To [`Request::Why`].
    Why {
        /// Which.
        lease: LeaseId,
        /// Sentences, the most important first.
        because: Vec<String>,
    },
    /// To [`Request::Events`], one line each.
    Event(Event),
    /// The request was wrong.
    Error {
        /// What about it, and what to do.
        message: String,
    },
}

/// A lease that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    /// Which.
    pub lease: LeaseId,
    /// How many are before it.
    pub before: usize,
    /// What it waits for.
    pub reason: String,
    /// When it could be given, if anybody can tell.
    pub estimate_ms: Option<u64>,
}

/// A lease that is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Granted {
    /// Which.
    pub lease: LeaseId,
    /// The rung of its ladder.
    pub rung: usize,
    /// Bytes of each device.
    pub bytes: u64,
    /// The rung's quality.
    pub quality: f64,
    /// Where.
    pub devices: Vec<String>,
    /// Set for the programs that are to use them, for example `CUDA_VISIBLE_DEVICES`.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// What those devices are called in the book that the user's programs share.
    #[serde(default)]
    pub places: Vec<String>,
    /// What a new connection claims the lease with.
    #[serde(default)]
    pub secret: String,
}

/// How far a holder has been asked to go.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// To a lower rung.
    StepDown,
    /// To leave altogether.
    Leave,
    /// It is being stopped: it had agreed to that.
    Stop,
}

/// A request to step down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recall {
    /// Which.
    pub lease: LeaseId,
    /// How far.
    pub step: Step,
    /// The rung, if it is not to leave.
    pub rung: Option<usize>,
    /// Bytes of each device that it may keep.
    pub bytes: u64,
    /// How long there is.
    pub within_ms: u64,
    /// For whom.
    pub because: String,
}

/// Everything as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The daemon's version.
    pub version: String,
    /// When this was put together, in milliseconds since 1970.
    pub at_ms: u64,
    /// How quality is shared out.
    pub policy: String,
    /// The devices.
    pub devices: Vec<DeviceState>,
    /// Who holds what, leases first, then engines, then processes of ours that share the book, then strangers.
    pub holders: Vec<Holder>,
    /// Who waits, first to be given first; then members of the book that want more.
    pub queue: Vec<Waiting>,
    /// What is wrong, for people.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// A device as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceState {
    /// `gpu0`.
    pub name: String,
    /// What people call it.
    pub card: String,
    /// All its memory.
    pub capacity: u64,
    /// What may be promised now.
    pub line: u64,
    /// What is promised, to leases and to members of the book.
    pub promised: u64,
    /// What of that other programs of the user may promise, by the book that they share.
    #[serde(default)]
    pub members: u64,
    /// What the driver says is in use, by whomever.
    pub used: u64,
    /// What of that belongs to programs without a lease.
    pub strangers: u64,
    /// What is left to the desktop.
    pub reserve: u64,
    /// The share of the line that is taken, from 0 to 1.
    pub pressure: f64,
    /// `low`, `medium`, `high` or `critical`.
    pub level: String,
    /// Where the figures come from.
    pub source: String,
    /// Why what is in use is known as a sum and not of each program; none if it is known. All of it that is not promised is
    /// strangers' then.
    #[serde(default)]
    pub by_sum: Option<String>,
}

/// What sort of holder.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// It has a lease.
    #[default]
    Lease,
    /// An engine that the daemon can ask to give memory back.
    Engine,
    /// A process of ours that shares the book.
    Member,
    /// A program that asked nobody.
    Stranger,
}

/// Where a holder is in the life of its lease.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It holds its rung.
    #[default]
    Held,
    /// It was asked to step down or leave.
    Recalled,
    /// It has left, and the driver has not said so yet.
    Returning,
}

/// Somebody who holds memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// What sort.
    pub sort: Sort,
    /// Its lease, if it has one.
    pub lease: Option<LeaseId>,
    /// What people read.
    pub name: String,
    /// Its process, if known.
    pub pid: Option<u32>,
    /// What for.
    pub kind: Kind,
    /// How urgent.
    pub priority: Urgency,
    /// Where, with the bytes promised and those that the driver says it uses.
    pub portions: Vec<Portion>,
    /// The rung it holds, and of how many.
    pub rung: usize,
    /// Of how many.
    pub rungs: usize,
    /// The quality of its rung.
    pub quality: f64,
    /// What its kind, priority and the pressure recommend.
    pub recommended: f64,
    /// Where it stands.
    pub phase: Phase,
    /// Never asked back.
    pub pinned: bool,
    /// Items of its batch still to come.
    pub batch_items: u32,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// What it was asked, if it was.
    #[serde(default)]
    pub recall: Option<Recall>,
}

/// What somebody has of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Portion {
    /// `gpu0`.
    pub device: String,
    /// Promised.
    pub promised: u64,
    /// In use, by the driver's word; none if it does not say by process.
    pub used: Option<u64>,
}

/// Somebody who waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// Which.
    pub lease: Option<LeaseId>,
    /// What people read.
    pub name: String,
    /// Its process, if known.
    pub pid: Option<u32>,
    /// What for.
    pub kind: Kind,
    /// How urgent.
    pub priority: Urgency,
    /// What its lowest rung needs of each device.
    pub bytes: u64,
    /// Where; none means any one.
    pub devices: Vec<String>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// What for.
    pub reason: String,
    /// When it could be given, if anybody can tell.
    pub estimate_ms: Option<u64>,
}

/// One fact about what happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up, over restarts too.
    pub id: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// `asked`, `queued`, `granted`, `recalled`, `stepped`, `overdue`, `stopped`, `returned`, `verified`, `not-freed`,
    /// `refused`, `ended`, `adopted`, `over`, `stranger`, `engine`, `restarted`, `warning`.
    pub what: String,
    /// Which lease.
    pub lease: Option<LeaseId>,
    /// Its name.
    pub name: String,
    /// Where.
    pub device: Option<String>,
    /// How many bytes it is about.
    pub bytes: Option<u64>,
    /// One sentence for people.
    pub text: String,
}

/// A device's figures at one moment, for plots.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What may be promised.
    pub line: u64,
    /// What is promised.
    pub promised: u64,
    /// What the driver says is in use, by whomever.
    pub used: u64,
    /// What of that belongs to programs without a lease.
    pub strangers: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back<T: Serialize + for<'a> Deserialize<'a> + PartialEq + std::fmt::Debug>(value: &T) {
        let text = serde_json::to_string(value).unwrap();
        assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
    }

    fn request() -> LeaseRequest {
        serde_json::from_str(r#"{"name":"a","ladder":[{"bytes":5},{"bytes":3,"quality":0.5,"switch_ms":9}]}"#).unwrap()
    }

    #[test]
    fn what_is_asked_is_read_back_as_it_was() {
        let lease = LeaseId(7);
        for request in [
            Request::Hello { protocol: PROTOCOL },
            Request::Lease(request()),
            Request::Lease(LeaseRequest { pid: Some(3), ttl_ms: Some(4), devices: vec!["gpu0".into()], ..request() }),
            Request::Stepped { lease, rung: 1 },
            Request::Rise { lease, rung: 0 },
            Request::Return { lease },
            Request::Attach { lease, pid: 9, secret: None },
            Request::Attach { lease, pid: 9, secret: Some("s".into()) },
            Request::Claim { lease, secret: "s".into() },
            Request::Heartbeat { lease },
            Request::SetPriority { lease, priority: Urgency::High },
            Request::SetPinned { lease, pinned: true },
            Request::SetBatch { lease, items: 4 },
            Request::State,
            Request::Why { lease },
            Request::Events { since: 3, follow: true },
        ] {
            back(&request);
        }
    }

    #[test]
    fn what_is_said_is_read_back_as_it_was() {
        let lease = LeaseId(7);
        let recall =
            Recall { lease, step: Step::StepDown, rung: Some(1), bytes: 5, within_ms: 9, because: "of it".into() };
        let holder = Holder { lease: Some(lease), recall: Some(recall.clone()), ..Holder::default() };
        let (devices, queue) = (vec![DeviceState::default()], vec![Waiting::default()]);
        for say in [
            Say::Welcome { protocol: 1, version: "0".into() },
            Say::Done,
            Say::Queued(Queued { lease, before: 1, reason: "r".into(), estimate_ms: None }),
            Say::Refused { lease: None, why: "w".into() },
            Say::Recall(recall),
            Say::MayRise { lease, rung: 0 },
            Say::Over { lease, device: "gpu0".into(), promised: 1, used: 2 },
            Say::Ended { lease, why: "w".into() },
            Say::State(Box::new(State { devices, queue, holders: vec![holder], ..State::default() })),
            Say::Why { lease, because: vec!["b".into()] },
            Say::Event(Event::default()),
            Say::Error { message: "m".into() },
        ] {
            back(&say);
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for wrong in [
            r#"{"do":"return","lease":1,"force":true}"#,
            r#"{"do":"hello","protocol":1,"extra":0}"#,
            r#"{"do":"lease","name":"a","ladder":[],"gpu":0}"#,
            r#"{"do":"lease","name":"a","ladder":[{"bytes":1,"more":2}]}"#,
            r#"{"do":"dance"}"#,
            r#"{"lease":1}"#,
            "[]",
            "",
        ] {
            assert!(serde_json::from_str::<Request>(wrong).is_err(), "{wrong}");
        }
        let alias: Urgency = serde_json::from_str("\"user-facing\"").unwrap();
        assert_eq!(alias, Urgency::High);
    }
}
