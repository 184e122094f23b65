//! How filters are written: `shuffle:f32`, `delta:u16,shuffle:u16`.

use std::fmt;
use std::str::FromStr;

use super::{Element, Filter, STEPS_MAX, Step, StepKind};

/// A filter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is no filter; write up to {STEPS_MAX} of shuffle, bitshuffle and delta with what the data are made of, as \
     shuffle:f32 or delta:u16,shuffle:u16"
)]
pub struct ParseFilterError {
    text: String,
}

const KINDS: [(StepKind, &str); 3] =
    [(StepKind::Shuffle, "shuffle"), (StepKind::Bitshuffle, "bitshuffle"), (StepKind::Delta, "delta")];

/// The first of each width is how it is written back.
const ELEMENTS: [(Element, &str); 10] = [
    (Element::U8, "u8"),
    (Element::U16, "u16"),
    (Element::U32, "u32"),
    (Element::U64, "u64"),
    (Element::U8, "i8"),
    (Element::U16, "i16"),
    (Element::U32, "i32"),
    (Element::U64, "i64"),
    (Element::U32, "f32"),
    (Element::U64, "f64"),
];

impl FromStr for Filter {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<Self, ParseFilterError> {
        let refused = || ParseFilterError { text: text.to_owned() };
        let steps: Option<Vec<Step>> = text.split(',').map(step).collect();
        steps.and_then(|steps| Self::new(&steps)).ok_or_else(refused)
    }
}

fn step(text: &str) -> Option<Step> {
    let (kind, element) = text.split_once(':')?;
    let kind = KINDS.iter().find(|(_, name)| *name == kind)?.0;
    let element = ELEMENTS.iter().find(|(_, name)| *name == element)?.0;
    Some(Step { kind, element })
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Step { kind, element }) in self.steps().enumerate() {
            let kind = KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name);
            let element = ELEMENTS.iter().find(|(known, _)| *known == element).map_or("", |(_, name)| name);
            write!(f, "{}{kind}:{element}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_and_written() {
        let filter: Filter = "delta:i16,bitshuffle:f64".parse().unwrap();
        assert_eq!(filter.to_string(), "delta:u16,bitshuffle:u64");
        assert_eq!(filter.to_string().parse(), Ok(filter));
        for wrong in
            ["", "shuffle", "shuffle:", "shuffle:u24", "mix:u8", "delta:u8,delta:u8,delta:u8,delta:u8,delta:u8"]
        {
            assert!(wrong.parse::<Filter>().is_err(), "{wrong}");
        }
    }
}
