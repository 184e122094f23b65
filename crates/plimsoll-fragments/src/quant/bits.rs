//! Which bits make a level.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::{BITS_MAX, PLANE_LEVELS_MAX};

/// How many bits of a weight's code each level knows, coarsest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct Bits(Vec<u8>);

/// Bits that make no levels.
#[derive(Debug, thiserror::Error)]
#[error("write 1 to {PLANE_LEVELS_MAX} rising numbers of bits from 1 to {BITS_MAX}, as in 2,4,8")]
pub struct ParseBitsError;

impl Bits {
    /// Of each level.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Levels there are.
    pub fn levels(&self) -> usize {
        self.0.len()
    }

    /// Of the finest level.
    pub fn finest(&self) -> u8 {
        self.0[self.0.len() - 1]
    }

    /// Bits that a level adds to the one before it.
    pub fn added(&self, level: usize) -> u8 {
        self.0[level] - if level == 0 { 0 } else { self.0[level - 1] }
    }
}

impl Default for Bits {
    fn default() -> Self {
        Self(vec![2, 3, 4, 6, 8])
    }
}

impl TryFrom<Vec<u8>> for Bits {
    type Error = ParseBitsError;

    fn try_from(bits: Vec<u8>) -> Result<Self, ParseBitsError> {
        let is_counted = (1..=PLANE_LEVELS_MAX).contains(&bits.len());
        let is_rising = bits.is_sorted_by(|a, b| a < b);
        let is_within = bits.iter().all(|bits| (1..=BITS_MAX).contains(bits));
        if is_counted && is_rising && is_within { Ok(Self(bits)) } else { Err(ParseBitsError) }
    }
}

impl From<Bits> for Vec<u8> {
    fn from(bits: Bits) -> Self {
        bits.0
    }
}

impl FromStr for Bits {
    type Err = ParseBitsError;

    fn from_str(text: &str) -> Result<Self, ParseBitsError> {
        let numbers: Result<Vec<u8>, _> = text.split(',').map(|number| number.trim().parse()).collect();
        Self::try_from(numbers.map_err(|_| ParseBitsError)?)
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u8::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}
