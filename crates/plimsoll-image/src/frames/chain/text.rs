//! Splits the text of a chain. A backslash takes the meaning from the sign after it, so that paths may hold any.

/// The pieces of `text` between separators that are not behind a backslash; backslashes stay.
pub(super) fn split(text: &str, separator: char) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut behind_backslash) = (0, false);
    for (at, sign) in text.char_indices() {
        if sign == separator && !behind_backslash {
            pieces.push(&text[start..at]);
            start = at + sign.len_utf8();
        }
        behind_backslash = sign == '\\' && !behind_backslash;
    }
    pieces.push(&text[start..]);
    pieces
}

/// The text without its backslashes.
pub(crate) fn unescaped(text: &str) -> String {
    let mut behind_backslash = false;
    let mut plain = String::new();
    for sign in text.chars() {
        behind_backslash = sign == '\\' && !behind_backslash;
        if !behind_backslash {
            plain.push(sign);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_keeps_a_separator_in_its_piece() {
        assert_eq!(split(r"a,b\,c,d", ','), ["a", r"b\,c", "d"]);
        assert_eq!(unescaped(r"b\,c\\d"), r"b,c\d");
        assert_eq!(split("", ','), [""]);
    }
}
