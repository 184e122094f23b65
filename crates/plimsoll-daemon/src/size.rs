//! Sizes as people write them in files: a number of bytes, or a text with a unit.
//! Never guesses: what is no size is an error that says where.

use std::fmt;

use plimsoll_core::Bytes;
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// `"10GiB"`, or `10737418240`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Size(pub Bytes);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Sizes)
    }
}

struct Sizes;

impl Visitor<'_> for Sizes {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"10GiB\"")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
        Ok(Size(Bytes(bytes)))
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
        u64::try_from(bytes).map(|bytes| Size(Bytes(bytes))).map_err(|_| E::custom("a size is not negative"))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
        text.parse().map(Size).map_err(E::custom)
    }
}
