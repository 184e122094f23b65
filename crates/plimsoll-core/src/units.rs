//! Quantities as types: bytes, spans of time, points in time, quality.
//! Never reads a clock: a [`Moment`] is a fact handed in by the caller.
//! Invariant: arithmetic saturates; a wrong prediction may be large, it never wraps.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A number of bytes.
///
/// ```
/// # use plimsoll_core as plimsoll;
/// use plimsoll::Bytes;
/// let line: Bytes = "64MiB".parse()?;
/// assert_eq!(line, Bytes::mib(64));
/// assert_eq!(line.to_string(), "64.0 MiB");
/// # Ok::<(), plimsoll::ParseBytesError>(())
/// ```
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// More bytes than any device has.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 10))
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 20))
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 30))
    }

    /// This share of the bytes; `share` is clamped to 0..=1.
    pub fn share(self, share: f64) -> Self {
        Self((self.0 as f64 * share.clamp(0.0, 1.0)) as u64)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{value:.1} {}", UNITS[unit]))
    }
}

/// A text that is not a number of bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a size; write a number with an optional unit, for example 64MiB, 10GiB or 512K")]
pub struct ParseBytesError(String);

impl FromStr for Bytes {
    type Err = ParseBytesError;

    /// Units are powers of 1024 (`K`, `KiB`, `M`, …) except the decimal `KB`, `MB`, `GB`, `TB`.
    fn from_str(text: &str) -> Result<Self, ParseBytesError> {
        let refuse = || ParseBytesError(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let scale: f64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1024.0 * 1024.0,
            "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
            "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            _ => return Err(refuse()),
        };
        let value: f64 = number.parse().map_err(|_| refuse())?;
        if !value.is_finite() || value * scale > u64::MAX as f64 {
            return Err(refuse());
        }
        Ok(Self((value * scale) as u64))
    }
}

/// A span of time in nanoseconds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Longer than any task.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` microseconds.
    pub const fn micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// `n` milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// `n` seconds.
    pub const fn seconds(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// The span as fractional seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span times `factor`, saturating; a negative factor counts as 0.
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor.max(0.0)) as u64)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl From<Duration> for Nanos {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0..=999 => format!("{} ns", self.0),
            1_000..=999_999 => format!("{:.1} µs", ns / 1e3),
            1_000_000..=999_999_999 => format!("{:.1} ms", ns / 1e6),
            _ => format!("{:.2} s", ns / 1e9),
        };
        f.pad(&text)
    }
}

/// A point in time: nanoseconds since an epoch that the caller chose (its start, or zero in simulation).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// The caller's epoch.
    pub const START: Self = Self(0);
    /// After everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// How long ago `earlier` was; zero if it lies ahead.
    pub fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for Moment {
    type Output = Self;
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Nanos> for Moment {
    type Output = Self;
    fn sub(self, span: Nanos) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

/// Calendar time, for what outlives a process: seconds since 1970.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixSeconds(pub u64);

impl UnixSeconds {
    /// This many seconds later.
    pub const fn plus(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds))
    }
}

/// How good a rung's answer is, from 0 to 1. 1 is the full answer.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quality(f32);

impl Quality {
    /// The full answer.
    pub const FULL: Self = Self(1.0);
    /// Any answer will do.
    pub const ANY: Self = Self(0.0);

    /// Clamped to 0..=1; NaN counts as 0.
    pub fn new(value: f32) -> Self {
        Self(if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) })
    }

    /// The number from 0 to 1.
    pub fn value(self) -> f32 {
        self.0
    }
}

impl Eq for Quality {}

impl PartialOrd for Quality {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quality {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Never NaN: `new` sees to it.
        self.0.total_cmp(&other.0)
    }
}

impl Default for Quality {
    fn default() -> Self {
        Self::FULL
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} %", self.0 * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_with_and_without_units() {
        assert_eq!("64MiB".parse(), Ok(Bytes::mib(64)));
        assert_eq!("1.5g".parse(), Ok(Bytes(3 << 29)));
        assert_eq!(" 10 GB ".parse(), Ok(Bytes(10_000_000_000)));
        assert_eq!("512".parse(), Ok(Bytes(512)));
        assert_eq!(["1k", "1M", "1GiB", "1T"].map(str::parse), [10, 20, 30, 40].map(|bits| Ok(Bytes(1 << bits))));
        assert_eq!(
            ["1KB", "1mb", "1GB", "1TB"].map(str::parse),
            [3, 6, 9, 12].map(|zeros| Ok(Bytes(10_u64.pow(zeros))))
        );
        for wrong in ["", "MiB", "12 parsecs", "-1", "1e400", "99999999999999T", "1.2.3"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Bytes(1) - Bytes(2), Bytes::ZERO);
        assert_eq!(Bytes::MAX + Bytes(1), Bytes::MAX);
        assert_eq!(Moment(5).since(Moment(9)), Nanos::ZERO);
        assert_eq!(Nanos(3).scaled(-1.0), Nanos::ZERO);
    }

    #[test]
    fn quantities_print_for_people() {
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes::gib(24).to_string(), "24.0 GiB");
        assert_eq!(Nanos(1_500).to_string(), "1.5 µs");
        assert_eq!(Nanos::seconds(2).to_string(), "2.00 s");
    }
}
