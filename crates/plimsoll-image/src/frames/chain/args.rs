//! The arguments of an operation as they were written: `name=first:second:key=value`.
//! Invariant: every argument is taken exactly once, or the chain is refused.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::super::operation::OperationError;

/// The arguments of one operation. Take them in the order of its usage line; each may be written in its place or by
/// name.
pub(crate) struct Args<'a> {
    in_place: std::collections::VecDeque<&'a str>,
    named: Vec<(&'a str, &'a str)>,
}

impl<'a> Args<'a> {
    /// The arguments in `text`; `keys` that are asked for by name later.
    pub(crate) fn new(pieces: impl Iterator<Item = &'a str>) -> Self {
        let (named, in_place): (Vec<_>, Vec<_>) = pieces.partition(|piece| is_named(piece));
        let named = named.into_iter().filter_map(|piece| piece.split_once('=')).collect();
        Self { in_place: in_place.into(), named }
    }

    /// Whether none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.in_place.is_empty() && self.named.is_empty()
    }

    /// The argument of this name: as written by name, or else the next one written in its place.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a str> {
        if let Some(at) = self.named.iter().position(|(key, _)| *key == name) {
            return Some(self.named.remove(at).1);
        }
        self.in_place.pop_front()
    }

    /// The argument of this name, only if it was written by name.
    pub(crate) fn take_named(&mut self, name: &str) -> Option<&'a str> {
        self.named.iter().position(|(key, _)| *key == name).map(|at| self.named.remove(at).1)
    }

    /// The next argument written in its place, if it is such a one.
    pub(crate) fn take_if(&mut self, is_such: impl FnOnce(&str) -> bool) -> Option<&'a str> {
        self.in_place.front().is_some_and(|next| is_such(next)).then(|| self.in_place.pop_front())?
    }

    /// As [`Args::take`], and there must be one.
    pub(crate) fn require(&mut self, name: &str) -> Result<&'a str, OperationError> {
        self.take(name).ok_or_else(|| OperationError::because(format_args!("{name} is missing")))
    }

    /// A number within bounds; `usual` if it was not written.
    pub(crate) fn number<T>(&mut self, name: &str, bounds: RangeInclusive<T>, usual: T) -> Result<T, OperationError>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        self.take(name).map_or(Ok(usual), |text| number(name, text, bounds))
    }

    /// One of some words; `usual` if none was written.
    pub(crate) fn one_of<T: Copy>(&mut self, name: &str, words: &[(&str, T)], usual: T) -> Result<T, OperationError> {
        self.take(name).map_or(Ok(usual), |text| one_of(name, text, words))
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(mut self) -> Result<(), OperationError> {
        let left = self.in_place.pop_front().or_else(|| self.named.pop().map(|(key, _)| key));
        left.map_or(Ok(()), |left| Err(OperationError::because(format_args!("'{left}' is too much"))))
    }
}

/// A number within bounds.
pub(crate) fn number<T>(name: &str, text: &str, bounds: RangeInclusive<T>) -> Result<T, OperationError>
where
    T: FromStr + PartialOrd + Display + Copy,
{
    let refused =
        || OperationError::because(format_args!("{name} is a number from {} to {}", bounds.start(), bounds.end()));
    text.trim().parse().ok().filter(|value| bounds.contains(value)).ok_or_else(refused)
}

/// What one of some words stands for.
pub(crate) fn one_of<T: Copy>(name: &str, text: &str, words: &[(&str, T)]) -> Result<T, OperationError> {
    let found = words.iter().find(|(word, _)| *word == text.trim());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        OperationError::because(format_args!("{name} is one of {}, not '{text}'", all.join(", ")))
    })
}

/// A key is a word: paths and numbers with a sign of equality in them are not meant.
fn is_named(piece: &str) -> bool {
    let key = piece.split_once('=').map(|(key, _)| key);
    key.is_some_and(|key| !key.is_empty() && key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'))
}
