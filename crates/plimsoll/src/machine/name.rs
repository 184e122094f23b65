//! What a device is called where people type: `cpu`, `gpu0`, `gpu1` and so on.
//! Never describes hardware: that is [`plimsoll_runtime::DeviceFacts`].

use std::fmt;
use std::str::FromStr;

/// The short name of a device. The CPU pool is one device; GPUs count up in the order in which they are listed, the
/// logical parts of one card one after the other.
///
/// ```
/// use plimsoll::machine::DeviceName;
/// assert_eq!("gpu1".parse(), Ok(DeviceName::Gpu(1)));
/// assert_eq!(DeviceName::Cpu.to_string(), "cpu");
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceName {
    /// The pool of processor cores.
    Cpu,
    /// A GPU, or one logical part of it, counted from 0.
    Gpu(u16),
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.pad("cpu"),
            Self::Gpu(number) => f.pad(&format!("gpu{number}")),
        }
    }
}

/// A text that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a device; write cpu, gpu0, gpu1 and so on, as `plimsoll devices` lists them")]
pub struct ParseDeviceNameError(String);

impl FromStr for DeviceName {
    type Err = ParseDeviceNameError;

    fn from_str(text: &str) -> Result<Self, ParseDeviceNameError> {
        let refuse = || ParseDeviceNameError(text.to_owned());
        let lower = text.trim().to_ascii_lowercase();
        if lower == "cpu" {
            return Ok(Self::Cpu);
        }
        let number = lower.strip_prefix("gpu").ok_or_else(refuse)?;
        // As in --devices, where the number stands apart.
        let number = number.strip_prefix(':').unwrap_or(number);
        // `gpu+1` parses as a number, but is nobody's name.
        let all_digits = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| all_digits).map(Self::Gpu).ok_or_else(refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for name in [DeviceName::Cpu, DeviceName::Gpu(0), DeviceName::Gpu(12)] {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        assert_eq!(" GPU0 ".parse(), Ok(DeviceName::Gpu(0)));
        assert_eq!("gpu:1".parse(), Ok(DeviceName::Gpu(1)));
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in ["", "gpu", "gpu:", "gpu::1", "cpu0", "gpu-1", "gpu+1", "gpu99999", "card0"] {
            assert!(wrong.parse::<DeviceName>().is_err(), "{wrong}");
        }
    }
}
