//! Names of files as rows, tables and messages have them. Never a name that two files share, and never one that steers a
//! terminal.

use std::fmt::Write;
use std::path::Path;

/// The name as a row has it: what is not UTF-8 is written as `\xff`, so that every file keeps a row of its own.
pub(super) fn in_row(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        name.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(name, "\\x{byte:02x}");
        }
    }
    name
}

/// The name as people see it: control characters are written out.
pub(super) fn shown(path: &Path) -> String {
    harmless(&in_row(path))
}

/// The same of any text that came from outside.
pub(super) fn harmless(text: &str) -> String {
    let escaped = |letter: char| match letter.is_control() || is_direction(letter) {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Letters that turn the direction of what follows, and could make a name look like another.
fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_apart_and_harmless() {
        assert_eq!(in_row(Path::new("a/b.png")), "a/b.png");
        assert_eq!(shown(Path::new("a\u{1b}[31m\n.png")), "a\\u{1b}[31m\\n.png");
        assert_eq!(harmless("gnp.\u{202e}exe"), "gnp.\\u{202e}exe");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_text_is_told_apart() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let name = |bytes: &[u8]| in_row(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!((name(b"a\xff.png"), name(b"a\xfe.png")), ("a\\xff.png".to_owned(), "a\\xfe.png".to_owned()));
    }
}
