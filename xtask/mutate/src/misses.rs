//! The checked-in list of mutants that are known to be missed, each with the reason why no test is worth it.
//! Never names a line number, so that the list survives edits.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The list, by description.
pub(crate) struct KnownMisses(BTreeMap<String, String>);

impl KnownMisses {
    /// Reads `misses.txt`.
    pub(crate) fn load() -> Result<Self, String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("misses.txt");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text)
    }

    /// `description # why`, one a line; lines that begin with `#` are for people.
    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let entry = |line: &str| {
            let (description, why) = line.rsplit_once(" # ").ok_or(format!("misses.txt: no reason given: {line}"))?;
            Ok((description.trim().to_owned(), why.to_owned()))
        };
        lines.map(entry).collect::<Result<_, String>>().map(Self)
    }

    /// Why this one is known to be missed, if it is.
    pub(crate) fn reason(&self, description: &str) -> Option<&str> {
        self.0.get(description).map(String::as_str)
    }

    /// Every description in the list.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_needs_a_reason() {
        let known = KnownMisses::parse("# for people\n\na.rs | f | < to <= | a < b # never equal\n").unwrap();
        assert_eq!(known.reason("a.rs | f | < to <= | a < b"), Some("never equal"));
        assert_eq!(known.reason("a.rs | f | < to >= | a < b"), None);
        assert!(KnownMisses::parse("a.rs | f | < to <= | a < b").is_err());
    }

    #[test]
    fn the_list_can_be_read() {
        KnownMisses::load().unwrap();
    }
}
