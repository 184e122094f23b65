//! How much memory somebody allows us, for every device or device by device, as it is typed.
//! Never reads how much there is: a limit lowers what a device may use, it never raises it.

use std::fmt;
use std::str::FromStr;

use plimsoll_core::{Bytes, ParseBytesError};

use super::name::{DeviceName, ParseDeviceNameError};

/// The bytes that each device may use at most. Without a limit a device may use all its memory.
///
/// `8GiB` holds for every device; `gpu0=2GiB,cpu=4GiB` for those devices; `8GiB,gpu0=2GiB` for gpu0, and otherwise for
/// every device.
///
/// ```
/// use plimsoll::machine::{DeviceName, MemoryLimit};
/// use plimsoll_core::Bytes;
///
/// let limit: MemoryLimit = "8GiB,gpu0=512MiB".parse()?;
/// assert_eq!(limit.of(DeviceName::Gpu(0)), Some(Bytes::mib(512)));
/// assert_eq!(limit.of(DeviceName::Cpu), Some(Bytes::gib(8)));
/// # Ok::<(), plimsoll::machine::ParseMemoryLimitError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryLimit {
    every: Option<Bytes>,
    named: Vec<(DeviceName, Bytes)>,
}

impl MemoryLimit {
    /// No limit.
    pub const NONE: Self = Self { every: None, named: Vec::new() };

    /// The same limit for every device.
    pub fn every(limit: Bytes) -> Self {
        Self { every: Some(limit), named: Vec::new() }
    }

    /// This limit, and `limit` for one device.
    #[must_use]
    pub fn with(mut self, device: DeviceName, limit: Bytes) -> Self {
        self.named.retain(|(name, _)| *name != device);
        self.named.push((device, limit));
        self
    }

    /// The limit of one device, if it has one.
    pub fn of(&self, device: DeviceName) -> Option<Bytes> {
        let own = self.named.iter().find(|(name, _)| *name == device).map(|(_, limit)| *limit);
        own.or(self.every)
    }

    /// The devices that it names.
    pub fn names(&self) -> impl Iterator<Item = DeviceName> + '_ {
        self.named.iter().map(|(name, _)| *name)
    }
}

/// A text that is no memory limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseMemoryLimitError {
    /// A part is not a size.
    #[error(transparent)]
    Size(#[from] ParseBytesError),
    /// What stands before a `=` names no device.
    #[error(transparent)]
    Name(#[from] ParseDeviceNameError),
    /// There is nothing between two commas, or nothing at all.
    #[error("a limit is missing; write a size for every device (8GiB) or device by device (gpu0=2GiB,cpu=4GiB)")]
    Missing,
    /// Nothing runs in no memory.
    #[error("a limit of 0 leaves nothing to work with; leave GPUs out with PLIMSOLL_NO_GPU=1")]
    Zero,
    /// The same device, or every device, has two limits.
    #[error("{0} has two limits; write one")]
    Twice(String),
}

impl FromStr for MemoryLimit {
    type Err = ParseMemoryLimitError;

    fn from_str(text: &str) -> Result<Self, ParseMemoryLimitError> {
        text.split(',').try_fold(Self::NONE, Self::with_part)
    }
}

impl MemoryLimit {
    fn with_part(self, part: &str) -> Result<Self, ParseMemoryLimitError> {
        if part.trim().is_empty() {
            return Err(ParseMemoryLimitError::Missing);
        }
        let Some((name, size)) = part.split_once('=') else {
            let every = Some(parse_size(part)?);
            return match self.every {
                Some(_) => Err(ParseMemoryLimitError::Twice("every device".to_owned())),
                None => Ok(Self { every, ..self }),
            };
        };
        let name: DeviceName = name.parse()?;
        if self.names().any(|known| known == name) {
            return Err(ParseMemoryLimitError::Twice(name.to_string()));
        }
        Ok(self.with(name, parse_size(size)?))
    }
}

fn parse_size(text: &str) -> Result<Bytes, ParseMemoryLimitError> {
    match text.trim().parse()? {
        Bytes::ZERO => Err(ParseMemoryLimitError::Zero),
        limit => Ok(limit),
    }
}

/// As it is typed, in bytes.
impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let every = self.every.map(|limit| limit.0.to_string());
        let named = self.named.iter().map(|(name, limit)| format!("{name}={}", limit.0));
        f.write_str(&every.into_iter().chain(named).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<MemoryLimit, ParseMemoryLimitError> {
        text.parse()
    }

    #[test]
    fn one_size_is_for_every_device() {
        let limit = parse("64MiB").unwrap();
        assert_eq!(limit, MemoryLimit::every(Bytes::mib(64)));
        assert_eq!((limit.of(DeviceName::Cpu), limit.of(DeviceName::Gpu(7))), (limit.every, limit.every));
    }

    #[test]
    fn devices_have_limits_of_their_own() {
        let limit = parse("gpu0=2GiB, cpu=4GiB").unwrap();
        assert_eq!(limit.of(DeviceName::Gpu(0)), Some(Bytes::gib(2)));
        assert_eq!(limit.of(DeviceName::Cpu), Some(Bytes::gib(4)));
        assert_eq!(limit.of(DeviceName::Gpu(1)), None);
        assert_eq!(parse("gpu0=2GiB,9GiB").unwrap().of(DeviceName::Gpu(1)), Some(Bytes::gib(9)));
    }

    #[test]
    fn a_limit_is_read_as_it_is_printed() {
        for text in ["64MiB", "gpu0=2GiB,cpu=1.5GiB", "8GiB,gpu3=1GB"] {
            let limit = parse(text).unwrap();
            assert_eq!(parse(&limit.to_string()), Ok(limit));
        }
    }

    #[test]
    fn refusals_say_what_to_write() {
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert!(said("").contains("gpu0=2GiB,cpu=4GiB"));
        assert!(said("1GiB,").contains("a limit is missing"));
        assert!(said("a lot").contains("for example 64MiB"));
        assert!(said("card=1GiB").contains("write cpu, gpu0, gpu1"));
        assert!(said("0").contains("PLIMSOLL_NO_GPU"));
        assert_eq!(said("gpu0=1GiB,GPU0=2GiB"), "gpu0 has two limits; write one");
        assert_eq!(said("1GiB,2GiB"), "every device has two limits; write one");
    }
}
