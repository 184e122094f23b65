//! Names and checksums of bytes. What comes from outside is told by its SHA-256, which nobody can forge: several models share
//! one store. What we hold ourselves is checked by XXH3 on every hop, which finds damage at the speed of memory.

use std::fmt;
use std::hash::Hasher as _;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use twox_hash::XxHash3_64;

use crate::error::FragmentError;

/// The SHA-256 of a fragment: its name in the store.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is no SHA-256.
#[derive(Debug, thiserror::Error)]
#[error("a SHA-256 is 64 hexadecimal digits, in lower case")]
pub struct ParseDigestError;

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        if text.len() != 64 || !text.as_bytes().iter().all(is_hex) {
            return Err(ParseDigestError);
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| ParseDigestError)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Bytes that are looked at in one go: they are still in the cache when they are used.
pub(crate) const CHUNK: usize = 256 << 10;

/// Bytes that are copied and then looked at: they are in the cache nearest to the core. Looking at them first took a quarter
/// longer, since copying then waits for what looking has just waited for.
const COPIED: usize = 64 << 10;

/// The XXH3 of a fragment: what finds a byte that changed where we hold it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checksum(pub u64);

impl Checksum {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(XxHash3_64::oneshot(bytes))
    }

    /// Hands out bytes in pieces, each seen while it is in the cache: they are read from memory once.
    pub(crate) fn checked(bytes: &[u8]) -> Checked<'_> {
        Checked { left: bytes.chunks(COPIED), handed_out: &[], hash: XxHash3_64::new() }
    }

    /// Refuses bytes that are not those it was made of; `place` says where they lay.
    ///
    /// # Errors
    /// [`FragmentError::Damaged`].
    pub fn check(self, bytes: &[u8], place: impl FnOnce() -> String) -> Result<(), FragmentError> {
        self.is(Self::of(bytes), place)
    }

    /// The same of bytes whose checksum is known.
    pub(crate) fn is(self, found: Self, place: impl FnOnce() -> String) -> Result<(), FragmentError> {
        if found == self {
            return Ok(());
        }
        Err(FragmentError::damaged(place(), "its checksum is not the one in the index"))
    }
}

/// Bytes in pieces, and the checksum of those that were handed out. A piece is looked at when the next one is asked for:
/// whoever took it has copied it by then.
pub(crate) struct Checked<'a> {
    left: std::slice::Chunks<'a, u8>,
    handed_out: &'a [u8],
    hash: XxHash3_64,
}

impl Checked<'_> {
    /// Of all that was handed out.
    pub(crate) fn checksum(mut self) -> Checksum {
        self.hash.write(self.handed_out);
        Checksum(self.hash.finish())
    }
}

impl<'a> Iterator for Checked<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.hash.write(std::mem::take(&mut self.handed_out));
        self.handed_out = self.left.next()?;
        Some(self.handed_out)
    }
}
