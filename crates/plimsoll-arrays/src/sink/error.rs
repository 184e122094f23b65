//! What can go wrong where arrays are kept: always with the key, always with the cause.

use std::io;

/// Why something could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// There is no room.
    #[error("no room is left to write '{key}'; free some and go on, what was finished before is whole")]
    Full {
        /// What was written.
        key: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is something else at the place of the folder.
    #[error("'{path}' is there and no folder; give the array another name")]
    NoFolder {
        /// Where.
        path: String,
    },
    /// It is not allowed.
    #[error("'{key}' may not be {what}; check who owns the store and whether it may be written")]
    Denied {
        /// What it was about.
        key: String,
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// There is nothing of that name.
    #[error("there is no '{key}'")]
    Missing {
        /// What was asked for.
        key: String,
    },
    /// It is shorter than what was asked for.
    #[error("'{key}' has {bytes} bytes, {end} were asked for; it was cut off since its size was asked for")]
    Short {
        /// What was asked for.
        key: String,
        /// Its bytes.
        bytes: u64,
        /// Where what was asked for ends.
        end: u64,
    },
    /// Somebody else writes there.
    #[error("another program writes to {store}; wait until it has ended, or choose another place")]
    Locked {
        /// Where.
        store: String,
    },
    /// Somebody else took over because this writer could not say for too long that it lives.
    #[error(
        "another program may write to {store} by now: its lock could not be renewed; what was finished is whole, resume it"
    )]
    LockLost {
        /// Where.
        store: String,
    },
    /// The address is none.
    #[error("{address} is no store: {why}; an address is s3://bucket/folder")]
    Address {
        /// As it was given.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// There is no such bucket.
    #[error("there is no bucket '{bucket}'; make it first, or check its name, the region and the endpoint")]
    NoBucket {
        /// Its name.
        bucket: String,
    },
    /// Nobody is known to be asking.
    #[error(
        "{store} does not know these credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to ones that may use it"
    )]
    Credentials {
        /// Where.
        store: String,
        /// What it said.
        source: io::Error,
    },
    /// It did not answer, or said that it cannot now, for as long as was allowed.
    #[error(
        "{store} could not be reached for long enough that '{key}' was {what}; what was finished before is whole, go on later"
    )]
    Unreachable {
        /// Where.
        store: String,
        /// What it was about.
        key: String,
        /// What was to be done.
        what: &'static str,
        /// What happened last.
        source: io::Error,
    },
    /// An object is larger than the store takes.
    #[error("'{key}' is larger than {most} bytes, which is the most that the store takes; choose smaller shards")]
    TooLarge {
        /// Its key.
        key: String,
        /// How many bytes are taken.
        most: u64,
    },
    /// The name is none.
    #[error("'{key}' is no key: parts are joined by / and none is empty, . or ..")]
    Key {
        /// As it was given.
        key: String,
    },
    /// There are more objects than are listed.
    #[error("there are more than {most} objects below '{prefix}'")]
    TooMany {
        /// Below what.
        prefix: String,
        /// How many are listed.
        most: usize,
    },
    /// Anything else.
    #[error("'{key}' could not be {what}")]
    Failed {
        /// What it was about.
        key: String,
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl SinkError {
    /// The error for what the system said.
    pub fn of_io(key: &str, what: &'static str, source: io::Error) -> Self {
        let key = key.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { key, source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied { key, what, source },
            io::ErrorKind::NotFound => Self::Missing { key },
            _ => Self::Failed { key, what, source },
        }
    }
}
